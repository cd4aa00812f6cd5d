"""PPO: its gradient, its value targets, its learning rate, and odd numbers of worlds."""

import math

import pytest
import torch
from toy_worlds import Cliff, Endless, LinearQuadratic, PointMass

from agents import environment
from agents.ppo import Ppo, PpoSettings, log_probability
from agents.returns import gae


def begun(kind, n=4, **options):
    envs = kind(n, **options)
    environment.reset(envs, 0)
    return envs


def test_log_probability():
    generator = torch.Generator().manual_seed(0)
    action, mean = (torch.randn(5, 3, generator=generator) for _ in range(2))
    log_std = torch.tensor([-1.0, 0.0, 0.5])
    expected = torch.distributions.Normal(mean, log_std.exp()).log_prob(action).sum(-1)
    torch.testing.assert_close(log_probability(action, mean, log_std), expected)


def test_first_step_is_the_policy_gradient():
    """One pass of one minibatch: the ratio is 1, so d loss / d bias = -mean(advantage * noise / std)."""
    settings = PpoSettings(num_envs=4, horizon=6, actor_hidden=(), critic_hidden=(), passes=1, minibatches=1,
                           grad_clip=1e9, gamma=0.9, lam=0.8, log_std=-0.5, entropy_weight=0.01)  # fmt: skip
    agent, envs = Ppo(settings, 1, 1, seed=3, dtype=torch.float64), begun(LinearQuadratic, dtype="float64")
    critic = [p.detach().clone().reshape(()) for p in agent.critic.parameters()]
    noise = torch.randn(6, 4, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)[..., 0]
    x, weight = envs.observation[:, 0], float(agent.actor.body.layers[0].weight.detach())
    scale, rows = (1.0 + 1e-5) ** -0.5, []
    for k in range(6):
        u = (weight * scale * x + math.exp(-0.5) * noise[k]).clamp(-1.0, 1.0)
        after = 0.9 * x + 0.5 * u
        rows.append(
            (
                -(after**2 + 0.1 * u**2),
                critic[0] * scale * x + critic[1],
                critic[0] * scale * after + critic[1],
            )
        )
        x = after
    rewards, values, next_values = (torch.stack(column) for column in zip(*rows, strict=True))
    never = torch.zeros(6, 4, dtype=torch.bool)
    advantages = gae(rewards, values, next_values, never, never, 0.9, 0.8)
    value_gradient = -2.0 * advantages.mean()  # of mean((V - returns)^2) by the critic's bias
    advantages = (advantages - advantages.mean()) / advantages.std(correction=0)

    agent.update(envs, 0)
    std = math.exp(-0.5)
    gradient = {name: float(p.grad) for name, p in agent.actor.named_parameters()}
    assert gradient["body.layers.0.bias"] == pytest.approx(float(-(advantages * noise / std).mean()), rel=1e-6)
    expected = float(-(advantages * (noise**2 - 1.0)).mean()) - 0.01  # d entropy / d log_std = 1
    assert gradient["log_std"] == pytest.approx(expected, rel=1e-6)
    assert float(agent.critic.layers[0].bias.grad) == pytest.approx(float(value_gradient), rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_any_number_of_worlds(n):
    for horizon in (24, 1):
        settings = PpoSettings(num_envs=n, horizon=horizon, actor_hidden=(8,), critic_hidden=(8,))
        agent, envs = Ppo(settings, 4, 2, seed=0), begun(PointMass, n)
        before = agent.optimizer.values.clone()
        for iteration in range(2):
            window, numbers = agent.update(envs, iteration)
        assert window.rewards.shape == (horizon, n)
        assert numbers["skipped"] == 0
        assert torch.isfinite(agent.optimizer.values).all()
        assert not torch.equal(agent.optimizer.values, before)


def value_agent():
    # lambda well below 1, so that the targets rest on the values and not on the rewards alone
    rates = {"lam": 0.6, "lr": 5e-3, "lr_range": (5e-3, 5e-3), "passes": 10, "minibatches": 2}
    settings = PpoSettings(num_envs=8, horizon=5, gamma=0.9, critic_hidden=(32,), actor_hidden=(4,), **rates)
    return Ppo(settings, 1, 1, seed=0)


def test_a_cut_episode_is_worth_as_much_as_an_endless_one():
    """Reward 1, gamma 0.9, cut after 10 steps: worth 1 / (1 - 0.9) = 10, not (1 - 0.9^10) / 0.1 = 6.5."""
    agent, envs = value_agent(), begun(Endless, 8)
    for iteration in range(100):
        agent.update(envs, iteration)
    assert float(agent.critic(agent.normalizer(torch.zeros(1, 1))).detach()) == pytest.approx(10.0, abs=0.1)


def test_a_fall_ends_the_value():
    """The same with a fall in step 10: k steps before it, (1 - 0.9^k) / 0.1; one step before it, 1."""
    agent, envs = value_agent(), begun(Cliff, 8)
    for iteration in range(100):
        agent.update(envs, iteration)
    times = torch.arange(10.0)[:, None] / 10.0
    expected = (1.0 - 0.9 ** (10.0 - torch.arange(10.0))) / 0.1
    torch.testing.assert_close(agent.critic(agent.normalizer(times)).detach(), expected, rtol=0, atol=0.3)


# KL of Gaussians with equal std 1 is half the squared distance of the means.
@pytest.mark.parametrize(("distance", "factor"), [(0.0, 1.0), (0.05, 1.5), (0.12, 1.0), (0.14, 1.0), (0.25, 1 / 1.5)])
def test_learning_rate_follows_the_divergence(distance, factor):
    agent = Ppo(PpoSettings(desired_kl=0.01), 1, 1, seed=0)
    mean, log_std = torch.zeros(5, 1), torch.zeros(1)
    agent._adapt(mean + distance, log_std, mean, log_std)
    assert agent.learning_rate == pytest.approx(1e-3 * factor)
    for _ in range(20):
        agent._adapt(mean + distance, log_std, mean, log_std)
    assert 1e-5 <= agent.learning_rate <= 1e-2


def test_a_gradient_that_is_not_finite_is_dropped_and_counted():
    settings = PpoSettings(num_envs=4, horizon=4, actor_hidden=(8,), critic_hidden=(8,), passes=1, minibatches=1)
    agent, envs = Ppo(settings, 4, 2, seed=0), begun(PointMass)
    agent.update(envs, 0)
    before = agent.optimizer.values.clone()
    handle = agent.actor.log_std.register_hook(lambda gradient: gradient * math.nan)
    _, numbers = agent.update(envs, 1)
    handle.remove()
    assert numbers["skipped"] == 1
    assert torch.equal(agent.optimizer.values, before)


def test_rewards_that_are_not_finite_stop_the_training():
    settings = PpoSettings(num_envs=4, horizon=4, actor_hidden=(8,), critic_hidden=(8,))
    agent, envs = Ppo(settings, 4, 2, seed=0), begun(PointMass)
    envs.reward = lambda state, action, after: after[:, 0] * math.nan
    with pytest.raises(FloatingPointError, match="advantages"):
        agent.update(envs, 0)
