"""The same physics on every device: values and gradients of a GPU against those of the CPU (A30)."""

import time

import pytest
import torch

from diffenvs.bridge import Simulator
from diffenvs.parameters import Parameters
from diffenvs.sim.contact import CONTACT, Hard
from diffenvs.sim.load import load_model
from tests.sim.points import BALL
from tests.sim.worlds import ASSETS, STEPS, loss_weights, states

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
# the CPU against itself shows that the comparison works where there is no GPU
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]


def differentiated(device, model, law, inputs, control_timestep, timestep):
    """Loss (N,) of three control steps and its gradient by every input and parameter, on the CPU."""
    worlds = len(inputs[0])
    sim = Simulator(
        model,
        law,
        worlds,
        control_timestep=control_timestep,
        timestep=timestep,
        dtype=torch.float64,
        device=device,
        threads=1 if device == "cpu" else None,
    )
    leaves = [x.to(device).requires_grad_(True) for x in (*inputs, *sim.default_parameters().tensors())]
    weights = [w.to(device) for w in loss_weights(model)]
    (qpos, qvel, control), parameters = leaves[:3], Parameters(*leaves[3:])
    total = 0.0
    for _ in range(3):
        motion = sim.simulate(qpos, qvel, control, parameters)
        qpos, qvel = motion.qpos, motion.qvel
        total = total + (weights[0] * qpos).sum(-1) + (weights[1] * qvel).sum(-1)
        total = total + (weights[2] * motion.feet).sum((-1, -2))
    gradients = torch.autograd.grad(total.sum(), leaves, materialize_grads=True)
    return [total.detach().cpu(), *[g.cpu() for g in gradients]]


def assert_alike(device, *arguments):
    """To 1e-9 of the largest number of each array: float64 on both sides, sums in another order."""
    ours, reference = (differentiated(where, *arguments) for where in (device, "cpu"))
    assert reference[2].abs().max() > 0.0
    for a, b in zip(ours, reference, strict=True):
        if b.numel():
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9 * (1.0 + float(b.abs().max())))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_a_robot_moves_alike_on_every_device(robot, law, device):
    model = load_model(ASSETS / f"{robot}.xml")
    assert_alike(device, model, CONTACT[law](), states(model, 4, seed=3), *STEPS[robot])


@pytest.mark.parametrize("device", DEVICES)
def test_one_free_body_without_contact(device):
    """What crashed elsewhere on a GPU and not on the CPU: one body, no foot, no actuator."""
    model = load_model(BALL, contacts=())
    qpos = torch.tensor(model.qpos0)[None].repeat(2, 1)
    qvel = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64).reshape(2, 6)
    assert_alike(device, model, Hard(), (qpos, qvel, torch.zeros(2, 0, dtype=torch.float64)), 0.01, 0.01)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_takes_sixteen_worlds_as_fast_as_one():
    """F6: on a GPU the worlds run side by side."""

    def seconds(worlds):
        model = load_model(ASSETS / "quadruped.xml")
        sim = Simulator(model, Hard(), worlds, control_timestep=0.01, timestep=0.01, device="cuda")
        state = [x.float().cuda() for x in states(model, worlds, seed=3)]
        parameters = sim.default_parameters()
        times = []
        for _ in range(20):
            torch.cuda.synchronize()
            started = time.perf_counter()
            sim.simulate(*state, parameters)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - started)
        return min(times)

    assert seconds(16) < 2.0 * seconds(1)
