"""Making and beginning environments."""

import gymnasium as gym
import pytest
from toy_worlds import PointMass

from agents import environment

OPTIONS = {"contact": "smoothed", "device": "cpu", "dtype": "float64", "threads": 1}


def test_the_environment_gets_what_was_asked_for():
    envs = environment.make("toy_worlds:PointMass-v0", 3, **(OPTIONS | {"contact": "hard"}))
    assert (envs.num_envs, envs.contact, str(envs.dtype)) == (3, "hard", "torch.float64")
    assert environment.widths(envs) == (4, 2)
    assert environment.reset(envs, 0).shape == (3, 4)


def seeds_of(seed, n=64):
    envs, given = PointMass(n), []
    usual = envs.reset
    envs.reset = lambda *, seed, options: given.extend(seed) or usual(seed=seed, options=options)
    environment.reset(envs, seed)
    return given


def test_runs_with_neighbouring_seeds_share_no_world():
    first, second = seeds_of(0), seeds_of(1)
    assert len(set(first)) == 64
    assert not set(first) & set(second)
    assert seeds_of(0) == first
    assert seeds_of(0, 8) == first[:8]


def test_stagger_reaches_the_environment():
    envs = PointMass(20)
    environment.reset(envs, 0, stagger=True)
    assert len(set(envs.elapsed.tolist())) > 5
    environment.reset(envs, 0)
    assert not envs.elapsed.any()


def test_refusals():
    with pytest.raises(ValueError, match="Nothing"):
        environment.make("toy_worlds:Nothing-v0", 1, **OPTIONS)
    with pytest.raises(ValueError, match="contact is 'sticky'"):
        environment.make("toy_worlds:PointMass-v0", 1, **(OPTIONS | {"contact": "sticky"}))
    with pytest.raises(ValueError, match="network_threads is 0"):
        environment.use_threads(0)


def test_an_environment_without_rollouts_is_refused():
    class Plain(PointMass):
        def __getattribute__(self, name):
            if name == "rollout":
                raise AttributeError(name)
            return super().__getattribute__(name)

    gym.register("Plain-v0", vector_entry_point=Plain)
    try:
        with pytest.raises(ValueError, match=r"has no rollout\(\)"):
            environment.make("toy_worlds:Plain-v0", 1, **OPTIONS)
    finally:
        del gym.registry["Plain-v0"]
