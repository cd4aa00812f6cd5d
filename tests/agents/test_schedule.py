"""Learning rates."""

import pytest

from agents.schedule import learning_rate


def rate(decay, iteration):
    return learning_rate(decay, iteration, 1000, start=2e-3, factor=0.995, final=1e-5)


def test_exponential():
    # Schwarke et al. 2025, Table 5: 2e-3 and a decay of 0.995 leave 1.34e-5 for the last of 1000 iterations.
    assert rate("exponential", 0) == 2e-3
    assert rate("exponential", 1) == pytest.approx(1.99e-3)
    assert rate("exponential", 999) == pytest.approx(1.338e-5, rel=1e-3)


def test_linear():
    assert rate("linear", 0) == 2e-3
    assert rate("linear", 999) == pytest.approx(1e-5)
    assert rate("linear", 333) - rate("linear", 666) == pytest.approx(rate("linear", 0) - rate("linear", 333))
    assert learning_rate("linear", 0, 1, start=2e-3, factor=1.0, final=1e-5) == 2e-3


def test_unknown():
    with pytest.raises(ValueError, match="'cosine'"):
        rate("cosine", 0)
