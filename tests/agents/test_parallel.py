"""Two processes against one: the same worlds, the same gradient, the same curve to rounding."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from shared_trainings import CASES, TOY

from agents import checkpoint, log
from agents.__main__ import main
from agents.parallel import Alone, Ranks, launched

HERE = Path(__file__).parent
TORCHRUN = {"LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
SMALL = ["--num-envs", "4", "--horizon", "4", "--actor-hidden", "8", "--critic-hidden", "8", "--dtype", "float64"]
LATER = 1e-6  # what rounding may have grown to after some tens of iterations


def variables(rank: int, port: int) -> dict[str, str]:
    """What torchrun tells a process of two on this machine."""
    return TORCHRUN | {"RANK": str(rank), "LOCAL_RANK": str(rank), "MASTER_PORT": str(port)}


def start(*arguments: str) -> list[subprocess.Popen]:
    """Two processes of one training, on the loopback interface."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = {"PYTHONPATH": f"{HERE.parents[1]}:{HERE}", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, *arguments]
    return [subprocess.Popen(command, env=os.environ | paths | variables(rank, port), **pipes) for rank in (0, 1)]


def finish(processes: list[subprocess.Popen]) -> list[tuple[int, str, str]]:
    """Status, output and errors of each."""
    try:
        written = [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *texts) for process, texts in zip(processes, written, strict=True)]


def wait_for_lines(out: Path, number: int, processes: list[subprocess.Popen]) -> None:
    deadline = time.monotonic() + 60
    while not (out / log.FILE).exists() or len((out / log.FILE).read_text().splitlines()) < number:
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in processes), finish(processes)
        time.sleep(0.05)


def tensors(directory: Path) -> dict[str, torch.Tensor]:
    return dict(checkpoint.leaves(checkpoint.load(directory).tensors))


def curve(directory: Path) -> list[dict]:
    """The log without what a clock measures."""
    lines = log.read(directory)
    return [{name: value for name, value in line.items() if not name.startswith("seconds")} for line in lines]


def assert_close_runs(one: Path, other: Path, tolerance: float = 1e-9) -> None:
    """Everything that is in two checkpoints, relative to the largest number of its kind, and the two curves."""
    first, second = tensors(one), tensors(other)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert tensor.dtype == second[name].dtype, name
        if not tensor.dtype.is_floating_point:
            assert torch.equal(tensor, second[name]), name
            continue
        scale = float(tensor.abs().max())
        torch.testing.assert_close(second[name], tensor, rtol=0, atol=tolerance * max(scale, 1e-6), msg=name)
    lines = curve(one), curve(other)
    assert len(lines[0]) > 0
    for line, same in zip(*lines, strict=True):
        expected = pytest.approx(dict(log._numbers(line)), rel=10.0 * tolerance, abs=tolerance)
        assert dict(log._numbers(same)) == expected


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Path:
    """Folder with all cases as two processes ran them."""
    out = tmp_path_factory.mktemp("pair")
    leader, follower = finish(start(str(HERE / "shared_trainings.py"), str(out)))
    assert leader[0] == follower[0] == 0, leader[2] + follower[2]
    assert follower[1] == "", "a process that does not lead printed"
    return out


@pytest.mark.filterwarnings("ignore:num_envs is 8, far below:UserWarning")
@pytest.mark.parametrize("name", ["shac", "shac-crumbs", "ppo", "ppo-crumbs", "robot"])
def test_two_processes_learn_what_one_learns(pair, tmp_path, name):
    CASES[name].run(tmp_path)
    assert_close_runs(tmp_path, pair / name)
    assert checkpoint.load(pair / name).card["counters"] == checkpoint.load(tmp_path).card["counters"]


@pytest.mark.parametrize("name", ["shac", "ppo"])
def test_two_resumed_processes_go_on_to_the_same_bits(pair, name):
    assert curve(pair / f"{name}-resumed") == curve(pair / name)
    whole, parts = tensors(pair / name), tensors(pair / f"{name}-resumed")
    assert [key for key in whole if not torch.equal(whole[key], parts[key])] == []


def test_a_checkpoint_of_two_processes_is_resumed_by_one(tmp_path):
    """SIGTERM to one of two stops both after the same iteration, with a checkpoint that one process goes on from."""
    out, alone = tmp_path / "together", tmp_path / "alone"
    arguments = ["shac", TOY, *SMALL, "--iterations", "1000"]
    processes = start("-m", "agents", *arguments, "--out", str(out))
    wait_for_lines(out, 3, processes)
    processes[1].send_signal(signal.SIGTERM)
    ends = finish(processes)
    assert [(status, errors) for status, _, errors in ends] == [(143, ""), (143, "")]
    done = checkpoint.load(out).card["iteration"]
    assert f"iteration {done}, step" in ends[0][1]
    last = str(done + 3)
    assert main([*arguments, "--out", str(out), "--resume", "--until", last]) == 0
    assert main([*arguments, "--out", str(alone), "--until", last]) == 0
    assert_close_runs(alone, out, LATER)


def test_a_killed_process_ends_the_other_and_the_run_resumes(tmp_path):
    out, alone = tmp_path / "together", tmp_path / "alone"
    arguments = ["ppo", TOY, *SMALL, "--iterations", "1000"]
    processes = start("-m", "agents", *arguments, "--out", str(out), "--checkpoint-minutes", "0")
    wait_for_lines(out, 3, processes)
    processes[1].kill()
    (status, _, errors), _ = finish(processes)
    assert status == 2
    assert errors.startswith("error: rank 0 of 2 stopped, because another has failed")
    assert errors.count("\n") == 1
    done = checkpoint.load(out).card["iteration"]
    assert done >= 2
    last = ["--until", str(done + 2)]
    leader, follower = finish(start("-m", "agents", *arguments, "--out", str(out), "--resume", *last))
    assert (leader[0], follower[0]) == (0, 0), leader[2] + follower[2]
    assert follower[1:] == ("", "")
    assert f"iteration {done}, step {done * 16}" in leader[1]
    assert main([*arguments, "--out", str(alone), *last]) == 0
    assert_close_runs(alone, out, LATER)


REFUSED = {
    ("--num-envs", "5"): "num_envs is 5: expected a multiple of the 2 processes",
    ("--device", "cuda"): "device is 'cuda' for 2 processes: expected a CUDA device for each",
}


@pytest.mark.parametrize("options", REFUSED)
@pytest.mark.parametrize("rank", [0, 1])
def test_what_two_processes_cannot_do_is_refused_once(tmp_path, monkeypatch, capsys, rank, options):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for name, value in variables(rank, 1).items():
        monkeypatch.setenv(name, value)
    assert main(["shac", TOY, "--out", str(tmp_path / "a"), *options]) == (0 if rank else 2)
    assert capsys.readouterr().err == ("" if rank else f"error: {REFUSED[options]}\n")
    assert list(tmp_path.iterdir()) == []


def test_an_environment_that_is_not_rows_of_worlds_is_refused():
    state = {"state": torch.zeros(2, 4), "generator": torch.zeros(5056)}
    assert Alone().whole(state, 2) is state
    with pytest.raises(ValueError, match=r"keeps generator of shape \(5056,\) for 2 worlds"):
        Ranks(0, 2).whole(state, 2)


@pytest.mark.parametrize("rows", [0, 1, 2, 9, 64])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_parts_follow_one_another(rows, size):
    parts = [list(range(rows))[Ranks(rank, size).part(rows)] for rank in range(size)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert Alone().part(rows) == slice(0, rows)


def test_a_process_knows_its_place():
    assert type(launched({"PATH": "/bin", "MASTER_PORT": "1"})) is Alone
    assert launched(variables(1, 29500)) == Ranks(1, 2, local_rank=1, local_size=2)
    assert (launched(variables(0, 1)).leads, launched(variables(1, 1)).leads) == (True, False)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"MASTER_ADDR": None}, "MASTER_ADDR is not"),
        ({"RANK": None}, "RANK is not"),
        ({"RANK": "2"}, "RANK is '2' and WORLD_SIZE '2'"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE 'many'"),
    ],
)
def test_half_a_launch_is_refused(changes, sentence):
    given = {name: value for name, value in (variables(0, 1) | changes).items() if value is not None}
    with pytest.raises(ValueError, match=sentence):
        launched(given)
