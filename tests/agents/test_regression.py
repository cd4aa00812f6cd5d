"""The written-out adjoint of the critic against autograd, and that the fit fits."""

import pytest
import torch

from agents.networks import Critic
from agents.optimizer import Adam
from agents.regression import ValueRegression


def regression(hidden=(8, 7), layer_norm=False, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    critic = Critic(5, hidden, layer_norm=layer_norm, generator=generator, dtype=dtype)
    with torch.no_grad():
        for layer in critic.layers:
            layer.bias.normal_(generator=generator)
    return ValueRegression(critic, Adam(critic, (0.7, 0.95)), clip=10.0)


def samples(n=50, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n, 5, generator=generator, dtype=dtype)
    return x, x[:, 0].sin() + x[:, 1] * x[:, 2]


def autograd(fit, x, y):
    """Sum of squares, and gradient of their mean by torch."""
    fit.optimizer.zero()
    loss = torch.nn.functional.mse_loss(fit.critic(x), y)
    loss.backward()
    return loss.detach() * len(x), fit.optimizer.gradients.clone()


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("hidden", [(), (6,), (8, 7), (4, 5, 6)])
def test_adjoint_is_the_gradient(hidden, layer_norm):
    fit = regression(hidden, layer_norm)
    x, y = samples()
    for part in (slice(0, 50), slice(7, 20), slice(0, 1)):
        squares, expected = autograd(fit, x[part], y[part])
        fit.optimizer.gradients.fill_(torch.nan)  # every entry must be written
        torch.testing.assert_close(fit.gradient(x[part], y[part]), squares, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(fit.optimizer.gradients, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_elu_far_from_zero(layer_norm):
    """exp2 of a large input overflows to infinity, which the formula must not let through."""
    fit = regression(layer_norm=layer_norm)
    x, y = 1e3 * samples()[0], samples()[1]
    _, expected = autograd(fit, x, y)
    fit.gradient(x, y)
    assert torch.isfinite(expected).all()
    torch.testing.assert_close(fit.optimizer.gradients, expected)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_fit_lowers_the_error(layer_norm):
    fit = regression((32,), layer_norm, torch.float32)
    x, y = samples(400, torch.float32)
    options = {"passes": 10, "minibatches": 4, "learning_rate": 3e-3}
    generator = torch.Generator().manual_seed(2)
    first = fit.fit(x, y, generator=generator, **options)
    for _ in range(20):
        last = fit.fit(x, y, generator=generator, **options)
    assert last < 0.05 * first


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_samples(n):
    fit = regression()
    x, y = samples(n)
    before = fit.optimizer.values.clone()
    error = fit.fit(x, y, passes=2, minibatches=4, learning_rate=1e-3, generator=torch.Generator())
    assert error > 0
    assert not torch.equal(fit.optimizer.values, before)


def test_same_seed_same_fit():
    x, y = samples()
    results = []
    for _ in range(2):
        fit = regression()
        fit.fit(x, y, passes=3, minibatches=4, learning_rate=1e-2, generator=torch.Generator().manual_seed(3))
        results.append(fit.optimizer.values)
    assert torch.equal(*results)
