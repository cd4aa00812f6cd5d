import math

import numpy as np
import pytest
import torch

from diffenvs.random import WorldRandom

WORD = (1 << 64) - 1


def reference(seed, position):
    """The position-th word of a stream, in Python's unbounded integers."""

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return z ^ (z >> 31)

    gamma = 0x9E3779B97F4A7C15
    key = mix((mix((seed + gamma) & WORD) + gamma) & WORD)
    return mix((key + position * gamma) & WORD)


def test_splitmix64_gives_its_published_first_words():
    # splitmix64.c (Vigna 2015) from state 0: 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F.
    from diffenvs.random import INCREMENT, mix

    words = mix(torch.arange(1, 4) * INCREMENT)
    assert [int(w) & WORD for w in words] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_words_agree_with_scalar_arithmetic():
    seeds = [0, 1, 7, 123456789, (1 << 63) - 1]
    random = WorldRandom(seeds)
    first, second = random.bits(None, 5), random.bits(None, 3)
    drawn = torch.cat((first, second), 1)
    for world, seed in enumerate(seeds):
        assert [int(w) & WORD for w in drawn[world]] == [reference(seed, k) for k in range(1, 9)]


def test_uniform_is_the_top_53_bits():
    random = WorldRandom([42], dtype=torch.float64)
    value = random.select().uniform(-2.0, 6.0, 4)[0]
    expected = [-2.0 + 8.0 * ((reference(42, k) >> 11) / 2**53) for k in range(1, 5)]
    assert value.tolist() == expected


def test_uniform_fills_its_range_evenly():
    value = WorldRandom(range(64), dtype=torch.float64).select().uniform(0.0, 1.0, 1000).flatten()
    histogram = torch.histc(value, 20, 0.0, 1.0)
    expected = len(value) / 20
    # chi-squared with 19 degrees of freedom: 43.8 is passed once in a thousand
    assert ((histogram - expected) ** 2 / expected).sum() < 43.8
    assert value.min() >= 0.0
    assert value.max() < 1.0


def test_worlds_and_neighbouring_draws_are_uncorrelated():
    value = WorldRandom(range(8), dtype=torch.float64).select().uniform(-1.0, 1.0, 20000)
    correlation = torch.corrcoef(torch.cat((value, value.roll(1, 1)))) - torch.eye(16)
    assert correlation.abs().max() < 5.0 / math.sqrt(20000)


def test_normal_has_the_moments_of_a_normal():
    value = WorldRandom(range(50), dtype=torch.float64).select().normal(1000).flatten()
    n = len(value)
    assert abs(value.mean()) < 5 / math.sqrt(n)
    assert abs(value.var() - 1) < 5 * math.sqrt(2 / n)
    assert abs((value**4).mean() - 3) < 5 * math.sqrt(96 / n)


def test_a_world_does_not_know_how_many_there_are():
    few, many = WorldRandom([5, 6, 7, 8]), WorldRandom([5, 6, 7, 8, 9, 10, 11, 12])
    for size in ((), 3, (2, 2)):
        assert torch.equal(few.select().uniform(0.0, 1.0, size), many.select().uniform(0.0, 1.0, size)[:4])


def test_a_draw_moves_the_selected_streams_only():
    random, untouched = WorldRandom([1, 2, 3]), WorldRandom([1, 2, 3])
    random.select(torch.tensor([1])).uniform(0.0, 1.0, 10)
    after, fresh = random.select().uniform(0.0, 1.0, 4), untouched.select().uniform(0.0, 1.0, 4)
    assert torch.equal(after[[0, 2]], fresh[[0, 2]])
    assert not torch.equal(after[1], fresh[1])


def test_rows_of_a_selection_are_the_worlds_they_stand_for():
    random, other = WorldRandom([1, 2, 3, 4]), WorldRandom([1, 2, 3, 4])
    nested = random.select(torch.tensor([1, 3])).select(torch.tensor([1])).uniform(0.0, 1.0, 5)
    assert torch.equal(nested, other.select(torch.tensor([3])).uniform(0.0, 1.0, 5))


def test_bounds_broadcast():
    high = torch.tensor([1.0, 10.0, 100.0])
    value = WorldRandom(range(200)).select().uniform(-high, high, 3)
    assert (value.abs() <= high).all()
    assert (value.abs().amax(0) > 0.9 * high).all()


def test_float32_and_float64_streams_are_the_same_numbers():
    single, double = WorldRandom([3]), WorldRandom([3], dtype=torch.float64)
    assert torch.equal(single.select().uniform(0.0, 1.0, 100), double.select().uniform(0.0, 1.0, 100).float())


def test_state_dict_continues_bit_for_bit():
    random = WorldRandom([1, 2])
    random.select(torch.tensor([0])).uniform(0.0, 1.0, 3)
    state = random.state_dict()
    expected = random.select().normal(7)
    other = WorldRandom([8, 9])
    other.load_state_dict(state)
    assert torch.equal(other.select().normal(7), expected)
    other.load_state_dict(state)
    assert torch.equal(other.select().normal(7), expected)


def test_numpy_integers_are_seeds():
    value = WorldRandom(np.array([4, 5])).select().uniform(0.0, 1.0)
    assert torch.equal(value, WorldRandom([4, 5]).select().uniform(0.0, 1.0))


@pytest.mark.parametrize(
    ("seeds", "error", "words"),
    [
        ([1, -1], ValueError, "the seed of world 1 is -1"),
        ([1 << 63], ValueError, "the seed of world 0 is 9223372036854775808"),
        ([1, 2.5], TypeError, "the seed of world 1 is 2.5"),
        ([True], TypeError, "the seed of world 0 is True"),
    ],
)
def test_bad_seeds_are_named(seeds, error, words):
    with pytest.raises(error, match=words):
        WorldRandom(seeds)


def test_a_state_of_other_worlds_is_refused():
    with pytest.raises(ValueError, match="there are 2 worlds"):
        WorldRandom([1, 2]).load_state_dict(WorldRandom([1, 2, 3]).state_dict())
