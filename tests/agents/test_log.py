"""The training log: one line an iteration, none twice."""

import json
import time

import pytest

from agents import log
from agents.log import TrainingLog


def line(iteration, **changes):
    usual = {"iteration": iteration, "return": None, "grad_norm": 0.5, "seconds_iteration": 0.1}
    return usual | {"metrics": {"speed": {"mean": 1.0, "rms": 2.0}}} | changes


def write(directory, start, stop):
    with TrainingLog(directory, start, 10) as training_log:
        for iteration in range(start + 1, stop + 1):
            training_log.write(line(iteration, marker=start))


def test_resuming_removes_what_came_after_the_checkpoint(tmp_path):
    write(tmp_path, 0, 5)
    write(tmp_path, 3, 6)
    assert [(entry["iteration"], entry["marker"]) for entry in log.read(tmp_path)] == [
        *((1, 0), (2, 0), (3, 0)),
        *((4, 3), (5, 3), (6, 3)),
    ]


def test_tensorboard_counts_nothing_twice(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write(tmp_path, 0, 5)
    time.sleep(1.1)  # TensorBoard orders its files by the second they were begun in
    write(tmp_path, 3, 6)
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [event.step for event in events.Scalars("grad_norm")] == [1, 2, 3, 4, 5, 6]
    assert [event.value for event in events.Scalars("marker")] == [0, 0, 0, 3, 3, 3]
    assert "metrics/speed/rms" in events.Tags()["scalars"]


def test_a_line_cut_short_by_a_kill_goes(tmp_path):
    write(tmp_path, 0, 2)
    path = tmp_path / log.FILE
    path.write_text(path.read_text()[:-15])
    log.truncate(path, 2)
    assert [entry["iteration"] for entry in log.read(tmp_path)] == [1]


def test_a_number_that_is_not_finite_is_null(tmp_path):
    with TrainingLog(tmp_path, 0, 1) as training_log:
        training_log.write(line(1, grad_norm=float("inf"), value_loss=float("nan")))
    text = (tmp_path / log.FILE).read_text()
    assert "Infinity" not in text
    assert "NaN" not in text
    assert json.loads(text)["grad_norm"] is None


def test_quiet_when_not_a_terminal(tmp_path, capfd):
    write(tmp_path, 0, 3)
    assert capfd.readouterr() == ("", "")
