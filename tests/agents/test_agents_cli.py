"""The command line, in this process where that is enough and in another where it matters."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from agents import checkpoint, log
from agents.__main__ import main

ENV = "toy_worlds:PointMass-v0"
SMALL = ["--num-envs", "4", "--horizon", "4", "--actor-hidden", "8", "--critic-hidden", "8"]


def test_without_arguments_it_says_what_it_does(environment):
    result = subprocess.run([sys.executable, "-m", "agents"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    for command in ("agents shac ENV", "agents ppo ENV", "agents evaluate RUN", "--resume"):
        assert command in result.stdout


def test_train_evaluate_resume(tmp_path, capsys):
    out = str(tmp_path / "a")
    assert main(["shac", ENV, "--contact", "hard", "--seed", "3", "--out", out, "--iterations", "2", *SMALL]) == 0
    assert main(["evaluate", out, "--contact", "smoothed", "--episodes", "3", "--stochastic"]) == 0
    assert "sampled actions" in capsys.readouterr().out
    record = json.loads((tmp_path / "a" / "evaluate-smoothed-stochastic.json").read_text())
    assert (record["episodes"], record["trained"]["contact"], record["trained"]["seed"]) == (3, "hard", 3)
    # what is not said again stays as it was: the law, the seed, the widths
    assert main(["shac", ENV, "--out", out, "--resume", "--iterations", "3"]) == 0
    assert "iteration 2, step 32" in capsys.readouterr().out
    card = checkpoint.load(tmp_path / "a").card
    assert (card["iteration"], card["contact"], card["seed"]) == (3, "hard", 3)
    assert card["settings"]["actor_hidden"] == [8]


def test_ppo(tmp_path):
    out = str(tmp_path / "a")
    assert main(["ppo", "--iterations", "2", "--seed", "1", ENV, "--out", out, *SMALL]) == 0
    assert len(log.read(tmp_path / "a")) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["teach"], "unknown command 'teach': expected shac, ppo, evaluate"),
        (["shac", ENV, "--out", "{}/none", "--resume"], "no checkpoint at {}/none/checkpoint.safetensors"),
        (["shac", ENV, "--resume"], "--resume needs the run folder"),
        (["evaluate", "{}/none"], "no checkpoint at {}/none/checkpoint.safetensors"),
        (["shac", "toy_worlds:Nothing-v0", "--out", "{}/x"], "Nothing"),
        (["shac", ENV, "--contact", "sticky", "--out", "{}/x"], "contact is 'sticky'"),
        (["ppo", ENV, "--network-threads", "0", "--out", "{}/x"], "network_threads is 0"),
    ],
)
def test_one_sentence_and_nothing_written(tmp_path, capsys, arguments, sentence):
    status = main([word.format(tmp_path) for word in arguments])
    error = capsys.readouterr().err
    assert status == 2
    assert sentence.format(tmp_path) in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_another_environments_checkpoint_is_refused(tmp_path, capsys):
    out = str(tmp_path / "a")
    assert main(["shac", ENV, "--out", out, "--iterations", "1", *SMALL]) == 0
    capsys.readouterr()
    assert main(["shac", "toy_worlds:Brittle-v0", "--out", out, "--resume"]) == 2
    captured = capsys.readouterr()
    assert f"has env '{ENV}', not 'toy_worlds:Brittle-v0'" in captured.err


@pytest.mark.parametrize(
    ("option", "sentence"),
    [(("--horizons", "4"), "--horizons"), (("--num-envs", "0"), "num_envs is 0 in ShacSettings")],
)
def test_wrong_options_are_refused_before_anything_starts(tmp_path, capsys, option, sentence):
    with pytest.raises(SystemExit) as refusal:
        main(["shac", ENV, "--out", str(tmp_path / "a"), *option])
    assert refusal.value.code == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_stops(tmp_path, environment, number, status):
    out = tmp_path / "a"
    command = [
        sys.executable,
        "-m",
        "agents",
        "shac",
        ENV,
        "--out",
        str(out),
        "--iterations",
        "1000000",
        *SMALL,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not ((out / log.FILE).exists() and len((out / log.FILE).read_text().splitlines()) > 3):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    os.kill(process.pid, number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert errors == ""
    done = checkpoint.load(out).card["iteration"]
    assert f"iteration {done}, step" in output
    assert [entry["iteration"] for entry in log.read(out)] == list(range(1, done + 1))
    assert main(["shac", ENV, "--out", str(out), "--resume", "--until", str(done + 1)]) == 0
    assert checkpoint.load(out).card["iteration"] == done + 1


def test_training_may_end_with_a_judgement(tmp_path, capsys):
    out = tmp_path / "a"
    assert main(["shac", ENV, "--out", str(out), "--iterations", "1", "--judge", "3", *SMALL]) == 0
    assert "3 episodes, mean action" in capsys.readouterr().out
    told = (out / "evaluate-smoothed.json").read_text()
    assert main(["evaluate", str(out), "--episodes", "3"]) == 0
    assert (out / "evaluate-smoothed.json").read_text() == told
