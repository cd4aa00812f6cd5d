"""What a user sets for Warp as a whole leaves the simulation's kernels as they are."""

import torch
import warp as wp

from diffenvs.sim import launches
from diffenvs.sim.contact import Smoothed
from tests.sim.worlds import simulator, states


def gradient():
    """Of a control step's velocities by the control."""
    sim = simulator("quadruped", Smoothed(), 2, threads=1)
    qpos, qvel, control = states(sim.model, 2, seed=0)
    leaf = control.requires_grad_(True)
    motion = sim.simulate(qpos, qvel, leaf, sim.default_parameters())
    return torch.autograd.grad(motion.qvel.square().sum(), leaf)[0]


def test_a_user_who_turns_adjoints_off_keeps_the_gradient(monkeypatch):
    """`wp.config.enable_backward = False` shortens the compilation of the user's own kernels."""
    expected = gradient()
    monkeypatch.setattr(wp.config, "enable_backward", False)
    for name in ("dynamics_kernel", "integrate_kernel", "sphere_kernel"):
        # made anew, as in a process that sets this first
        monkeypatch.setattr(launches, name, getattr(launches, name).__wrapped__)
    assert torch.equal(gradient(), expected)
