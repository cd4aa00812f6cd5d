"""CONTRIBUTING's walk through adding an environment, done in a copy of the package."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ID = "DiffPuck-v0"
# the environment in use: Gymnasium's checks, gradients under every law, a few iterations of both agents
USE = f"""
import json, sys, warnings
import gymnasium as gym
from gymnasium.utils.env_checker import check_env
import diffenvs
from agents.shac import ShacSettings
from agents.train import train_shac
from agents.evaluate import evaluate_run
warnings.simplefilter("error")
check_env(gym.make("{ID}").unwrapped, skip_render_check=True)
said = {{}}
for law in diffenvs.CONTACT:
    envs = diffenvs.DiffVecEnv("{ID}", num_envs=4, contact=law)
    said[law] = str(envs.check_gradients(horizons=(1, 8), directions=1))
settings = ShacSettings(iterations=40, num_envs=16, horizon=16, actor_hidden=(16,), critic_hidden=(16,))
judged = [
    evaluate_run(train_shac("{ID}", settings=s, out=sys.argv[1] + n), episodes=16)["return_mean"]
    for n, s in (("/a", settings), ("/b", ShacSettings(iterations=1, num_envs=16, horizon=16)))
]
print("said", json.dumps([said, judged]))
"""


def walk() -> tuple[str, str, str]:
    """MJCF, task and row as CONTRIBUTING has them."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Add an environment")[1].split("\n## ")[0]
    (mjcf,) = re.findall(r"^```xml\n(.*?)^```$", text, re.M | re.S)
    (task,) = re.findall(r"^```py\n(.*?)^```$", text, re.M | re.S)
    (row,) = re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
    return mjcf, task, row


def test_the_file_is_short():
    _, task, _ = walk()
    assert len(task.splitlines()) <= 120


@pytest.mark.slow
def test_an_environment_is_one_file_one_model_and_one_row(tmp_path):
    mjcf, task, row = walk()
    for package in ("diffenvs", "agents"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "diffenvs/assets/puck.xml").write_text(mjcf)
    (tmp_path / "diffenvs/envs/puck.py").write_text(task)
    registry = tmp_path / "diffenvs/registry.py"
    text = registry.read_text()
    text = text.replace("from diffenvs.task import", "from diffenvs.envs.puck import Puck\nfrom diffenvs.task import")
    registry.write_text(text.replace("ENVS = (\n", f"ENVS = (\n{row}"))
    command = [sys.executable, "-c", USE, str(tmp_path / "runs")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("said ")]
    reports, (trained, untrained) = json.loads(line.removeprefix("said "))
    assert len(reports) == 3
    for law, report in reports.items():
        assert "the gradient is right" in report, f"{law}\n{report}"
    assert trained > untrained
