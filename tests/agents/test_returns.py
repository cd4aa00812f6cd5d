"""TD(lambda) targets and advantages, worked by hand."""

import pytest
import torch

from agents.returns import gae, td_lambda


def column(*values):
    return torch.tensor(values)[:, None]


def never(n):
    return torch.zeros(n, 1, dtype=torch.bool)


def at(n, *steps):
    flags = never(n)
    flags[list(steps)] = True
    return flags


# Rewards 1 2 3, values after each step 10 20 30, gamma 0.5, lambda 0.5. Backwards:
#   G2 = 3 + 0.5 * 30                                  = 18
#   G1 = 2 + 0.5 * (0.5 * 20 + 0.5 * 18)  = 2 + 9.5    = 11.5
#   G0 = 1 + 0.5 * (0.5 * 10 + 0.5 * 11.5) = 1 + 5.375 = 6.375
# Terminated in step 1: G1 = 2, G0 = 1 + 0.5 * (5 + 1) = 4.
# Truncated in step 1:  G1 = 2 + 0.5 * 20 = 12, G0 = 1 + 0.5 * (5 + 6) = 6.5.
@pytest.mark.parametrize(
    ("terminated", "truncated", "expected"),
    [
        (never(3), never(3), (6.375, 11.5, 18.0)),
        (at(3, 1), never(3), (4.0, 2.0, 18.0)),
        (never(3), at(3, 1), (6.5, 12.0, 18.0)),
        (at(3, 1), at(3, 1), (4.0, 2.0, 18.0)),
        (at(3, 2), never(3), (1.0 + 0.5 * (5.0 + 0.5 * 7.75), 7.75, 3.0)),  # G1 = 2 + 0.5 * (10 + 1.5)
    ],
)
def test_td_lambda(terminated, truncated, expected):
    targets = td_lambda(column(1.0, 2.0, 3.0), column(10.0, 20.0, 30.0), terminated, truncated, 0.5, 0.5)
    torch.testing.assert_close(targets, column(*expected), rtol=0, atol=1e-6)


# Rewards 1 2 3, values 4 5 6, values after each step 5 6 7 (no reset), gamma 0.5, lambda 0.5:
#   d0 = 1 + 2.5 - 4 = -0.5, d1 = 2 + 3 - 5 = 0, d2 = 3 + 3.5 - 6 = 0.5
#   A2 = 0.5, A1 = 0 + 0.25 * 0.5 = 0.125, A0 = -0.5 + 0.25 * 0.125 = -0.46875
# Terminated in step 1: d1 = 2 - 5 = -3 = A1, A0 = -0.5 - 0.75 = -1.25.
# Truncated in step 1:  d1 = 0 = A1 (its own value counts, the next episode does not), A0 = -0.5.
@pytest.mark.parametrize(
    ("terminated", "truncated", "expected"),
    [
        (never(3), never(3), (-0.46875, 0.125, 0.5)),
        (at(3, 1), never(3), (-1.25, -3.0, 0.5)),
        (never(3), at(3, 1), (-0.5, 0.0, 0.5)),
        (at(3, 1), at(3, 1), (-1.25, -3.0, 0.5)),
    ],
)
def test_gae(terminated, truncated, expected):
    rewards, values, next_values = column(1.0, 2.0, 3.0), column(4.0, 5.0, 6.0), column(5.0, 6.0, 7.0)
    advantages = gae(rewards, values, next_values, terminated, truncated, 0.5, 0.5)
    torch.testing.assert_close(advantages, column(*expected), rtol=0, atol=1e-6)


def test_gae_plus_value_is_td_lambda():
    """A_t + V_t = G_t where V_t is the value after step t - 1: the two recursions check each other."""
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    values = torch.randn(10, 4, generator=generator, dtype=torch.float64)
    ended = torch.zeros(9, 4, dtype=torch.bool)
    advantages = gae(rewards, values[:-1], values[1:], ended, ended, 0.97, 0.9)
    targets = td_lambda(rewards, values[1:], ended, ended, 0.97, 0.9)
    torch.testing.assert_close(advantages + values[:-1], targets, rtol=0, atol=1e-12)


def test_worlds_do_not_mix():
    rewards, next_values = torch.ones(4, 2), torch.full((4, 2), 7.0)
    terminated = torch.zeros(4, 2, dtype=torch.bool)
    terminated[1, 0] = True
    both = td_lambda(rewards, next_values, terminated, never(4).expand(4, 2), 0.9, 0.8)
    for world in (0, 1):
        one = slice(world, world + 1)
        alone = td_lambda(rewards[:, one], next_values[:, one], terminated[:, one], never(4), 0.9, 0.8)
        assert torch.equal(both[:, one], alone)


def test_the_value_of_a_broken_world_is_not_read():
    """A termination hides a value that is not a number; 0 * nan would not."""
    ones, values = column(1.0, 1.0, 1.0), column(1.0, torch.nan, 1.0)
    assert torch.isfinite(td_lambda(ones, values, at(3, 1), never(3), 0.9, 0.9)).all()
    assert torch.isfinite(gae(ones, ones, values, at(3, 1), never(3), 0.9, 0.9)).all()
