"""The velocity-tracking tables, with made-up records."""

import pytest

from leaderboard.protocol import runs
from leaderboard.records import MAX_BYTES, write_record
from leaderboard.velocity_tracking import ERRORS, VELOCITY_TRACKING, tabulate
from tests.leaderboard.made_up import made_up, rows

COUNT = 200


def record(seed, **changes):
    """A run of 600 iterations: errors of 0.15 + 0.01 seed in x, twice that in y; 0.02 more in the hard law."""
    evaluations = {}
    for contact, more in (("smoothed", 0.0), ("hard", 0.02)):
        error = 0.15 + 0.01 * seed + more
        values = dict(zip(ERRORS, (error, 2 * error, 0.2), strict=True))
        evaluations[contact] = {"episodes": 100, "falls": seed, "nonfinite": 0, "return_min": 12.3456789}
        evaluations[contact] |= {"return_mean": 100.0 - 2 * seed, "return_std": 3.0, "seconds_mean": 20.0, "seed": 1000}
        evaluations[contact] |= {"metrics": {name: {"mean": 0.0123456, "rms": value} for name, value in values.items()}}
    columns = made_up("shac", seed, "smoothed").curve
    curve = columns | {"seconds": [123.4567891 * i for i in range(COUNT)]}
    curve |= {f"{name}_rms": [0.5777777777 - 0.00123 * i for i in range(COUNT)] for name in ERRORS}
    values = {"env": "DiffAnymal-v0", "iterations": 600, "evaluations": evaluations, "curve": curve}
    return made_up(
        "shac", seed, "smoothed", **(values | {"seconds_per_iteration": {"iteration": 0.4 + seed}} | changes)
    )


def test_seeds_and_their_mean_in_both_laws():
    tracking, _ = tabulate([record(seed) for seed in (0, 1, 2)])
    table = {(row["judged in"], row["seed"]): row for row in rows(tracking)}
    assert list(table) == [(law, seed) for law in ("smoothed", "hard") for seed in ("0", "1", "2", "mean")]
    assert table["smoothed", "1"] == {
        "judged in": "smoothed",
        "seed": "1",
        "return": "98.0 ± 3.0",
        "error, x in m/s": "0.160",
        "error, y in m/s": "0.320",
        "error, yaw rate in rad/s": "0.200",
        "falls": "1 of 100",
    }
    # 0.17, 0.18, 0.19 and twice that; 100, 98, 96
    mean = table["hard", "mean"]
    assert (mean["error, x in m/s"], mean["error, y in m/s"]) == ("0.180 ± 0.010", "0.360 ± 0.020")
    assert (mean["return"], mean["falls"]) == ("98.0 ± 2.0", "3 of 300")
    assert "600 iterations, seeds 0, 1, 2, 100 episodes" in tracking.notes[0]
    assert "in a row of one seed, over its episodes" in tracking.notes[0]
    assert "stands still errs by 0.58" in tracking.notes[1]
    assert len(tracking.notes) == 2


def test_one_seed_has_no_mean():
    tracking, training = tabulate([record(0, nonfinite=4)])
    assert [row["seed"] for row in rows(tracking)] == ["0", "0"]
    assert "in a row of one seed" not in tracking.notes[0]
    assert tracking.notes[-1] == "Worlds that went non-finite, each restarted: 4."
    assert rows(training) == [{"seed": "0", "seconds per iteration": "0.400 s", "training": "70 s"}]


def test_what_training_took():
    _, training = tabulate([record(seed) for seed in (0, 1, 2)])
    assert rows(training)[-1] == {"seed": "median", "seconds per iteration": "1.400 s", "training": "71 s"}
    assert len(training.rows) == 4


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_the_figure_is_drawn(tmp_path, seeds):
    VELOCITY_TRACKING.draw([record(seed) for seed in seeds], tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_a_record_with_the_errors_of_its_training_is_small_enough(tmp_path):
    assert write_record(record(0), tmp_path).stat().st_size <= MAX_BYTES


def test_presets_are_the_scales_they_claim():
    def scale(name):
        return {run.name: run.iterations for run in runs(VELOCITY_TRACKING, VELOCITY_TRACKING.preset(name))}

    assert scale("quick") == {"shac-0": 600}
    assert scale("seeds") == {f"shac-{seed}": 600 for seed in range(3)}
    assert scale("paper") == {f"shac-{seed}": 20_000 for seed in range(5)}
    (entry,) = VELOCITY_TRACKING.entries
    assert [(test.contact, test.stochastic) for test in entry.evaluations] == [("smoothed", False), ("hard", False)]
