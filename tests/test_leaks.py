"""Two hundred rollouts cost no more memory than one, whatever becomes of them (F3); nor do frames (F10)."""

import ctypes
import gc
import os

import numpy as np
import pytest
import torch

import diffenvs
from diffenvs.render import Renderer

PAGE = os.sysconf("SC_PAGE_SIZE")
ROLLOUTS = 200
# [bytes] the allocator's own ups and downs; one rollout of 64 worlds x 4 steps keeps 0.13 MB for its backward pass
SLACK = 4e6


def resident() -> int:
    """Memory of this process [bytes], what earlier tests have freed not among it."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * PAGE


def window(env, actions):
    with env.rollout(len(actions)) as rollout:
        for action in actions:
            rollout.step(action)
        return rollout.discounted_return(0.99)


def differentiated(env, actions):
    actions.grad = None
    window(env, actions).backward()


def dropped(env, actions):
    assert window(env, actions).requires_grad


def interrupted(env, actions):
    def broken():
        with env.rollout(len(actions)) as rollout:
            rollout.step(actions[0])
            rollout.step(actions[1] / (1 // 0))

    with pytest.raises(ZeroDivisionError):
        broken()


def restarted(env, actions):
    env.reset(seed=1)
    differentiated(env, actions)


def growth(work) -> int:
    for _ in range(30):
        work()
    before = resident()
    for _ in range(ROLLOUTS):
        work()
    return resident() - before


@pytest.mark.parametrize("use", [differentiated, dropped, interrupted, restarted])
def test_two_hundred_rollouts_leave_nothing(use):
    env = diffenvs.DiffVecEnv("DiffQuadruped-v0", num_envs=64, contact="smoothed", threads=1)
    env.reset(seed=0)
    actions = torch.zeros(4, 64, 12, requires_grad=True)
    assert growth(lambda: use(env, actions)) < SLACK


def test_a_leak_of_one_tensor_a_rollout_would_show():
    env = diffenvs.DiffVecEnv("DiffQuadruped-v0", num_envs=64, contact="smoothed", threads=1)
    env.reset(seed=0)
    actions = torch.zeros(4, 64, 12, requires_grad=True)
    kept = []
    assert growth(lambda: kept.append(window(env, actions))) > SLACK


def test_frames_leave_nothing():
    model = diffenvs.DiffVecEnv("DiffQuadruped-v0", num_envs=1).model
    try:
        renderer = Renderer(model, width=64, height=48)
    except RuntimeError as error:
        pytest.skip(str(error))
    with renderer:
        assert growth(lambda: np.add(renderer.frame(model.home), 0)) < SLACK


def test_a_thousand_steps_keep_what_is_documented():
    """Every control step is a segment of its own, recomputed in the backward pass: 520 B a world and step stay."""
    worlds, horizon = 16, 1000
    env = diffenvs.DiffVecEnv("DiffQuadruped-v0", num_envs=worlds, contact="smoothed", threads=1)
    env.reset(seed=0)
    actions = torch.zeros(worlds, 12, requires_grad=True)
    window(env, [actions] * 50).backward()
    before = resident()
    loss = window(env, [actions] * horizon)
    # beside it torch's graph of a control step, objects of 50 kB in all whatever the number of worlds
    assert resident() - before < 520 * worlds * horizon + 60_000 * horizon
    actions.grad = None
    loss.backward()
    assert actions.grad.isfinite().all()
    assert actions.grad.abs().max() > 0.0
