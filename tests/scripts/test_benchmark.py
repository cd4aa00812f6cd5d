"""The command: three files, the tables on the screen, and a status that a script can use."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def command(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "benchmark.py"), *map(str, arguments)],
        cwd=ROOT.parent,  # it works from anywhere
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_command_prints_and_writes(tmp_path):
    done = command("--preset", "smoke", "--peers", "mujoco", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| mujoco.rollout | forward | float64 |" in done.stdout
    assert len(list((tmp_path / "out").iterdir())) == 3


def test_a_bad_argument_is_one_sentence(tmp_path):
    done = command("--preset", "smoke", "--peers", "brax", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: there is no peer 'brax'")
    assert "Traceback" not in done.stderr
