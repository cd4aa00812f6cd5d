import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics, RescaleAction, TimeLimit

import diffenvs


def drawable():
    """Whether MuJoCo can open an off-screen context; asked in a process of its own, where it may crash."""
    code = """
from diffenvs import load_model, registry, render
render.Renderer(load_model(registry.locate("quadruped.xml")))
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def graphics():
    if not drawable():
        pytest.skip("no OpenGL library for off-screen drawing on this machine")


def test_gymnasiums_checker_is_content(env_id, graphics):
    """Warnings are errors in this test suite."""
    check_env(gym.make(env_id).unwrapped)


def test_gymnasiums_checker_is_content_without_pictures(env_id):
    check_env(gym.make(env_id).unwrapped, skip_render_check=True)


def test_types_are_those_of_gymnasium(env_id):
    env = gym.make(env_id)
    obs, info = env.reset(seed=0)
    assert obs.dtype == np.float32
    assert obs.shape == env.observation_space.shape
    assert info == {}
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert type(reward) is float
    assert type(terminated) is type(truncated) is bool
    assert info["nonfinite"] is False
    assert all(type(value) is float for name, value in info.items() if name != "nonfinite")
    assert env.metadata["render_fps"] == round(1 / env.unwrapped.worlds.task.control_timestep)


@pytest.mark.parametrize(("limit", "length"), [(None, 1000), (7, 7), (5000, 5000)])
def test_the_time_limit_is_the_one_asked_for(limit, length):
    """Truncated once, at the limit; no second limit hides behind Gymnasium's."""
    # a robot that may lie down lives on
    env = gym.make("DiffQuadruped-v0", max_episode_steps=limit, config={"fallen_height": -1e9})
    assert isinstance(env, TimeLimit)
    env.reset(seed=0)
    action = np.zeros(12, np.float32)
    flags = [env.step(action)[2:4] for _ in range(length)]
    assert not any(terminated for terminated, _ in flags)
    assert [truncated for _, truncated in flags] == [False] * (length - 1) + [True]


def test_without_a_limit_it_goes_on(counter):
    env = diffenvs.SingleEnv("DiffQuadruped-v0", config={"fallen_height": -1e9})
    env.reset(seed=0)
    assert not any(env.step(np.zeros(12))[3] for _ in range(1200))


def test_statistics_and_rescaled_actions():
    env = gym.make("DiffQuadruped-v0", max_episode_steps=4)
    env = RecordEpisodeStatistics(RescaleAction(env, np.float32(0.0), np.float32(1.0)))
    env.reset(seed=0)
    rewards = []
    for _ in range(4):
        _, reward, _, truncated, info = env.step(np.full(12, 0.5, np.float32))
        rewards.append(reward)
    assert truncated
    assert info["episode"]["l"] == 4
    assert info["episode"]["r"] == pytest.approx(sum(rewards))


def test_a_broken_world_ends_its_episode():
    env = gym.make("DiffQuadruped-v0").unwrapped
    env.reset(seed=0)
    qvel = env.worlds.state.qvel.clone()
    qvel[0, 6:] = 1e30
    env.worlds.state = env.worlds.state.replace(qvel=qvel)
    _, _, terminated, _, info = env.step(np.zeros(12))
    assert terminated
    assert info["nonfinite"] is True
    obs, _ = env.reset()
    assert np.abs(obs).max() < 10


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (np.zeros(11), ValueError, r"action has shape \(11,\); one world expects \(12,\)"),
        (np.zeros((1, 12)), ValueError, r"action has shape \(1, 12\); one world expects \(12,\)"),
        (0.0, ValueError, r"action has shape \(\)"),
        (np.full(12, np.nan), ValueError, "action of world 0 holds nan"),
        (np.zeros(12, complex), TypeError, "action has dtype complex128"),
    ],
)
def test_a_bad_action_changes_nothing(action, error, words):
    env, other = (gym.make("DiffQuadruped-v0").unwrapped for _ in range(2))
    env.reset(seed=0), other.reset(seed=0)
    with pytest.raises(error, match=words):
        env.step(action)
    assert np.array_equal(env.step([0.0] * 12)[0], other.step(np.zeros(12))[0])


def lives(env_id, mode, num_envs=2):
    """What the worlds show under pseudo-random actions, with restarts in it."""
    native = mode == "vector_entry_point"
    kwargs = {"vector_kwargs": {"autoreset_mode": AutoresetMode.SAME_STEP}} if not native else {"threads": 1}
    env = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode=mode, max_episode_steps=6, **kwargs)
    random = np.random.default_rng(0)
    shown = [env.reset(seed=4)[0]]
    ends = []
    for _ in range(15):
        obs, reward, terminated, truncated, info = env.step(
            random.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        )
        shown += [obs, reward.astype(np.float32), terminated, truncated]
        if "final_obs" in info:
            ends += [info["final_obs"][i].astype(np.float32) for i in np.flatnonzero(info["_final_obs"])]
            assert (info["_final_obs"] == (terminated | truncated)).all()
    env.close()
    return shown + ends


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_every_kind_of_vectorisation_lives_the_same_lives(env_id, mode):
    ours, theirs = lives(env_id, "vector_entry_point"), lives(env_id, mode)
    assert len(ours) == len(theirs) > 60
    for a, b in zip(ours, theirs, strict=True):
        assert np.allclose(a, b, rtol=1e-6, atol=1e-6)


def test_a_single_world_is_world_0():
    single = gym.make("DiffAnymal-v0")
    many = gym.make_vec("DiffAnymal-v0", num_envs=5, threads=1)
    assert np.array_equal(single.reset(seed=2)[0], many.reset(seed=2)[0][0])
    action = np.linspace(-1, 1, 12, dtype=np.float32)
    for _ in range(10):
        assert np.array_equal(single.step(action)[0], many.step(np.tile(action, (5, 1)))[0][0])


def test_pictures(env_id, graphics):
    env = gym.make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    assert frame.max() > frame.min()
    env.close()
    env.close()
    many = gym.make_vec(env_id, num_envs=2, render_mode="rgb_array", threads=1)
    many.reset(seed=0)
    frames = many.render()
    assert len(frames) == 2
    assert all(f.shape == frame.shape for f in frames)
    many.close()


def test_fifty_environments_come_and_go():
    for seed in range(50):
        env = gym.make("DiffQuadruped-v0")
        env.reset(seed=seed)
        env.step(np.zeros(12, np.float32))
        env.close()
