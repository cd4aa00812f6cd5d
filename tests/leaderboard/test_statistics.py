"""Statistics against their definitions, worked by hand."""

import numpy as np
import pytest
from scipy import stats

from leaderboard.statistics import interquartile_mean, summarise


def test_interquartile_mean_drops_a_quarter_at_each_end():
    # eight sorted values: two go at each end, (3 + 4 + 5 + 6) / 4
    assert interquartile_mean([8, 1, 7, 2, 6, 3, 5, 4]) == 4.5
    # an outlier in the dropped quarter has no say
    assert interquartile_mean([1, 2, 3, 4, 5, 6, 7, 1e9]) == 4.5
    # three values: floor(3/4) = 0 dropped
    assert interquartile_mean([1, 2, 6]) == 3.0


def test_summary_of_several_seeds():
    scores = [1935.0, 1992.0, 1807.0, 2002.0, 1961.0]
    summary = summarise(scores)
    assert summary.count == 5
    assert summary.mean == pytest.approx(1939.4)
    # deviations -4.4, 52.6, -132.4, 62.6, 21.6; squares sum to 24701.2; divided by 4
    assert summary.std == pytest.approx(np.sqrt(24701.2 / 4))
    assert summary.iqm == pytest.approx((1935 + 1992 + 1961) / 3)
    assert summary.low < summary.iqm < summary.high
    assert min(scores) <= summary.low
    assert summary.high <= max(scores)


def test_interval_is_the_percentile_bootstrap_of_scipy_and_repeatable():
    scores = np.random.default_rng(7).normal(2000.0, 100.0, 10)
    interval = stats.bootstrap(
        (scores,),
        lambda sample, axis: stats.trim_mean(sample, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    summary = summarise(list(scores))
    assert summary.low == pytest.approx(interval.low, abs=5.0)
    assert summary.high == pytest.approx(interval.high, abs=5.0)
    assert summarise(list(scores)) == summary


def test_interval_covers_the_truth_about_as_often_as_it_says():
    # 95 % nominal; the percentile bootstrap of a trimmed mean is known to be somewhat short at n = 20
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        summary = summarise(rng.normal(0.0, 1.0, 20).tolist())
        hits += summary.low <= 0.0 <= summary.high
    assert 0.8 <= hits / 60 <= 1.0


def test_one_seed_has_no_spread():
    summary = summarise([1979.0])
    assert (summary.mean, summary.iqm) == (1979.0, 1979.0)
    assert summary.std is None
    assert summary.low is None
    assert summary.high is None


@pytest.mark.parametrize("scores", [[], [1.0, float("nan")], [float("inf")], [[1.0, 2.0]]])
def test_bad_scores_are_refused(scores):
    with pytest.raises(ValueError, match="scores must be"):
        summarise(scores)
