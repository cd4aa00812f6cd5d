"""Gradients across an automatic restart, against central differences and against exact zeros (A33)."""

import pytest
import torch

import diffenvs
from diffenvs.sim.contact import CONTACT

HORIZON, END = 16, 8


def window(env_id, law, config=None):
    """The environment, the state it begins in, and a window of actions (16, 2, nu); world 0 ends at step 8."""
    # a task's own limit where it is shorter: it may give a reward at its last step alone
    limit = min(100, diffenvs.registry.find(env_id).max_episode_steps)
    env = diffenvs.DiffVecEnv(
        env_id, 2, contact=law, dtype="float64", array_type="torch", threads=1, max_episode_steps=limit, config=config
    )
    env.reset(seed=0)
    env.state = env.state.replace(elapsed=torch.tensor([limit - END, 0]))
    generator = torch.Generator().manual_seed(0)
    actions = torch.rand(HORIZON, 2, env.task.action_size, generator=generator, dtype=torch.float64) - 0.5
    return env, env.state_dict(), actions


def run(env, start, actions):
    env.load_state_dict(start)
    with env.rollout(HORIZON) as rollout:
        for action in actions:
            rollout.step(action)
    return rollout


def test_before_and_after_the_restart_are_strangers(env_id):
    """Rewards and observations of the new episode: zero by every earlier action; the last reward and final_obs: not."""
    env, start, actions = window(env_id, "smoothed")
    actions.requires_grad_()
    rollout = run(env, start, actions)
    assert rollout.truncated.nonzero().tolist() == [[END - 1, 0]]

    def by_actions(value):
        return torch.autograd.grad(value.sum(), actions, retain_graph=True)[0]

    for late in (rollout.rewards[END:, 0], rollout.observations[END:, 0], rollout.final_observations[END:, 0]):
        gradient = by_actions(late)
        assert torch.equal(gradient[:END, 0], torch.zeros_like(gradient[:END, 0]))
        assert torch.equal(gradient[:, 1], torch.zeros_like(gradient[:, 1]))
        assert (gradient[END : HORIZON - 1, 0] != 0).any(1).all()
    for last in (rollout.rewards[END - 1, 0], rollout.final_observations[END - 1, 0]):
        gradient = by_actions(last)
        assert (gradient[:END, 0] != 0).any(1).all()
        assert torch.equal(gradient[END:], torch.zeros_like(gradient[END:]))
    # its neighbour goes on: what comes late depends on early actions
    late = rollout.rewards[END:, 1].sum() + rollout.final_observations[END:, 1].sum()
    assert (by_actions(late)[:END, 1] != 0).any(1).all()


@pytest.mark.parametrize("law", CONTACT)
def test_the_gradient_across_a_restart_is_that_of_differences(env_id, law):
    """Each world's actions before and after the restart on their own: rewards, all observations, final ones too."""
    env, start, actions = window(env_id, law)

    def objective(actions):
        rollout = run(env, start, actions)
        shown = rollout.observations.sin().sum() + rollout.final_observations.cos().sum()
        return rollout.rewards.sum() + 0.1 * shown

    leaf = actions.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(objective(leaf), leaf)
    generator = torch.Generator().manual_seed(1)
    for world in (0, 1):
        for part in (slice(0, END), slice(END, HORIZON)):
            direction = torch.zeros_like(actions)
            direction[part, world] = torch.randn(direction[part, world].shape, generator=generator, dtype=torch.float64)
            errors = []
            for h in (1e-5, 1e-6, 1e-7):
                with torch.no_grad():
                    ends = [objective(actions + s * h * direction) for s in (1, -1)]
                slope = (ends[0] - ends[1]) / (2.0 * h)
                size = float(gradient[part, world].norm())
                errors.append(abs(float(slope - (gradient * direction).sum())) / size)
            assert min(errors) < 1e-6, f"world {world}, steps {part}: {errors}"


def test_a_fall_cuts_the_gradient_as_a_time_limit_does():
    """A world that terminates: its fall carries the gradient of what led to it, and nothing goes on behind it."""
    env, start, actions = window("DiffQuadruped-v0", "smoothed", {"fallen_height": 0.44})
    actions.requires_grad_()
    rollout = run(env, start | {"state.elapsed": torch.zeros(2, dtype=torch.int64)}, actions)
    assert rollout.terminated.any()
    step, world = rollout.terminated.nonzero()[0].tolist()
    assert 0 < step < HORIZON - 2
    rewards = rollout.rewards[:, world]
    (last,) = torch.autograd.grad(rewards[step], actions, retain_graph=True)
    (late,) = torch.autograd.grad(rewards[step + 1 :].sum(), actions)
    assert (last[: step + 1, world] != 0).any(1).all()
    assert torch.equal(late[: step + 1, world], torch.zeros_like(late[: step + 1, world]))
    assert (late[step + 1, world] != 0).any()
