"""Networks: where they begin and what they compute."""

import copy

import pytest
import torch

from agents.networks import Actor, Critic, Mlp


def options(**changes):
    return {
        "layer_norm": False,
        "generator": torch.Generator().manual_seed(0),
        "dtype": torch.float64,
    } | changes


def actor(**changes):
    arguments = options(log_std=-1.0, squash=True, last_gain=0.1) | changes
    return Actor(5, (8, 6), 3, **arguments)


def test_layers_begin_orthogonal():
    network = Mlp((5, 8, 6, 3), last_gain=0.1, **options())
    for layer, gain in zip(network.layers, (2.0**0.5, 2.0**0.5, 0.1), strict=True):
        singular = torch.linalg.svdvals(layer.weight.detach())
        torch.testing.assert_close(singular, torch.full_like(singular, gain))
        assert not layer.bias.any()


@pytest.mark.parametrize("layer_norm", [False, True])
def test_forward_is_the_formula(layer_norm):
    network = Mlp((5, 8, 3), last_gain=1.0, **options(layer_norm=layer_norm))
    x = torch.randn(2, 4, 5, dtype=torch.float64)
    hidden = torch.nn.functional.elu(x @ network.layers[0].weight.T + network.layers[0].bias)
    if layer_norm:
        centred = hidden - hidden.mean(-1, keepdim=True)
        hidden = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(network(x), hidden @ network.layers[1].weight.T + network.layers[1].bias)


def test_a_copy_has_parameters_of_its_own():
    critic = Critic(5, (8,), **options())
    twin = copy.deepcopy(critic)
    x = torch.randn(4, 5, dtype=torch.float64)
    before = twin(x)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.add_(1.0)
    assert torch.equal(twin(x), before)
    assert before.shape == (4,)
    assert not torch.equal(critic(x), before)


def test_samples_are_mean_plus_scaled_noise():
    policy = actor(squash=False)
    x, noise = torch.randn(4, 5, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    torch.testing.assert_close(policy(x, noise) - policy(x), noise * torch.tensor(-1.0).exp())


def test_squashed_actions_stay_inside_with_a_gradient():
    policy = actor()
    x = torch.randn(4, 5, dtype=torch.float64)
    action = policy(x, torch.full((4, 3), 20.0, dtype=torch.float64))
    assert (action.abs() <= 1.0).all()
    policy(x).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in policy.body.parameters())


def test_the_small_last_layer_keeps_tanh_unsaturated():
    x = 3.0 * torch.randn(500, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert actor()(x).abs().max() < 0.9
    assert actor(last_gain=2.0**0.5)(x).abs().max() > 0.99
