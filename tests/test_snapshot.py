import numpy as np
import pytest
import torch

import diffenvs


def make(env_id="DiffQuadruped-v0", num_envs=4, **kwargs):
    return diffenvs.DiffVecEnv(env_id, num_envs, **{"threads": 1, "array_type": "torch", **kwargs})


def walk(env, steps):
    """Take the environment somewhere."""
    env.reset(seed=0)
    for action in np.random.default_rng(1).uniform(-1, 1, (steps, *env.action_space.shape)):
        env.step(action)


def test_a_state_dict_continues_bit_for_bit(env_id):
    env = make(env_id, max_episode_steps=9)
    walk(env, 5)
    saved = env.state_dict()
    action = torch.zeros(env.action_space.shape)
    expected = [env.step(action) for _ in range(12)]
    for other in (make(env_id, max_episode_steps=9), env):
        other.load_state_dict(saved)
        for step in expected:
            assert all(map(torch.equal, other.step(action)[:4], step[:4]))


def test_a_state_dict_survives_a_file(env_id, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    env = make(env_id)
    walk(env, 3)
    safetensors.save_file(env.state_dict(), tmp_path / "state.safetensors")
    other = make(env_id)
    other.load_state_dict(safetensors.load_file(tmp_path / "state.safetensors"))
    action = torch.zeros(env.action_space.shape)
    assert torch.equal(env.step(action)[0], other.step(action)[0])


def test_a_rollout_begins_with_the_loaded_observation():
    env, other = make(), make()
    walk(env, 3)
    other.load_state_dict(env.state_dict())
    with env.rollout(1) as a, other.rollout(1) as b:
        assert torch.equal(a.obs, b.obs)


def test_a_state_dict_of_other_worlds_is_refused(counter):
    env = make()
    env.reset(seed=0)
    before = env.state_dict()
    others = [make(num_envs=3), make("DiffAnymal-v0"), make(dtype="float64"), counter(4)]
    for other in others:
        other.reset(seed=1)
        with pytest.raises(ValueError, match="state dict"):
            env.load_state_dict(other.state_dict())
    assert all(torch.equal(value, before[name]) for name, value in env.state_dict().items())
