"""Each task's docstring is its table of observations, actions and rewards; the code must agree with it."""

import re
import sys
from dataclasses import fields

import pytest
import torch

import diffenvs


def section(text, title):
    """Lines of the table under a title, without its header."""
    body = re.search(rf"^{title}.*\n((?: {{4}}.*\n)+)", text, re.MULTILINE)
    return [line.strip() for line in body[1].splitlines()][1:]


def covered(rows):
    """Indices that the rows of a table stand for, in order."""
    indices = []
    for row in rows:
        first, last = re.match(r"(\d+)(?::(\d+))?\s", row).groups()
        indices += range(int(first), int(last or int(first) + 1))
    return indices


@pytest.fixture
def env(env_id):
    env = diffenvs.DiffVecEnv(env_id, 2, threads=1, array_type="torch")
    env.reset(seed=0)
    return env


@pytest.fixture
def docs(env):
    return sys.modules[type(env.task).__module__].__doc__


def test_observations_are_all_there(env, docs):
    size = env.single_observation_space.shape[0]
    assert covered(section(docs, "Observations")) == list(range(size))
    assert f"Observations ({size})" in docs


def test_actions_are_all_there(env, docs):
    size = env.single_action_space.shape[0]
    assert covered(section(docs, "Actions")) == list(range(size))
    assert f"Actions ({size})" in docs


def test_rewards_are_all_there_with_their_weights(env, docs):
    written = {row.split()[0]: float(row.split()[-1]) for row in section(docs, "Rewards")}
    config = env.task.config
    assert written == {
        f.name.removesuffix("_weight"): getattr(config, f.name) for f in fields(config) if f.name.endswith("_weight")
    }
    terms = env.task.reward_terms(env.state, env.state.action, env.state)
    assert list(terms) == list(written)
    assert all(value.shape == (2,) for value in terms.values())


def test_every_weight_acts_on_its_own_term(env_id, env):
    state, next_state = env.state, env.state.replace(qvel=env.state.qvel + 0.5)
    action = torch.full(env.action_space.shape, 0.3)
    terms = env.task.reward_terms(state, action, next_state)
    for name in terms:
        weight = getattr(env.task.config, f"{name}_weight")
        double = {f"{name}_weight": 2 * weight}
        other = type(env.task)(env.model, double).reward_terms(state, action, next_state)
        for other_name, value in other.items():
            torch.testing.assert_close(value, terms[other_name] * (2.0 if other_name == name else 1.0))


def test_a_window_is_rewarded_as_its_steps_are(env):
    window = env.state.map(lambda value: torch.stack((value, value)))
    action = torch.full((2, *env.action_space.shape), 0.3)
    one = env.task.reward(env.state, action[0], env.state)
    torch.testing.assert_close(env.task.reward(window, action, window), torch.stack((one, one)))
