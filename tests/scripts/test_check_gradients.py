"""The command: a table on the screen, files in a folder, and a status that a script can use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def command(*arguments):
    return subprocess.run(
        [sys.executable, "scripts/check_gradients.py", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_two_laws_in_one_figure(tmp_path):
    done = command(
        *("DiffQuadruped-v0", "--contact", "hard", "smoothed", "--horizon", 1, 3),
        *("--worlds", 2, "--directions", 1, "--out", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the gradient is right") == 2
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    laws = ("hard", "smoothed")
    assert written == [*(f"DiffQuadruped-v0-{law}.json" for law in laws), "DiffQuadruped-v0.png"]
    for law in laws:
        record = json.loads((tmp_path / "out" / f"DiffQuadruped-v0-{law}.json").read_text())
        assert (record["env"], record["verdict"], record["horizons"]) == ("DiffQuadruped-v0", "right", [1, 3])
        assert record["contact"].lower().startswith(law)
    assert (tmp_path / "out" / "DiffQuadruped-v0.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("DiffQuadrupd-v0",), "there is no environment 'DiffQuadrupd-v0'"),
        (("DiffQuadruped-v0", "--contact", "sticky"), "contact is 'sticky'"),
        (("DiffQuadruped-v0", "--horizon", "0"), "horizon is 0"),
    ],
)
def test_a_bad_argument_is_one_sentence(arguments, said):
    done = command(*arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {said}")
    assert "Traceback" not in done.stderr


def test_a_wrong_gradient_is_a_failure():
    # the command as it is, on a simulator that forgets half of the adjoint of the velocity
    program = """
import runpy, sys
from diffenvs.sim.program import Program
whole = Program.backward
def half(self, *, parameters):
    self.outputs_bar.qvel.assign(0.5 * self.outputs_bar.qvel.numpy())
    whole(self, parameters=parameters)
Program.backward = half
sys.argv = ["check_gradients.py", "DiffQuadruped-v0", "--horizon", "1", "--worlds", "1"]
runpy.run_path("scripts/check_gradients.py", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the gradient is wrong" in done.stdout
    assert "at step 0: the gradient to qpos, qvel" in done.stdout
