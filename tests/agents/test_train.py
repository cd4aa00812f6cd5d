"""Training: it learns, repeats itself, and resumes to the same curve."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from agents import checkpoint, log
from agents.evaluate import evaluate_run
from agents.ppo import PpoSettings
from agents.shac import ShacSettings
from agents.train import RunOptions, prepare, train_ppo, train_shac

ENV = "toy_worlds:PointMass-v0"
NETWORKS = {"actor_hidden": (32,), "critic_hidden": (32,)}
SMALL = {
    "shac": ShacSettings(iterations=20, num_envs=8, horizon=8, lr_decay="linear", stagger=True, **NETWORKS),
    "ppo": PpoSettings(iterations=20, num_envs=8, horizon=8, **NETWORKS),
}
TRAIN = {"shac": train_shac, "ppo": train_ppo}
both = pytest.mark.parametrize("algorithm", ["shac", "ppo"])


def curve(directory: Path) -> list[dict]:
    """The log without what a clock measures."""
    return [
        {name: value for name, value in entry.items() if not name.startswith("seconds")}
        for entry in log.read(directory)
    ]


def tensors(directory: Path) -> dict[str, torch.Tensor]:
    return dict(checkpoint.leaves(checkpoint.load(directory).tensors))


def assert_same_run(one: Path, other: Path) -> None:
    assert curve(one) == curve(other)
    first, second = tensors(one), tensors(other)
    assert first.keys() == second.keys()
    different = [name for name in first if not torch.equal(first[name], second[name])]
    assert different == []


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("shac", ShacSettings(iterations=60, num_envs=16, horizon=16, **NETWORKS)),
        ("ppo", PpoSettings(iterations=60, num_envs=32, horizon=24, **NETWORKS)),
    ],
)
def test_learns_to_reach_the_origin(tmp_path, algorithm, settings):
    """Doing nothing earns about 7 of 50 before drifting away; reaching the origin at once earns about 49."""
    TRAIN[algorithm](ENV, settings=settings, out=tmp_path)
    lines = log.read(tmp_path)
    assert len(lines) == settings.iterations
    assert lines[-1]["samples"] == settings.iterations * settings.num_envs * settings.horizon
    record = evaluate_run(tmp_path, episodes=32)
    assert record["return_mean"] > 45.0
    assert record["falls"] == 0
    assert evaluate_run(tmp_path, episodes=32, deterministic=False)["return_mean"] > 35.0


@both
def test_same_seed_same_run(tmp_path, algorithm):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.randn(3)  # what happened before in the process must not matter
        TRAIN[algorithm](ENV, settings=SMALL[algorithm], seed=seed, out=tmp_path / name, until=4)
    assert_same_run(tmp_path / "a", tmp_path / "b")
    assert curve(tmp_path / "a") != curve(tmp_path / "c")


@both
def test_resumed_in_a_new_process_it_is_the_same_run(tmp_path, environment, algorithm):
    """20 iterations against 10, a checkpoint, 3 more that are lost, and 10 in another process."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    TRAIN[algorithm](ENV, settings=SMALL[algorithm], out=whole)
    training = prepare(algorithm, RunOptions(ENV, out=parts, until=10), SMALL[algorithm])
    training.run()
    with log.TrainingLog(parts, training.iteration, 20) as training_log:
        for iteration in (11, 12, 13):
            training_log.write(curve(parts)[-1] | {"iteration": iteration, "seconds_iteration": 0.0})

    command = [sys.executable, "-m", "agents", algorithm, ENV, "--out", str(parts), "--resume"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    file = parts / "checkpoint.safetensors"
    assert f"resuming {file}: iteration 10, step 640" in result.stdout
    assert f"saved {file}: iteration 20, step 1280" in result.stdout
    assert result.stderr == ""
    assert_same_run(whole, parts)
    assert checkpoint.load(parts).card["counters"] == checkpoint.load(whole).card["counters"]
    config = json.loads((parts / "config.json").read_text())
    assert [entry["iteration"] for entry in config["resumed"]] == [10]


def test_more_iterations_may_be_asked_for_when_resuming(tmp_path):
    settings = ShacSettings(iterations=2, num_envs=4, horizon=4, **NETWORKS)
    train_shac(ENV, settings=settings, out=tmp_path)
    longer = ShacSettings(iterations=3, num_envs=4, horizon=4, **NETWORKS)
    train_shac(ENV, settings=longer, out=tmp_path, resume=True)
    assert [entry["iteration"] for entry in log.read(tmp_path)] == [1, 2, 3]
    assert json.loads((tmp_path / "config.json").read_text())["settings"]["iterations"] == 3
    with pytest.raises(ValueError, match=r"iterations is 2: the checkpoint in .* has done 3"):
        train_shac(ENV, settings=settings, out=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env": "toy_worlds:Brittle-v0"}, "has env 'toy_worlds:PointMass-v0', not 'toy_worlds:Brittle-v0'"),
        ({"contact": "hard"}, "has contact 'smoothed', not 'hard'"),
        ({"seed": 7}, "has seed 0, not 7"),
        ({"settings": ShacSettings(iterations=2, num_envs=4, horizon=5, **NETWORKS)}, "has horizon 4, not 5"),
        ({"algorithm": "ppo", "settings": None}, "has algorithm 'shac', not 'ppo'"),
    ],
)
def test_another_runs_checkpoint_is_refused(tmp_path, changes, message):
    settings = ShacSettings(iterations=2, num_envs=4, horizon=4, **NETWORKS)
    train_shac(ENV, settings=settings, out=tmp_path, until=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    options = {"env": ENV, "settings": settings, "algorithm": "shac"} | changes
    algorithm = options.pop("algorithm")
    with pytest.raises(ValueError, match=message):
        TRAIN[algorithm](options.pop("env"), out=tmp_path, resume=True, **options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_target_ends_the_training_at_the_first_iteration_that_shows_it(tmp_path):
    settings = SMALL["shac"]
    whole = train_shac(ENV, settings=settings, out=tmp_path / "whole")
    returns = [line["return"] for line in log.read(whole)]
    target = max(value for value in returns if value is not None)
    first = next(i for i, value in enumerate(returns, 1) if value is not None and value >= target)
    short = train_shac(ENV, settings=settings, out=tmp_path / "short", target=target)
    assert [line["return"] for line in log.read(short)] == returns[:first]
    assert checkpoint.load(short).card["iteration"] == first


@pytest.mark.parametrize(
    ("option", "said"), [({"target": float("nan")}, "target is nan"), ({"judge": -1}, "judge is -1")]
)
def test_a_target_or_a_number_of_episodes_that_is_none_is_refused(tmp_path, option, said):
    with pytest.raises(ValueError, match=said):
        train_shac(ENV, out=tmp_path / "a", **option)
    assert not (tmp_path / "a").exists()


def test_a_run_is_never_overwritten(tmp_path):
    settings = ShacSettings(iterations=1, num_envs=4, horizon=4, **NETWORKS)
    train_shac(ENV, settings=settings, out=tmp_path)
    with pytest.raises(FileExistsError, match="holds a run"):
        train_shac(ENV, settings=settings, out=tmp_path)


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew(tmp_path):
    settings = ShacSettings(iterations=2, num_envs=4, horizon=4, **NETWORKS)
    train_shac(ENV, settings=settings, out=tmp_path)
    (tmp_path / "checkpoint.safetensors").unlink()
    train_shac(ENV, settings=settings, out=tmp_path)
    assert [entry["iteration"] for entry in log.read(tmp_path)] == [1, 2]


def test_what_the_run_was_made_with_is_recorded(tmp_path):
    settings = ShacSettings(iterations=1, num_envs=4, horizon=4, **NETWORKS)
    train_shac(ENV, settings=settings, contact="hard", seed=5, out=tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["algorithm"], config["env"], config["contact"], config["seed"]) == ("shac", ENV, "hard", 5)
    assert config["settings"]["critic_hidden"] == [32]
    assert config["versions"]["torch"] == torch.__version__
    assert {"python", "torch", "gymnasium", "numpy", "mujoco", "warp-lang"} <= config["versions"].keys()
    assert "commit" in config


def test_a_broken_world_shows_in_the_log(tmp_path):
    settings = ShacSettings(iterations=3, num_envs=4, horizon=10, **NETWORKS)
    train_shac("toy_worlds:Brittle-v0", settings=settings, out=tmp_path)
    lines = log.read(tmp_path)
    assert [entry["nonfinite"] for entry in lines] == [2, 2, 2]
    assert checkpoint.load(tmp_path).card["counters"]["nonfinite"] == 6
    assert all(entry["metrics"]["action"]["rms"] > 0 for entry in lines)
