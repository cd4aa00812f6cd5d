"""Observation statistics against NumPy."""

import numpy as np
import torch

from agents.normalize import EPSILON, Normalizer


def made(size=3, clip=10.0):
    return Normalizer(size, clip, dtype=torch.float64, device="cpu")


def batches():
    generator = torch.Generator().manual_seed(0)
    offset = torch.tensor([1e4, 0.0, -3.0], dtype=torch.float64)
    return [
        offset + torch.randn(*shape, 3, generator=generator, dtype=torch.float64) for shape in ((5, 4), (1,), (70,))
    ]


def test_statistics_of_batches_are_those_of_all_samples():
    normalizer = made()
    for batch in batches():
        normalizer.update(batch)
    samples = np.concatenate([batch.reshape(-1, 3).numpy() for batch in batches()])
    np.testing.assert_allclose(normalizer.mean.numpy(), samples.mean(0), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(normalizer.variance.numpy(), samples.var(0), rtol=1e-9)
    expected = (samples - samples.mean(0)) / np.sqrt(samples.var(0) + EPSILON)
    # The offset of 1e4 costs four of float64's sixteen digits: the shift is folded into one multiply-add.
    np.testing.assert_allclose(normalizer(torch.from_numpy(samples)).numpy(), expected, atol=1e-10)


def test_the_first_window_passes_unchanged():
    x = torch.tensor([[0.5, -2.0, 3.0]], dtype=torch.float64)
    torch.testing.assert_close(made()(x), x, rtol=EPSILON, atol=0)


def test_clipped_values_and_their_gradient():
    x = torch.tensor([[0.5, -20.0, 30.0]], dtype=torch.float64, requires_grad=True)
    y = made(clip=10.0)(x)
    assert y[0, 1:].tolist() == [-10.0, 10.0]
    y.sum().backward()
    assert x.grad[0, 1:].tolist() == [0.0, 0.0]
    assert x.grad[0, 0] > 0.9


def test_frozen_until_updated():
    normalizer = made()
    x = torch.randn(7, 3, dtype=torch.float64)
    before = normalizer(x)
    assert torch.equal(normalizer(x), before)
    normalizer.update(x + 5.0)
    assert not torch.equal(normalizer(x), before)


def test_float32_observations_keep_their_precision():
    """The statistics are float64 inside: 1e8 samples more than float32 could count."""
    normalizer = Normalizer(1, 10.0, dtype=torch.float32, device="cpu")
    normalizer.update(torch.zeros(10, 1))
    normalizer.count += 2**25
    normalizer.update(torch.ones(1, 1))
    assert float(normalizer.count) == 2**25 + 11
    assert normalizer(torch.zeros(2, 1)).dtype == torch.float32


def test_state_continues_exactly():
    first, second = made(), made()
    first.update(batches()[0])
    second.load_state_dict({name: tensor.clone() for name, tensor in first.state_dict().items()})
    first.update(batches()[2])
    second.update(batches()[2])
    x = torch.randn(4, 3, dtype=torch.float64)
    assert torch.equal(first(x), second(x))
