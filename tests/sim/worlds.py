"""Small simulations for the tests: models, random states near the ground, and a rollout's loss."""

from pathlib import Path

import numpy as np
import torch

import diffenvs
from diffenvs.bridge import Simulator
from diffenvs.sim.load import load_model

ASSETS = Path(diffenvs.__file__).parent / "assets"
STEPS = {"quadruped": (0.01, 0.01), "anymal_d": (0.02, 0.005)}


def simulator(robot: str, law, worlds: int, dtype=torch.float64, **options) -> Simulator:
    """The robot as its task has it: at its steps, without joint limits."""
    control_timestep, timestep = STEPS[robot]
    model = load_model(ASSETS / f"{robot}.xml", limits=False)
    return Simulator(model, law, worlds, control_timestep=control_timestep, timestep=timestep, dtype=dtype, **options)


def states(model, worlds: int, seed: int, dtype=torch.float64):
    """qpos, qvel and control of robots on, in and just above the ground."""
    rng = np.random.default_rng(seed)
    qpos = np.tile(model.home, (worlds, 1))
    qpos[:, :2] = rng.normal(size=(worlds, 2))
    qpos[:, 2] += rng.uniform(-0.03, 0.03, worlds)
    qpos[:, 3:7] += 0.05 * rng.normal(size=(worlds, 4))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    qpos[:, 7:] += rng.uniform(-0.2, 0.2, (worlds, model.nu))
    qvel = 0.5 * rng.normal(size=(worlds, model.nv))
    control = model.home[7:] + rng.uniform(-0.3, 0.3, (worlds, model.nu))
    return tuple(torch.tensor(x, dtype=dtype) for x in (qpos, qvel, control))


def rollout_loss(sim: Simulator, qpos, qvel, controls, parameters, weights):
    """One number per world (N,): weighted states and feet of every control step."""
    total = 0.0
    for control in controls:
        motion = sim.simulate(qpos, qvel, control, parameters)
        qpos, qvel = motion.qpos, motion.qvel
        total = total + (weights[0] * qpos).sum(-1) + (weights[1] * qvel).sum(-1)
        total = total + (weights[2] * motion.feet).sum((-1, -2))
    return total


def loss_weights(model, seed: int = 7):
    """Fixed random weights of ``rollout_loss``."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(model.nq,), (model.nv,), (model.ncontact, 3)]
    return [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
