"""Evaluation: one episode a world, counted once; the record; other contact laws."""

import json

import pytest
import torch
from toy_worlds import Brittle, Cliff, Clock, PointMass

from agents import environment
from agents.evaluate import evaluate_run, first_episodes, table
from agents.shac import ShacSettings
from agents.train import train_shac

ENV = "toy_worlds:PointMass-v0"


class Still:
    """Takes no action, except for the noise."""

    def act(self, observation, noise=None):
        return torch.zeros(len(observation), 1) if noise is None else noise


class Push:
    """Full speed ahead."""

    def act(self, observation, noise=None):
        return torch.ones(len(observation), 2)


def judged(kind, agent, n=3, **options):
    envs = kind(n)
    observation = environment.reset(envs, 0)
    return first_episodes(envs, agent, observation, **({"deterministic": True, "seed": 0} | options))


def test_only_the_first_episode_counts():
    measured = judged(Clock, Still())
    assert measured["returns"] == [10.0, 10.0, 10.0]
    assert measured["lengths"] == [10, 10, 10]
    assert (measured["falls"], measured["nonfinite"]) == (0, 0)
    assert measured["return_std"] == 0.0


def test_worlds_that_have_finished_are_not_paid_while_others_go_on():
    envs = Clock(3)
    envs.limit = torch.tensor([3, 10, 7])
    observation = environment.reset(envs, 0)
    measured = first_episodes(envs, Still(), observation, deterministic=True, seed=0)
    assert measured["returns"] == [3.0, 10.0, 7.0]
    assert measured["lengths"] == [3, 10, 7]


def test_falls_are_counted():
    measured = judged(Cliff, Still())
    assert (measured["falls"], measured["length_mean"], measured["return_mean"]) == (3, 10.0, 10.0)


def test_worlds_that_end_early_wait_for_the_others():
    """Pushed away, worlds leave at different times; what happens in them later is not counted."""
    measured = judged(PointMass, Push(), n=20)
    assert measured["falls"] == 20
    assert min(measured["lengths"]) < max(measured["lengths"]) < 50
    assert measured["metrics"]["action"] == {"mean": pytest.approx(1.0), "rms": pytest.approx(1.0)}


def test_a_broken_world_is_no_fall_and_its_last_step_not_measured():
    measured = judged(Brittle, Push(), n=2)
    assert measured["nonfinite"] == 1
    assert measured["falls"] == 1
    assert measured["lengths"][0] == 5
    assert measured["metrics"]["action"]["mean"] == pytest.approx(1.0)


def test_noise_is_drawn_from_the_seed():
    measured = [judged(Clock, Still(), deterministic=False, seed=seed)["metrics"] for seed in (0, 0, 1)]
    assert measured[0] == measured[1] != measured[2]
    assert measured[0]["action"]["rms"] == pytest.approx(1.0, abs=0.4)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = ShacSettings(iterations=3, num_envs=4, horizon=8, actor_hidden=(8,), critic_hidden=(8,))
    return train_shac(ENV, settings=settings, out=tmp_path_factory.mktemp("run"))


def test_record(run):
    record = evaluate_run(run, episodes=5)
    assert json.loads((run / "evaluate-smoothed.json").read_text()) == record
    assert record["env"] == ENV
    assert record["contact"] == "smoothed"
    assert (record["episodes"], record["deterministic"]) == (5, True)
    assert record["trained"] == {
        "algorithm": "shac",
        "contact": "smoothed",
        "seed": 0,
        "iteration": 3,
        "samples": 96,
    }
    assert len(record["returns"]) == 5
    assert record["return_mean"] == pytest.approx(sum(record["returns"]) / 5)
    assert {"return_std", "length_mean", "falls", "nonfinite"} <= record.keys()
    assert evaluate_run(run, episodes=5) == record
    text = table(record)
    assert "judged in smoothed contact" in text
    assert f"{record['return_mean']:.2f}" in text


def test_another_law_and_sampled_actions(run):
    own, hard = evaluate_run(run, episodes=5), evaluate_run(run, "hard", 5)
    sampled = evaluate_run(run, "hard", 5, deterministic=False)
    assert own["returns"] != hard["returns"] != sampled["returns"]
    assert (run / "evaluate-hard.json").exists()
    assert json.loads((run / "evaluate-hard-stochastic.json").read_text())["deterministic"] is False


def test_refusals(run, tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        evaluate_run(tmp_path)
    with pytest.raises(ValueError, match="episodes is 0"):
        evaluate_run(run, episodes=0)
    with pytest.raises(ValueError, match="contact is 'sticky'"):
        evaluate_run(run, "sticky")
    assert not list(run.glob("evaluate-sticky*"))
