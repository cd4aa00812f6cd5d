"""The experiments that `python -m leaderboard run` knows. A new one is a module and a row here."""

from __future__ import annotations

from leaderboard.contact_models import CONTACT_MODELS
from leaderboard.open_settings import OPEN_SETTINGS
from leaderboard.protocol import Experiment
from leaderboard.sample_efficiency import SAMPLE_EFFICIENCY
from leaderboard.suite import SUITE
from leaderboard.velocity_tracking import VELOCITY_TRACKING

EXPERIMENTS: tuple[Experiment, ...] = (CONTACT_MODELS, SAMPLE_EFFICIENCY, VELOCITY_TRACKING, OPEN_SETTINGS, SUITE)


def experiment(name: str) -> Experiment:
    """The experiment of that name; ValueError names those that exist."""
    for candidate in EXPERIMENTS:
        if candidate.name == name:
            return candidate
    known = ", ".join(candidate.name for candidate in EXPERIMENTS)
    raise ValueError(f"unknown experiment {name!r}: expected one of {known}")
