"""What the paper leaves open about SHAC on Task A: each choice made here against the one it was preferred to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leaderboard.figures import learning_curves, new_figure, save
from leaderboard.over_seeds import (
    broken_worlds,
    by_entry,
    falls,
    first_reached,
    median_or_never,
    metric,
    results,
    scale_in_words,
    spread,
)
from leaderboard.protocol import Entry, Evaluation, Experiment, Preset
from leaderboard.records import Record
from leaderboard.tables import Table

ENV = "DiffQuadruped-v0"
TEST = Evaluation("smoothed")
MILESTONE = 1800


def _entry(name: str, *options: str) -> Entry:
    return Entry(name, "shac", ENV, TEST.contact, (TEST,), 0.16, 4.0, options=options)


ENTRIES = (
    _entry("as-set"),
    _entry("no-layer-norm", "--no-layer-norm"),
    _entry("last-gain-0.1", "--last-gain", "0.1"),
    _entry("log-std-minus-1.7", "--log-std", "-1.7"),
)


def tabulate(records: Sequence[Record]) -> tuple[Table, ...]:
    """Return, falls and speed of the mean action, and when the training first walked."""
    groups = by_entry(records, (entry.name for entry in ENTRIES))
    rows = []
    for name, group in groups.items():
        outcomes = results(group, TEST)
        rows.append(
            (
                name,
                spread(outcomes, "return"),
                f"{min(outcome['return_mean'] for outcome in outcomes):.0f}",
                falls(outcomes),
                metric(outcomes, "forward_velocity", "mean"),
                median_or_never(first_reached(group, MILESTONE, "iteration"), lambda value: f"{value:.0f}"),
            )
        )
    columns = ("setting", "return", "worst seed", "falls", "speed in m/s", f"iterations to {MILESTONE}")
    scale = (
        f"SHAC, `{ENV}`, smoothed contact, {records[0].iterations} iterations, mean action, {scale_in_words(groups)}."
    )
    return (Table("Settings that the paper leaves open", columns, tuple(rows), (scale, *broken_worlds(records))),)


def draw(records: Sequence[Record], path: Path) -> None:
    """Learning curves."""
    figure, axes = new_figure(1)
    learning_curves(axes[0], by_entry(records, (entry.name for entry in ENTRIES)), ylabel="return while training")
    save(figure, path)


OPEN_SETTINGS = Experiment(
    name="open-settings",
    title="SHAC on Task A: settings that Schwarke et al. 2025 leave open",
    entries=ENTRIES,
    presets=(
        Preset("smoke", seeds=(0,), iterations=3, episodes=4, num_envs=8, kept=False),
        Preset("quick", seeds=(0, 1), iterations=400, episodes=100),
        Preset("paper", seeds=tuple(range(5)), iterations=1000, episodes=100),
    ),
    tabulate=tabulate,
    draw=draw,
)
