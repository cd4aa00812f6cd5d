"""A simulation in a process that was forked from the one that made it."""

import multiprocessing

import numpy as np
import pytest
import torch

from diffenvs.sim.contact import Smoothed
from tests.sim.worlds import simulator, states

WORLDS = 33


def step(sim):
    """Velocities after a control step, and the gradient of their squares by the control."""
    qpos, qvel, control = (x.float() for x in states(sim.model, WORLDS, seed=0))
    leaf = control.requires_grad_(True)
    motion = sim.simulate(qpos, qvel, leaf, sim.default_parameters())
    (gradient,) = torch.autograd.grad(motion.qvel.square().sum(), leaf)
    return motion.qvel.detach().numpy(), gradient.numpy()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_process_gets_the_same(threads):
    """Though none of the threads that its parent had are there."""
    sim = simulator("quadruped", Smoothed(), WORLDS, dtype=torch.float32, threads=threads)
    expected = step(sim)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(step(sim)))
    child.start()
    sender.close()
    try:
        assert receiver.poll(30.0), "the forked process does not answer"
        found = receiver.recv()
    finally:
        child.kill()
        child.join()
    for theirs, ours, again in zip(found, expected, step(sim), strict=True):
        assert np.array_equal(theirs, ours)
        assert np.array_equal(again, ours)
