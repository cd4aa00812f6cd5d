import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

import diffenvs
from diffenvs.autoreset import read_mask, read_seeds, staggered
from diffenvs.random import WorldRandom


def test_the_trace_of_two_counting_worlds(counter):
    """Limit 3; world 0 ends itself by an action above 0.5, twice.

    step      1      2      3      4      5      6
    action 0  0      1      0      0      1      0
    world 0   1      2 T>0  1      2      3 TX>0 1        T terminated, X truncated, >0 restarted
    world 1   1      2      3 X>0  1      2      3 X>0
    """
    env = counter(2, array_type="numpy")
    env.reset(seed=0)
    seen = []
    for action in (0.0, 1.0, 0.0, 0.0, 1.0, 0.0):
        obs, reward, terminated, truncated, info = env.step(np.array([[action], [0.25]]))
        ends = info["final_obs"][:, 0].tolist() if "final_obs" in info else None
        mask = info["_final_obs"].tolist() if "final_obs" in info else None
        seen.append((obs[:, 0].tolist(), terminated.tolist(), truncated.tolist(), ends, mask))
        assert reward.tolist() == [1.0, 1.0]
        # the action that led to an observation is part of it, and gone after a restart
        restarted = terminated | truncated
        assert obs[:, 1].tolist() == np.where(restarted, 0.0, [action, 0.25]).tolist()
        if "final_obs" in info:
            assert info["final_obs"][:, 1].tolist() == [action, 0.25]
            assert info["_final_info"].tolist() == restarted.tolist()
            assert info["final_info"]["metrics"]["position"].tolist() == info["metrics"]["position"].tolist()
    no = [False, False]
    assert seen == [
        ([1.0, 1.0], no, no, None, None),
        ([0.0, 2.0], [True, False], no, [2.0, 2.0], [True, False]),
        ([1.0, 0.0], no, [False, True], [1.0, 3.0], [False, True]),
        ([2.0, 1.0], no, no, None, None),
        ([0.0, 2.0], [True, False], [True, False], [3.0, 2.0], [True, False]),
        ([1.0, 0.0], no, [False, True], [1.0, 3.0], [False, True]),
    ]


def test_a_disabled_reset_leaves_the_worlds_where_they_are(counter):
    env = counter(2, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    for step in (1, 2, 3, 4):
        obs, _, _, truncated, info = env.step(np.zeros((2, 1)))
        assert obs[:, 0].tolist() == [step, step]
        assert truncated.tolist() == [step >= 3] * 2
        assert "final_obs" not in info
    obs, _ = env.reset(options={"reset_mask": np.array([False, True])})
    assert obs[:, 0].tolist() == [4.0, 0.0]


def test_a_partial_reset_is_a_restart_of_these_worlds(counter):
    env, other = counter(3, max_episode_steps=50), counter(3, max_episode_steps=50)
    for e in (env, other):
        e.reset(seed=0)
        e.step(np.zeros((3, 1)))
    env.reset(options={"reset_mask": np.array([False, True, False])})
    # what the world itself would have drawn at its next restart
    other.step(np.array([[0.0], [1.0], [0.0]]))
    assert env.state.qpos[1].item() == other.state.qpos[1].item()
    assert env.state.elapsed.tolist() == [1, 0, 1]


def test_a_mask_is_judged(counter):
    worlds = torch.arange(3)
    assert read_mask(np.array([True, False, True]), None, worlds).tolist() == [0, 2]
    for mask in ([True, False], [1, 0, 1], [False] * 3):
        with pytest.raises(ValueError, match=r"reset_mask is .* expected booleans of shape \(3,\)"):
            read_mask(np.array(mask), None, worlds)
    with pytest.raises(ValueError, match="takes no seed"):
        read_mask(np.array([True, False, True]), 4, worlds)


def test_seeds_are_one_per_world():
    assert read_seeds(3, 4) == read_seeds(np.int64(3), 4) == [3, 4, 5, 6]
    assert read_seeds((9, 2), 2) == [9, 2]


def test_staggered_ages_fill_the_episode():
    ages = staggered(WorldRandom(range(4000)).select(), torch.zeros(4000, dtype=torch.int64), 10)
    counts = torch.bincount(ages, minlength=10)
    assert len(counts) == 10
    assert (counts - 400).abs().max() < 5 * 400**0.5


def test_staggered_worlds_are_truncated_apart(counter):
    env = counter(50, max_episode_steps=20)
    env.reset(seed=0, options={"stagger": True})
    ages = env.state.elapsed.clone()
    ends = torch.zeros_like(ages)
    for step in range(1, 21):
        *_, truncated, _ = env.step(np.zeros((50, 1)))
        assert truncated.shape == (50,)
        ends[torch.from_numpy(truncated)] = step
    assert torch.equal(ends, 20 - ages)
    assert len(torch.unique(ends)) > 10


@pytest.mark.parametrize("law", ["smoothed", "hard", "soft"])
def test_neighbours_of_a_restarted_world_do_not_notice(env_id, law):
    """World 1 is truncated after two of six steps, or it is not: the others are equal to the last bit, in
    values and in gradients with respect to actions, through a policy that looks at the observations, rewards
    and values.
    """

    def run(age):
        env = diffenvs.DiffVecEnv(env_id, 3, contact=law, threads=1, array_type="torch", max_episode_steps=50)
        env.reset(seed=0)
        elapsed = torch.tensor([0, age, 0])
        # the task may show its age in its observations, so only worlds 0 and 2 are compared
        env.state = env.state.replace(elapsed=elapsed)
        actions = torch.full((6, 3, env.task.action_size), 0.1, requires_grad=True)
        gain = torch.full((env.task.observation_size, env.task.action_size), 1e-3)
        with env.rollout(6) as rollout:
            for action in actions:
                rollout.step(action + torch.tanh(rollout.obs @ gain))
        rollout.discounted_return(0.9, lambda obs: obs.square().sum(-1)).backward()
        tensors = (rollout.observations, rollout.final_observations, rollout.rewards, actions.grad)
        return rollout, [tensor.detach()[:, [0, 2]] for tensor in tensors]

    (with_restart, seen), (without, expected) = run(48), run(0)
    assert with_restart.truncated[1].tolist() == [False, True, False]
    assert not without.truncated.any()
    for a, b in zip(seen, expected, strict=True):
        assert torch.equal(a, b)
    assert all((tensor != 0).any() for tensor in expected)


def test_no_gradient_crosses_a_restart(env_id):
    env = diffenvs.DiffVecEnv(env_id, 2, threads=1, array_type="torch", max_episode_steps=50)
    env.reset(seed=0)
    env.state = env.state.replace(elapsed=torch.tensor([0, 48]))
    actions = torch.full((4, *env.action_space.shape), 0.1, requires_grad=True)
    with env.rollout(4) as rollout:
        for action in actions:
            rollout.step(action)
    after = rollout.rewards[2:].sum() + rollout.final_observations[2:].sum()
    (late,) = torch.autograd.grad(after, actions, retain_graph=True)
    assert (late[:2, 1] == 0).all()
    assert (late[:2, 0] != 0).any()
    # what the fresh world shows first depends on nothing, what the ended one showed last on all its actions
    (shown,) = torch.autograd.grad(rollout.observations[2, 1].sum(), actions, retain_graph=True)
    (last,) = torch.autograd.grad(rollout.final_observations[1, 1].sum(), actions)
    assert (shown == 0).all()
    assert (last[:2, 1] != 0).any(-1).all()


def test_a_final_observation_is_the_state_before_the_restart(env_id):
    kwargs = {"threads": 1, "array_type": "torch"}
    short = diffenvs.DiffVecEnv(env_id, 3, max_episode_steps=3, **kwargs)
    long = diffenvs.DiffVecEnv(env_id, 3, **kwargs)
    short.reset(seed=0), long.reset(seed=0)
    action = torch.full(short.action_space.shape, 0.2)
    for _ in range(3):
        (obs, *_, info), (going_on, *_) = short.step(action), long.step(action)
    assert torch.equal(info["final_obs"], going_on)
    assert not torch.equal(obs, going_on)


def test_looking_at_final_observations_changes_nothing(counter):
    """The same stream whether or not a rollout's final observations and metrics are asked for."""

    def run(look):
        env = counter(2, array_type="torch")
        env.reset(seed=0)
        told = []
        for _ in range(3):
            with env.rollout(4) as rollout:
                for _ in range(4):
                    step = rollout.step(torch.zeros(2, 1))
                    if look:
                        assert step.final_obs.sum() + step.reward.sum() != 0
            told.append(rollout.observations)
            if look:
                assert rollout.final_observations.sum() + rollout.metrics["position"].sum() != 0
        return torch.cat(told)

    assert torch.equal(run(True), run(False))


def test_a_restart_draws_parameters_out_of_place():
    env = diffenvs.DiffVecEnv("DiffAnymal-v0", 3, threads=1, array_type="torch", max_episode_steps=50)
    env.reset(seed=0)
    env.state = env.state.replace(elapsed=torch.tensor([0, 49, 0]))
    before, copy = env.parameters, env.parameters.friction.clone()
    env.step(torch.zeros(3, 12))
    assert torch.equal(before.friction, copy)
    changed = env.parameters.friction != copy
    assert changed.tolist() == [False, True, False]
    assert (env.parameters.mass[:, 0] != before.mass[:, 0]).tolist() == [False, True, False]
    assert env.parameters.kp is before.kp
