"""A checkout whose agents are the made-up ones, and a small experiment to run with them."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard.contact_models import CONTACT_MODELS
from leaderboard.protocol import Preset


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A folder in which `python -m agents` is the made-up one; its iterations take 2 ms."""
    folder = tmp_path / "checkout"
    (folder / "agents").mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "made_up_agents.py", folder / "agents" / "__main__.py")
    (folder / "pace").write_text("0.002")
    return folder


@pytest.fixture
def preset() -> Preset:
    """Two seeds, twelve iterations."""
    return Preset("made-up", seeds=(0, 1), iterations=12, episodes=3)


@pytest.fixture
def experiment(preset):
    """The contact-model experiment with that preset beside its own."""
    return replace(CONTACT_MODELS, presets=(*CONTACT_MODELS.presets, preset))
