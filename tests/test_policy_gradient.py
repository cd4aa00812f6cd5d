"""The gradient that SHAC follows, from the loss of a window to the weights of a policy, in float64.

Where the answer is known: a linear-quadratic problem, whose policy gradient is a product of matrices. Where it is not:
a window of every environment with a restart inside, against central differences of one weight matrix at a time.
"""

import itertools
from dataclasses import dataclass

import pytest
import torch

import diffenvs
from diffenvs import task
from diffenvs.sim.contact import CONTACT
from tests.conftest import CART
from tests.sim.points import tensor

GAMMA = 0.95
# of the cheetah's nine points only two toes walk, of the ant's nine its four feet, which bounce on soft ground, and of
# the humanoid's 19 the eight of its feet
LEAST_CARRIED = {"DiffFallingMass-v0": 0.2, "DiffCheetah-v0": 0.1, "DiffAnt-v0": 0.02, "DiffHumanoid-v0": 0.1}


class Regulator(task.Task):
    """A cart on a rail: state (x, v), force u; costs x'^2 + 0.3 v'^2 + 0.1 u^2 a step."""

    asset = CART
    max_episode_steps = 8
    observation_size = 2

    @dataclass(frozen=True)
    class Config(task.Config):
        control_timestep: float = 0.1
        timestep: float = 0.1

    def initial(self, random, n):
        return self.begin(random.uniform(-0.5, 0.5, 1), random.uniform(-0.2, 0.2, 1))

    def observe(self, state):
        return torch.cat((state.qpos, state.qvel), -1)

    def reward(self, state, action, next_state):
        cost = next_state.qpos.square() + 0.3 * next_state.qvel.square() + 0.1 * action.square()
        return -cost[..., 0]


def closed_form(gain, starts, horizon, terminal):
    """Cost and its gradient by the gain K of u = -K x, averaged over the starts (N, 2) [Fazel et al. 2018, Lemma 1].

    x' = A x + B u of the midpoint step, so that with M = A - B K and P_T the terminal value's matrix
        P_t = K'RK + M'(Q + gamma P_t+1)M,   dJ/dK = 2 sum_t gamma^t (R K - B'(Q + gamma P_t+1)M) x_t x_t'.
    """
    h = 0.1
    a, b = tensor([1.0, h], [0.0, 1.0]), tensor([0.5 * h**2], [h])
    q, r = tensor([1.0, 0.0], [0.0, 0.3]), tensor([0.1])
    loop = a - b @ gain
    values = [terminal]
    for _ in range(horizon):
        values.append(gain.T @ r @ gain + loop.T @ (q + GAMMA * values[-1]) @ loop)
    values.reverse()
    cost = torch.einsum("ni,ij,nj->n", starts, values[0], starts).mean()
    gradient, x = torch.zeros_like(gain), starts
    for t in range(horizon):
        spread = x.T @ x / len(x)
        gradient += 2.0 * GAMMA**t * (r @ gain - b.T @ (q + GAMMA * values[t + 1]) @ loop) @ spread
        x = x @ loop.T
    return cost, gradient


@pytest.mark.parametrize("horizon", [1, 5, 8])
def test_a_linear_quadratic_problem_has_the_gradient_of_its_closed_form(horizon):
    """Cost and policy gradient to rounding, with a terminal value x'Px; in 8 steps that value is a truncation's."""
    env = diffenvs.DiffVecEnv(Regulator, 16, dtype="float64", array_type="torch", threads=1)
    env.reset(seed=0)
    gain = tensor([0.8, 0.6]).requires_grad_(True)
    terminal = tensor([2.0, 0.4], [0.4, 1.0])
    starts = env.observation.clone()
    with env.rollout(horizon) as rollout:
        for _ in range(horizon):
            rollout.step(-rollout.obs @ gain.T)
    assert rollout.actions.abs().max() < 1.0
    assert bool(rollout.truncated.any()) == (horizon == 8)
    loss = -rollout.discounted_return(GAMMA, lambda obs: -torch.einsum("ni,ij,nj->n", obs, terminal, obs))
    loss.backward()
    cost, gradient = closed_form(gain.detach(), starts, horizon, terminal)
    torch.testing.assert_close(loss.detach(), cost, rtol=1e-12, atol=0)
    torch.testing.assert_close(gain.grad, gradient, rtol=1e-10, atol=0)


def test_two_episodes_in_a_window_are_two_problems():
    """Across the restart: the gradient is the closed form's of both starts, each with its value at the end."""
    env = diffenvs.DiffVecEnv(Regulator, 4, dtype="float64", array_type="torch", threads=1)
    env.reset(seed=1)
    gain = tensor([0.8, 0.6]).requires_grad_(True)
    terminal = tensor([2.0, 0.4], [0.4, 1.0])
    with env.rollout(13) as rollout:
        for _ in range(13):
            rollout.step(-rollout.obs @ gain.T)
    assert rollout.truncated[7].all()
    loss = -rollout.discounted_return(GAMMA, lambda obs: -torch.einsum("ni,ij,nj->n", obs, terminal, obs))
    (found,) = torch.autograd.grad(loss, gain)
    starts = rollout.observations[[0, 8]].detach()
    expected = [
        closed_form(gain.detach(), start, steps, terminal)[1] for start, steps in zip(starts, (8, 5), strict=True)
    ]
    torch.testing.assert_close(found, sum(expected), rtol=1e-10, atol=0)


def networks(observations, actions):
    """A policy and a value function in float64, smooth, large enough to matter."""
    generator = torch.Generator().manual_seed(0)

    def layers(*sizes):
        return [
            0.5 * torch.randn(n, m, generator=generator, dtype=torch.float64) / n**0.5
            for n, m in itertools.pairwise(sizes)
        ]

    return layers(observations, 16, actions), layers(observations, 16, 1)


def evaluate(weights, obs):
    for weight in weights[:-1]:
        obs = torch.nn.functional.elu(obs @ weight)
    return obs @ weights[-1]


# 32 control steps are SHAC's own window; soft contact takes ten times the simulation steps
@pytest.mark.parametrize(("law", "horizon"), [("smoothed", 32), ("hard", 32), ("soft", 8)])
def test_the_policy_gradient_of_a_window_is_the_slope_of_its_loss(env_id, law, horizon):
    """Every weight matrix of the policy along its own directions; world 1 is truncated and restarted on the way."""
    env = diffenvs.DiffVecEnv(
        env_id, 4, contact=law, dtype="float64", array_type="torch", threads=1, max_episode_steps=1000
    )
    env.reset(seed=0)
    elapsed = torch.tensor([0, 1000 - horizon // 2, 0, 0])
    env.state = env.state.replace(elapsed=elapsed)
    start = env.state_dict()
    policy, critic = networks(env.task.observation_size, env.task.action_size)

    def loss(policy):
        env.load_state_dict(start)
        with env.rollout(horizon) as rollout:
            for _ in range(horizon):
                rollout.step(torch.tanh(evaluate(policy, rollout.obs)))
        assert rollout.truncated.sum() == 1
        return -rollout.discounted_return(0.99, lambda obs: evaluate(critic, obs))

    leaves = [weight.clone().requires_grad_(True) for weight in policy]
    gradients = torch.autograd.grad(loss(leaves), leaves)
    generator = torch.Generator().manual_seed(1)
    for k, gradient in enumerate(gradients):
        direction = torch.randn(policy[k].shape, generator=generator, dtype=torch.float64)
        errors = []
        # the smallest for a cheetah in full swing, whose loss bends within 1e-6
        for h in (1e-5, 1e-6, 1e-7, 1e-8):
            with torch.no_grad():
                ends = [loss([w + s * h * direction if i == k else w for i, w in enumerate(policy)]) for s in (1, -1)]
            slope = (ends[0] - ends[1]) / (2.0 * h)
            errors.append(abs(float(slope - (gradient * direction).sum())) / float(gradient.norm()))
        print(f"{env_id} {law}, {horizon} steps, layer {k}: norm {float(gradient.norm()):.3g}, error {min(errors):.1e}")
        assert min(errors) < 1e-6


@pytest.mark.parametrize("law", CONTACT)
def test_the_gradient_of_a_shac_window_is_bounded(env_id, law):
    """A23: its norm before any clipping over 32 steps, feet on the ground, one number a law and environment."""
    env = diffenvs.DiffVecEnv(env_id, 16, contact=law, dtype="float64", array_type="torch", threads=1)
    env.reset(seed=0)
    policy, critic = networks(env.task.observation_size, env.task.action_size)
    leaves = [weight.requires_grad_(True) for weight in policy]
    with env.rollout(32) as rollout:
        for _ in range(32):
            rollout.step(torch.tanh(evaluate(leaves, rollout.obs)))
    carried = (env.simulator.contact_impulses()[..., 2] > 1e-6).double()
    assert carried.numel() == 0 or carried.mean() > LEAST_CARRIED.get(env_id, 0.3)
    gradients = torch.autograd.grad(rollout.discounted_return(0.99, lambda obs: evaluate(critic, obs)) / 32, leaves)
    norm = float(torch.cat([g.flatten() for g in gradients]).norm())
    print(f"{env_id} {law}: norm of the gradient of a window {norm:.3g}")
    assert env.nonfinite_gradients == 0
    assert 1e-4 < norm < 1e4
