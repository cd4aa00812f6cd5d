"""An experiment from end to end with agents that train nothing: every run once, whatever happens."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard import conduct
from leaderboard.protocol import runs
from leaderboard.records import read_record
from leaderboard.run_folder import RunFolder
from leaderboard.schedule import Cores
from tests.leaderboard.noted import Noted, wait_for

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def work(tmp_path) -> Path:
    """Where the run folders go."""
    return tmp_path / "work"


@pytest.fixture
def carry_out(checkout, experiment, preset, work):
    """Runs the experiment with the made-up agents; returns (failures, reporter)."""

    def run(scale=preset):
        noted = Noted()
        jobs = conduct.jobs(experiment, scale, work)
        return Cores(2, checkout).run(jobs, noted), noted

    return run


def calls(checkout) -> list[str]:
    """Command lines that reached the agents."""
    path = checkout / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_every_run_is_trained_evaluated_and_recorded(carry_out, checkout, experiment, preset, work, tmp_path):
    failures, _ = carry_out()
    assert failures == ()
    kinds = Counter(call.split()[0] for call in calls(checkout))
    # 3 laws x 2 seeds; own and hard law, mean and sampled action; hard's own law is the hard one
    assert kinds == {"shac": 6, "evaluate": 2 * (4 + 2 + 4)}
    assert all("--threads 1" in call and "--iterations 12" in call for call in calls(checkout) if "shac" in call)

    records = conduct.collect(experiment, preset, work, tmp_path / "results")
    assert [(record.entry, record.seed) for record in records] == [
        (law, seed) for seed in (0, 1) for law in ("soft", "hard", "smoothed")
    ]
    soft = read_record(tmp_path / "results" / "soft-1.json")
    assert soft.curve["iteration"] == list(range(1, 13))
    assert soft.curve["return"] == [None, *(float(i + 1) for i in range(2, 13))]
    assert (soft.iterations, soft.samples, soft.wall_seconds, soft.nonfinite) == (12, 120, 6.0, 1)
    assert (soft.commit, soft.dirty) == ("c" * 40, False)
    assert set(soft.evaluations) == {"soft", "soft-stochastic", "hard", "hard-stochastic"}
    # 800 control steps of 0.01 s
    assert soft.evaluations["hard"]["seconds_mean"] == pytest.approx(8.0)
    assert "returns" not in soft.evaluations["hard"]
    assert re.fullmatch(r"python -m agents shac DiffQuadruped-v0 --contact soft --seed 1 .*", soft.command)
    assert str(tmp_path) not in (tmp_path / "results" / "soft-1.json").read_text()

    page = (tmp_path / "results" / "README.md").read_text()
    assert "| soft | 1000 ± 0 |" in page
    assert "90 %" in page
    assert "non-finite worlds" in page
    assert (tmp_path / "results" / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_time_nothing_is_run(carry_out, checkout):
    carry_out()
    before = calls(checkout)
    failures, noted = carry_out()
    assert failures == ()
    assert calls(checkout) == before
    assert len(noted.of("found")) == 6


def test_a_stopped_training_goes_on_from_its_checkpoint(carry_out, checkout, work):
    carry_out()
    # as if the run had been killed after iteration 7, its last checkpoint at 5
    folder = work / "smoothed-0"
    log = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    (folder / "log.jsonl").write_text("".join(log[:7]) + '{"iteration": 8, "re')
    (folder / "checkpoint.json").write_text(json.dumps({"iteration": 5, "contact": "smoothed"}))
    for path in folder.glob("evaluate-*"):
        path.unlink()
    before = len(calls(checkout))
    failures, noted = carry_out()
    assert failures == ()
    later = calls(checkout)[before:]
    assert [call.endswith("--resume") for call in later if call.startswith("shac")] == [True]
    assert len(later) == 5
    assert len(noted.of("found")) == 5
    iterations = [json.loads(line)["iteration"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert iterations == list(range(1, 13))


def test_a_training_killed_before_its_first_checkpoint_begins_again(carry_out, work):
    folder = work / "hard-1"
    folder.mkdir(parents=True)
    settings = {"iterations": 12, "num_envs": 64}
    config = {"env": "DiffQuadruped-v0", "contact": "hard", "seed": 1, "settings": settings}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "log.jsonl").write_text('{"iteration": 1}\n')
    failures, _ = carry_out()
    assert failures == ()
    assert len((folder / "log.jsonl").read_text().splitlines()) == 12


def test_an_evaluation_of_an_earlier_policy_or_of_fewer_episodes_does_not_count(carry_out, checkout, work):
    carry_out()
    path = work / "soft-0" / "evaluate-hard.json"
    for change in ({"episodes": 2}, {"trained": {"iteration": 5}}):
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        before = len(calls(checkout))
        carry_out()
        assert [call.split()[0] for call in calls(checkout)[before:]] == ["evaluate"]


def test_a_failed_law_leaves_the_others_recorded(carry_out, checkout, experiment, preset, work, tmp_path):
    (checkout / "broken").write_text("smoothed")
    failures, _ = carry_out()
    assert sorted(failure.job for failure in failures) == ["smoothed-0", "smoothed-1"]
    assert failures[0].reason == "exit code 1: error: the law is broken"
    records = conduct.collect(experiment, preset, work, tmp_path / "results")
    assert {record.entry for record in records} == {"soft", "hard"}
    (checkout / "broken").unlink()
    assert carry_out()[0] == ()
    assert len(conduct.collect(experiment, preset, work, tmp_path / "results")) == 6


@pytest.mark.parametrize("change", [{"iterations": 13}, {"num_envs": 32}])
def test_a_folder_with_other_settings_is_refused_before_anything_runs(carry_out, checkout, preset, change):
    carry_out()
    before = calls(checkout)
    name = next(iter(change))
    with pytest.raises(ValueError, match=f"soft-0 holds a run with {name} .*: choose another --out"):
        carry_out(replace(preset, **change))
    assert calls(checkout) == before


DRIVER = """
import sys
from dataclasses import replace
from pathlib import Path
from leaderboard import conduct
from leaderboard.contact_models import CONTACT_MODELS
from leaderboard.protocol import Preset
from leaderboard.schedule import Cores
from tests.leaderboard.noted import Noted
work, checkout = map(Path, sys.argv[1:])
with conduct.claimed(work) as inherit:
    jobs = conduct.jobs(CONTACT_MODELS, Preset("made-up", (0,), 40, 3), work)
    failures = Cores(2, checkout, inherit).run(jobs, Noted())
sys.exit(len(failures))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's death is Linux's")
def test_a_killed_experiment_goes_on_and_counts_nothing_twice(checkout, work):
    """Kill the leaderboard in the middle, twice, start it again at once: as if nothing had happened."""
    (checkout / "pace").write_text("0.05")
    command = [sys.executable, "-c", DRIVER, str(work), str(checkout)]
    for reached, deadly in ((3, signal.SIGKILL), (12, signal.SIGTERM)):
        driver = subprocess.Popen(command, cwd=ROOT)
        log = work / "soft-0" / "log.jsonl"
        wait_for(lambda log=log, reached=reached: log.exists() and len(log.read_text().splitlines()) >= reached)
        driver.send_signal(deadly)
        driver.wait()
    (checkout / "pace").write_text("0.002")
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    for law in ("soft", "hard", "smoothed"):
        lines = [json.loads(line) for line in (work / f"{law}-0" / "log.jsonl").read_text().splitlines()]
        assert [line["iteration"] for line in lines] == list(range(1, 41))
        assert [line["return"] for line in lines] == [None, *map(float, range(2, 41))]
    # resumed after each kill, and every evaluation made once
    trainings = [call for call in calls(checkout) if call.startswith("shac") and "--contact soft" in call]
    assert [call.endswith("--resume") for call in trainings] == [False, True, True]
    evaluations = [call for call in calls(checkout) if call.startswith("evaluate")]
    assert len(evaluations) == len(set(evaluations)) == 10


def test_a_folder_is_held_by_one_leaderboard_at_a_time(work, monkeypatch):
    monkeypatch.setattr(conduct, "LOCK_SECONDS", 0.1)
    with conduct.claimed(work):
        began = time.monotonic()
        with pytest.raises(ValueError, match="is in use by another leaderboard"), conduct.claimed(work):
            pass
        assert time.monotonic() - began < 5.0
    with conduct.claimed(work):
        pass


def test_a_commit_is_dirty_when_it_says_so_or_when_the_run_went_on_at_another(carry_out, experiment, preset, work):
    carry_out()
    run = runs(experiment, preset)[0]
    path = work / run.name / "config.json"
    config = json.loads(path.read_text())
    clean = "a" * 40
    for commit, resumed, expected in (
        (clean, [], (clean, False)),
        (f"{clean}-dirty", [], (clean, True)),
        (clean, [{"commit": clean}], (clean, False)),
        (clean, [{"commit": "b" * 40}], (clean, True)),
        (None, [], (None, None)),
    ):
        path.write_text(json.dumps(config | {"commit": commit, "resumed": resumed}))
        record = conduct.record(run, RunFolder(work / run.name))
        assert (record.commit, record.dirty) == expected
