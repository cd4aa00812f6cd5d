"""The suite's tables, with made-up records."""

import pytest

import diffenvs
from leaderboard.protocol import runs
from leaderboard.suite import SUITE, TRIALS, tabulate
from tests.leaderboard.made_up import made_up, rows


def records(*seeds):
    """Of the first environment; PPO reached the goal with seed 0 only."""
    (trial, *_) = TRIALS
    found = []
    for seed in seeds:
        there = {f"{trial.goal:g}": {"iteration": 5, "samples": 2e6 + seed, "seconds": 30.0}}
        found.append(made_up(trial.name("shac"), seed, "smoothed", env=trial.env, reached=there))
        found.append(made_up(trial.name("ppo"), seed, "smoothed", env=trial.env, reached={} if seed else there))
    return found


def test_every_environment_is_tried():
    assert {trial.env for trial in TRIALS} == {row.id for row in diffenvs.ENVS}


def test_a_row_per_environment_and_agent():
    returns, costs = tabulate(records(0, 1))
    first, second = rows(returns)
    assert (first["environment"], first["agent"], second["agent"]) == (f"`{TRIALS[0].env}`", "shac", "ppo")
    assert first["return"] == "1955 ± 7"
    assert first["return, hard law"] == "1905 ± 7"
    assert first["ended early"] == "6 of 200"
    shac, ppo = rows(costs)
    assert shac["samples to it"] == "2 M"
    assert ppo["samples to it"] == "2 M (1 of 2)"
    assert shac["goal"] == f"{TRIALS[0].goal:g}"


def test_the_commands_have_the_iterations_of_their_row():
    commands = {run.entry.name: run.command for run in runs(SUITE, SUITE.preset("quick"))}
    for trial in TRIALS:
        assert f"--iterations {trial.shac} " in commands[trial.name("shac")]
        assert f"--iterations {trial.ppo} " in commands[trial.name("ppo")]


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_the_figure_is_drawn(tmp_path, seeds):
    SUITE.draw(records(*seeds), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
