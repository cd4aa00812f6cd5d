"""The table of open settings, with made-up records."""

import pytest

from leaderboard.open_settings import ENTRIES, OPEN_SETTINGS, tabulate
from leaderboard.protocol import runs
from tests.leaderboard.made_up import made_up, rows


def records(*seeds):
    return [made_up(entry.name, seed, "smoothed") for entry in ENTRIES for seed in seeds]


def test_a_row_per_setting_with_its_worst_seed():
    (table,) = tabulate(records(0, 1))
    found = {row["setting"]: row for row in rows(table)}
    assert list(found) == [entry.name for entry in ENTRIES]
    # 1950 and 1960 are made up; three falls in a hundred episodes each
    assert found["no-layer-norm"] == {
        "setting": "no-layer-norm",
        "return": "1955 ± 7",
        "worst seed": "1950",
        "falls": "6 of 200",
        "speed in m/s": "0.98 ± 0.00",
        "iterations to 1800": "160",
    }
    assert "400 iterations, mean action, seeds 0, 1" in table.notes[0]


def test_each_setting_is_in_its_command():
    quick = OPEN_SETTINGS.preset("quick")
    commands = {run.entry.name: run.command for run in runs(OPEN_SETTINGS, quick) if run.seed == 1}
    assert "--no-layer-norm" in commands["no-layer-norm"]
    assert "--last-gain 0.1" in commands["last-gain-0.1"]
    assert "--log-std -1.7" in commands["log-std-minus-1.7"]
    assert not {"--last-gain", "--log-std", "--no-layer-norm"} & set(commands["as-set"].split())


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_the_figure_is_drawn(tmp_path, seeds):
    OPEN_SETTINGS.draw(records(*seeds), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
