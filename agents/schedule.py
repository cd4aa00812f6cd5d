"""Learning rates as functions of the iteration."""

from __future__ import annotations

from typing import Literal

Decay = Literal["exponential", "linear"]


def learning_rate(decay: Decay, iteration: int, iterations: int, *, start: float, factor: float, final: float) -> float:
    """Learning rate of iteration ``iteration`` (from 0) of ``iterations``.

    ``exponential``: start * factor^iteration. ``linear``: from ``start`` to ``final``, its last value.

    Raises:
        ValueError: ``decay`` is neither.
    """
    if decay == "exponential":
        return start * factor**iteration
    if decay == "linear":
        progress = min(iteration / max(iterations - 1, 1), 1.0)
        return start + (final - start) * progress
    raise ValueError(f"learning-rate decay {decay!r}: expected 'exponential' or 'linear'")
