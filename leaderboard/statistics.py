"""Numbers over seeds: mean, standard deviation, interquartile mean and its bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

RESAMPLES = 10_000


@dataclass(frozen=True)
class Summary:
    """What a sample of scores says.

    count: number of scores.
    mean, std: arithmetic mean and sample standard deviation (ddof 1, None for one score).
    iqm: interquartile mean, the mean of the middle half.
    low, high: 95 % percentile-bootstrap interval of the interquartile mean (None for one score).
    """

    count: int
    mean: float
    std: float | None
    iqm: float
    low: float | None
    high: float | None


def interquartile_mean(values: Sequence[float]) -> float:
    """Mean of the values without the lowest and the highest quarter (floor(n/4) values at each end)."""
    return float(stats.trim_mean(_checked(values), 0.25))


def summarise(values: Sequence[float]) -> Summary:
    """Summary of the scores, one per seed. The bootstrap is seeded: the same scores give the same interval.

    Raises ValueError when there is no score or one of them is not finite.
    """
    scores = _checked(values)
    if len(scores) == 1:
        return Summary(1, float(scores[0]), None, float(scores[0]), None, None)
    interval = stats.bootstrap(
        (scores,),
        lambda sample, axis: stats.trim_mean(sample, 0.25, axis=axis),
        n_resamples=RESAMPLES,
        confidence_level=0.95,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Summary(
        count=len(scores),
        mean=float(scores.mean()),
        std=float(scores.std(ddof=1)),
        iqm=interquartile_mean(values),
        low=float(interval.low),
        high=float(interval.high),
    )


def _checked(values: Sequence[float]) -> np.ndarray:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or scores.size == 0:
        raise ValueError(f"scores must be a non-empty list of numbers, got an array of shape {scores.shape}")
    if not np.isfinite(scores).all():
        raise ValueError(f"scores must be finite, got {scores.tolist()}")
    return scores
