"""SHAC: its gradient, its value targets, and what it does with numbers that are not finite."""

import math

import pytest
import torch
from toy_worlds import Brittle, Cliff, Endless, LinearQuadratic, PointMass

from agents import environment, shac
from agents.shac import Shac, ShacSettings


def linear_agent(horizon, **changes):
    """A linear actor and critic in float64, unclipped, so that the gradient can be written down."""
    options = {"actor_hidden": (), "critic_hidden": (), "last_gain": 0.7, "actor_clip": 1e9, "gamma": 0.9}
    settings = ShacSettings(num_envs=4, horizon=horizon, **(options | changes))
    return Shac(settings, 1, 1, seed=3, dtype=torch.float64)


def begun(kind, n=4, **options):
    envs = kind(n, **options)
    environment.reset(envs, 0)
    return envs


def hand_written_loss(x, weight, bias, log_std, noise, critic, gamma):
    """Minus the discounted return per step; x' = 0.9 x + 0.5 u with u = tanh(weight x + bias + std noise)."""
    total, scale = 0.0, (1.0 + 1e-5) ** -0.5
    for k in range(len(noise)):
        u = torch.tanh(weight * scale * x + bias + log_std.exp() * noise[k])
        x = 0.9 * x + 0.5 * u
        total = total - gamma**k * (x**2 + 0.1 * u**2)
    total = total + gamma ** len(noise) * (critic[0] * scale * x + critic[1])
    return -total.mean() / len(noise)


@pytest.mark.parametrize("horizon", [1, 3, 8])
def test_gradient_is_that_of_the_loss_written_by_hand(horizon):
    agent, envs = linear_agent(horizon), begun(LinearQuadratic, dtype="float64")
    x = envs.observation[:, 0].clone()
    weight, bias, log_std = (
        p.detach().clone().reshape(()).requires_grad_()
        for p in (agent.actor.body.layers[0].weight, agent.actor.body.layers[0].bias, agent.actor.log_std)
    )
    critic = [p.detach().clone().reshape(()) for p in agent.target.parameters()]
    noise = torch.randn(horizon, 4, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)[..., 0]
    loss = hand_written_loss(x, weight, bias, log_std, noise, critic, 0.9)
    loss.backward()

    _, numbers = agent.update(envs, 0)
    found = {name: p.grad for name, p in agent.actor.named_parameters()}
    for name, expected in (
        ("body.layers.0.weight", weight),
        ("body.layers.0.bias", bias),
        ("log_std", log_std),
    ):
        assert float(found[name]) == pytest.approx(float(expected.grad), rel=1e-10), name
    norm = math.sqrt(sum(float(p.grad) ** 2 for p in (weight, bias, log_std)))
    assert numbers["grad_norm"] == pytest.approx(norm, rel=1e-10)

    if horizon == 1:  # and in closed form: d loss / d bias
        scale = (1.0 + 1e-5) ** -0.5
        u = torch.tanh(weight * scale * x + bias + log_std.exp() * noise[0]).detach()
        after = 0.9 * x + 0.5 * u
        by_action = -(after + 0.2 * u) + 0.9 * critic[0] * scale * 0.5
        assert float(bias.grad) == pytest.approx(float(-(by_action * (1.0 - u**2)).mean()), rel=1e-10)


def test_gradient_norm_is_logged_before_clipping():
    agent, envs = linear_agent(3, actor_clip=1e-3), begun(LinearQuadratic, dtype="float64")
    _, numbers = agent.update(envs, 0)
    assert numbers["grad_norm"] > 1e-2
    assert float(agent.actor_optimizer.gradients.norm()) == pytest.approx(1e-3, rel=1e-3)


def test_statistics_change_after_the_window_only():
    agent, envs = linear_agent(5), begun(LinearQuadratic, dtype="float64")
    states, scales, usual = [envs.observation], [], envs.move

    def move(state, action):
        states.append(usual(state, action))
        scales.append(agent.normalizer.scale.clone())
        return states[-1]

    envs.move = move
    agent.update(envs, 0)
    assert len(scales) == 5
    assert all(torch.equal(scale, scales[0]) for scale in scales)
    assert not torch.equal(agent.normalizer.scale, scales[0])
    torch.testing.assert_close(agent.normalizer.mean, torch.stack(states[:5]).mean((0, 1)).detach())


def test_target_critic_moves_by_one_minus_alpha():
    agent, envs = linear_agent(5, target_alpha=0.25), begun(LinearQuadratic, dtype="float64")
    before = agent.target_values.clone()
    agent.update(envs, 0)
    expected = 0.25 * before + 0.75 * agent.critic_optimizer.values
    torch.testing.assert_close(agent.target_values, expected, rtol=0, atol=1e-14)
    assert not torch.equal(agent.target_values, before)


def value_agent():
    # lambda well below 1, so that the targets rest on the values and not on the rewards alone
    rates = {"lr_decay": "linear", "critic_lr": 1e-2, "critic_lr_final": 1e-3, "iterations": 80, "lam": 0.3}
    settings = ShacSettings(num_envs=8, horizon=5, gamma=0.9, critic_hidden=(32,), actor_hidden=(4,), **rates)
    return Shac(settings, 1, 1, seed=0)


def test_a_cut_episode_is_worth_as_much_as_an_endless_one():
    """Reward 1, gamma 0.9, cut after 10 steps: worth 1 / (1 - 0.9) = 10, not (1 - 0.9^10) / 0.1 = 6.5."""
    agent, envs = value_agent(), begun(Endless, 8)
    for iteration in range(80):
        agent.update(envs, iteration)
    assert float(agent.value(torch.zeros(1, 1))) == pytest.approx(10.0, abs=0.1)


def test_a_fall_ends_the_value():
    """The same with a fall in step 10: k steps before it, (1 - 0.9^k) / 0.1; one step before it, 1."""
    agent, envs = value_agent(), begun(Cliff, 8)
    for iteration in range(80):
        agent.update(envs, iteration)
    times = torch.arange(10.0)[:, None] / 10.0
    expected = (1.0 - 0.9 ** (10.0 - torch.arange(10.0))) / 0.1
    torch.testing.assert_close(agent.value(times).detach(), expected, rtol=0, atol=0.3)


def test_targets_are_told_of_cuts_and_falls(monkeypatch):
    given = []
    usual = shac.td_lambda
    monkeypatch.setattr(shac, "td_lambda", lambda *columns: given.append(columns) or usual(*columns))
    for kind in (Endless, Cliff):
        agent, envs = value_agent(), begun(kind, 8)
        for iteration in range(2):
            agent.update(envs, iteration)
    ends = [(bool(terminated.any()), bool(truncated.any())) for _, _, terminated, truncated, *_ in given]
    assert ends == [
        (False, False),
        (False, True),
        (False, False),
        (True, False),
    ]  # windows of 5 steps, ends at 10


def test_a_gradient_that_is_not_finite_is_dropped_and_counted():
    agent, envs = linear_agent(3), begun(LinearQuadratic, dtype="float64")
    agent.update(envs, 0)
    usual = envs.reward
    # sqrt has an infinite slope at 0: a finite reward with a gradient of 0 * inf
    envs.reward = lambda state, action, after: (0.0 * after[:, 0]).sqrt()
    before = agent.actor_optimizer.values.clone()
    moment = agent.actor_optimizer.moment.clone()
    critic = agent.critic_optimizer.values.clone()
    _, numbers = agent.update(envs, 1)
    assert numbers["skipped"] == 1
    assert math.isnan(numbers["grad_norm"])
    assert torch.equal(agent.actor_optimizer.values, before)
    assert torch.equal(agent.actor_optimizer.moment, moment)
    assert not torch.equal(agent.critic_optimizer.values, critic)  # the critic has learned from the finite rewards
    envs.reward = usual
    _, numbers = agent.update(envs, 2)
    assert numbers["skipped"] == 0
    assert math.isfinite(numbers["grad_norm"])
    assert not torch.equal(agent.actor_optimizer.values, before)


def test_layer_norm_is_an_option():
    settings = ShacSettings(num_envs=4, horizon=4, actor_hidden=(8,), critic_hidden=(8,), layer_norm=True)
    agent, envs = Shac(settings, 4, 2, seed=0), begun(PointMass)
    before = agent.actor_optimizer.values.clone(), agent.critic_optimizer.values.clone()
    agent.update(envs, 0)
    assert not torch.equal(agent.actor_optimizer.values, before[0])
    assert not torch.equal(agent.critic_optimizer.values, before[1])
    assert "norms.0.weight" in agent.state_dict()["critic"]


def test_a_broken_world_is_counted_and_poisons_nothing():
    settings = ShacSettings(num_envs=4, horizon=16, actor_hidden=(16,), critic_hidden=(16,))
    agent, envs = Shac(settings, 4, 2, seed=0), begun(Brittle)
    for iteration in range(3):
        window, numbers = agent.update(envs, iteration)
        assert int(window.nonfinite[:, 0].sum()) >= 3
        assert not window.nonfinite[:, 1:].any()
        assert numbers["skipped"] == 0
    for values in (agent.actor_optimizer.values, agent.critic_optimizer.values, agent.normalizer.mean):
        assert torch.isfinite(values).all()


def test_targets_that_are_not_finite_stop_the_training():
    settings = ShacSettings(num_envs=4, horizon=4, actor_hidden=(8,), critic_hidden=(8,))
    agent, envs = Shac(settings, 4, 2, seed=0), begun(PointMass)
    envs.reward = lambda state, action, after: after[:, 0] * math.nan
    with pytest.raises(FloatingPointError, match="value targets"):
        agent.update(envs, 0)
