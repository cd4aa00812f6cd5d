"""Random numbers by counter, one stream per world.

World i's k-th number is a hash of (its seed, k) and of nothing else: not of the number of worlds, and not of
what other worlds have drawn. So world 3 of 4 lives the same life as world 3 of 4096, a reset of one world
leaves every other stream where it was, and a checkpoint is two integers a world.

The hash is splitmix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"), in the
wrapping int64 arithmetic of torch.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

# Signed forms of splitmix64's constants: the increment 0x9E3779B97F4A7C15 and the two multipliers
# 0xBF58476D1CE4E5B9 and 0x94D049BB133111EB.
INCREMENT = 0x9E3779B97F4A7C15 - (1 << 64)
MULTIPLIER_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
MULTIPLIER_2 = 0x94D049BB133111EB - (1 << 64)

MAX_SEED = (1 << 63) - 1


def mix(value: Tensor) -> Tensor:
    """Finaliser of splitmix64, int64 to int64; every input bit reaches every output bit."""
    # torch shifts int64 arithmetically; the masks clear the copies of the sign bit.
    value = (value ^ ((value >> 30) & ((1 << 34) - 1))) * MULTIPLIER_1
    value = (value ^ ((value >> 27) & ((1 << 37) - 1))) * MULTIPLIER_2
    return value ^ ((value >> 31) & ((1 << 33) - 1))


class WorldRandom:
    """Streams of all worlds.

    Args:
        seeds: one non-negative integer per world. Equal seeds give equal streams.
        dtype: of the numbers drawn; they are computed in float64 and rounded, so that float32 and float64
            worlds of the same seed start alike.

    Raises:
        ValueError: a seed outside 0 .. 2^63 - 1.
        TypeError: a seed that is not an integer.
    """

    def __init__(self, seeds: Sequence[int], *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"):
        for world, seed in enumerate(seeds):
            if isinstance(seed, bool) or not hasattr(seed, "__index__"):
                raise TypeError(f"the seed of world {world} is {seed!r}; a seed is a non-negative integer")
            if not 0 <= seed.__index__() <= MAX_SEED:
                raise ValueError(f"the seed of world {world} is {seed}; a seed lies between 0 and 2^63 - 1")
        seed = torch.tensor([int(s) for s in seeds], dtype=torch.int64, device=device)
        # Hashed, because the streams of the bare seeds 0, 1, 2 ... would be one sequence read from nearby
        # starts.
        self._key = mix(mix(seed + INCREMENT) + INCREMENT)
        self._drawn = torch.zeros_like(self._key)
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self._key)

    def select(self, worlds: Tensor | None = None) -> "Draws":
        """Generator that draws from the streams of `worlds` (n,) int64 indices; None: from all, in order."""
        return Draws(self, worlds)

    def bits(self, worlds: Tensor | None, count: int) -> Tensor:
        """The next `count` 64-bit words of each selected stream, shape (n, count) int64."""
        key, drawn = (self._key, self._drawn) if worlds is None else (self._key[worlds], self._drawn[worlds])
        position = torch.arange(1, count + 1, device=key.device) + drawn[:, None]
        # Out of place, so that a state_dict taken earlier keeps its numbers.
        self._drawn = self._drawn + count if worlds is None else self._drawn.index_copy(0, worlds, drawn + count)
        return mix(key[:, None] + position * INCREMENT)

    def state_dict(self) -> dict[str, Tensor]:
        """`key` and `drawn`, each (num_worlds,) int64: everything the streams consist of."""
        return {"key": self._key.clone(), "drawn": self._drawn.clone()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continue bit for bit where `state_dict` was taken. Raises ValueError for other world counts."""
        for name in ("key", "drawn"):
            if state[name].shape != self._key.shape:
                raise ValueError(
                    f"random {name} has shape {tuple(state[name].shape)}, but there are {len(self)} worlds"
                )
        self._key = state["key"].to(self._key, copy=True)
        self._drawn = state["drawn"].to(self._drawn, copy=True)


class Draws:
    """What a task draws from: the streams of the n worlds at hand. Every result has shape (n, *size)."""

    def __init__(self, random: WorldRandom, worlds: Tensor | None):
        self._random = random
        self._worlds = worlds

    def __len__(self) -> int:
        return len(self._random) if self._worlds is None else len(self._worlds)

    def select(self, rows: Tensor) -> "Draws":
        """The same streams, for the worlds in these rows (indices into the n worlds at hand) alone."""
        return Draws(self._random, rows if self._worlds is None else self._worlds[rows])

    def uniform(self, low: float | Tensor, high: float | Tensor, size: int | tuple[int, ...] = ()) -> Tensor:
        """Uniform in [low, high). Bounds broadcast against (n, *size)."""
        unit = self._unit(size)
        return (low + (high - low) * unit).to(self._random.dtype)

    def normal(self, size: int | tuple[int, ...] = ()) -> Tensor:
        """Standard normal (Box and Muller 1958), two words a number."""
        shape = (size,) if isinstance(size, int) else tuple(size)
        pair = self._unit((*shape, 2))
        radius = torch.sqrt(-2.0 * torch.log1p(-pair[..., 0]))
        return (radius * torch.cos(2.0 * math.pi * pair[..., 1])).to(self._random.dtype)

    def _unit(self, size: int | tuple[int, ...]) -> Tensor:
        shape = (size,) if isinstance(size, int) else tuple(size)
        word = self._random.bits(self._worlds, math.prod(shape))
        top53 = (word >> 11) & ((1 << 53) - 1)
        return (top53.double() * 2.0**-53).reshape(len(self), *shape)
