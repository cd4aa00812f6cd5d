"""The race from a process to a judged policy: it times, keeps what it has, and never calls a miss an arrival."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leaderboard.benchmark.race import Goal, Lap, markdown, race

SCRIPT = Path(__file__).parents[2] / "scripts" / "race.py"


def test_a_lap_is_timed_judged_and_kept(tmp_path):
    """Two iterations reach -1000 with the first episode that ends, or not at all; never 1e6."""
    command = [sys.executable, str(SCRIPT), "--agents", "shac", "--seeds", "3", "--goal.iterations", "2"]
    command += ["--goal.episode-return", "1e6", "--goal.episodes", "2", "--out", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / "race.json").read_text())
    (lap,) = record["laps"]
    assert lap["seconds"] > lap["training_seconds"] > 0.0
    assert not lap["arrived"]
    assert lap["samples"] == 2 * 64 * 32
    assert "never there" in (tmp_path / "race.md").read_text()
    assert {"machine", "versions", "commit"} <= record.keys()
    again = race(Goal(episode_return=1e6, episodes=2, iterations=2), ["shac"], [3], tmp_path, say=str)
    assert again[0].seconds == pytest.approx(lap["seconds"], rel=1e-3)
    with pytest.raises(ValueError, match="holds another race"):
        race(Goal(episode_return=5.0, episodes=2, iterations=2), ["shac"], [3], tmp_path, say=str)


def test_agents_and_seeds_there_must_be(tmp_path):
    with pytest.raises(ValueError, match=r"seeds \[\], expected at least one"):
        race(Goal(), ["shac"], [], tmp_path / "a", say=str)
    assert not (tmp_path / "a").exists()


def test_a_failed_training_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="dqn"):
        race(Goal(), ["dqn"], [0], tmp_path, say=str)


def test_the_comparison_is_of_medians_and_only_of_arrivals():
    laps = [Lap("shac", s, t, t, 100 * s, 1900.0, True) for s, t in enumerate((10.0, 20.0, 30.0), 1)]
    laps += [Lap("ppo", s, t, t, 1000 * s, 1900.0, True) for s, t in enumerate((150.0, 100.0, 200.0), 1)]
    page = markdown(Goal(), laps)
    assert "PPO takes 7.5 times the seconds of SHAC and 10 times the samples" in page
    assert "its fastest seed 3.33 times" in page
    assert "Medians" not in markdown(Goal(), [*laps[:-1], Lap("ppo", 3, 1.0, 1.0, 1, 20.0, False)])
