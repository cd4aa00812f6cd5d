"""Reading a run folder, whatever moment it was left at."""

import json

import pytest

from leaderboard.run_folder import RunFolder, curve, nonfinite, reached, seconds_per_iteration
from tests.leaderboard.made_up import write_json


def line(iteration, value=None, **changes):
    """A line of a log."""
    return {
        "iteration": iteration,
        "samples": 100 * iteration,
        "seconds": 2.0 * iteration,
        "return": value,
        "length": 10.0,
        "grad_norm": 0.5,
        "nonfinite": 0,
        "seconds_iteration": float(iteration),
        "seconds_critic": 0.25,
    } | changes


LOG = [line(1), line(2, 900.0), line(3, 1900.0, nonfinite=2), line(4, 1700.0, nonfinite=1)]


def test_an_empty_folder_has_done_nothing(tmp_path):
    folder = RunFolder(tmp_path / "none")
    assert folder.trained(10) == 0.0
    assert folder.checkpointed() == 0
    assert folder.config() == {}
    assert folder.logged() == {}
    assert folder.log() == []
    assert folder.evaluation("hard") is None


def test_training_is_done_when_the_checkpoint_says_so_and_not_before(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line(i)) + "\n" for i in range(1, 11)))
    assert folder.trained(20) == 0.5
    assert folder.trained(10) == 0.999  # logged to the end, killed before the checkpoint
    write_json(tmp_path / "checkpoint.json", {"iteration": 10})
    assert folder.trained(10) == 0.999  # a card without tensors is not a checkpoint
    (tmp_path / "checkpoint.safetensors").touch()
    assert folder.trained(10) == 1.0
    assert folder.trained(20) == 0.5


def test_a_line_cut_by_a_kill_is_skipped_and_a_repeated_one_counts_once(tmp_path):
    text = "".join(json.dumps(item) + "\n" for item in [line(1), line(2, 5.0), line(2, 6.0), line(3, 7.0)])
    (tmp_path / "log.jsonl").write_text(text + '{"iteration": 4, "ret')
    folder = RunFolder(tmp_path)
    assert [(row["iteration"], row["return"]) for row in folder.log()] == [(1, None), (2, 6.0), (3, 7.0)]
    assert folder.logged()["iteration"] == 3


def test_the_last_line_of_a_long_log_is_found(tmp_path):
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line(i)) + "\n" for i in range(1, 501)))
    assert RunFolder(tmp_path).logged()["iteration"] == 500


def test_what_a_log_says():
    assert curve(LOG)["return"] == [None, 900.0, 1900.0, 1700.0]
    assert curve(LOG)["iteration"] == [1, 2, 3, 4]
    assert nonfinite(LOG) == 3
    # medians of 1, 2, 3, 4 and of four quarters
    assert seconds_per_iteration(LOG) == {"iteration": 2.5, "critic": 0.25}
    assert reached(LOG, [900.0, 1800.0, 2000.0]) == {
        "900": {"iteration": 2, "samples": 200, "seconds": 4.0},
        "1800": {"iteration": 3, "samples": 300, "seconds": 6.0},
    }


def test_a_curve_carries_the_metrics_asked_for():
    log = [
        line(1, metrics={"speed": {"mean": 0.1, "rms": 0.5}}),
        line(2, metrics={"speed": {"mean": 0.2, "rms": 0.25}}),
    ]
    assert curve(log, ("speed",))["speed_rms"] == [0.5, 0.25]
    assert set(curve(log, ("speed",))) == {*curve(log), "speed_rms"}


def test_a_long_curve_is_thinned():
    columns = curve([line(i, float(i)) for i in range(1, 1001)])
    assert {len(column) for column in columns.values()} == {200}
    assert columns["iteration"][0] == 1
    assert columns["return"][-1] == pytest.approx(1000.0)
