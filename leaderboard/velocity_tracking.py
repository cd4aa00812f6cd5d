"""Section 4.3 of Schwarke et al. 2025: how well a policy trained by SHAC follows velocity commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from leaderboard.figures import COLOURS, curve_over_seeds, finish_curves, learning_curves, new_figure, save
from leaderboard.over_seeds import (
    broken_worlds,
    falls,
    iteration_seconds,
    metric,
    results,
    scale_in_words,
    spread,
    training_seconds,
)
from leaderboard.protocol import Entry, Evaluation, Experiment, Preset
from leaderboard.records import Record
from leaderboard.tables import Table

ENV = "DiffAnymal-v0"
TRAINED, HARD = Evaluation("smoothed"), Evaluation("hard")
# Metric of the environment -> what people read.
ERRORS: Mapping[str, str] = {
    "velocity_error_x": "x in m/s",
    "velocity_error_y": "y in m/s",
    "yaw_rate_error": "yaw rate in rad/s",
}


def tabulate(records: Sequence[Record]) -> tuple[Table, ...]:
    """Tracking in the own and in the hard law, and what training took, by seed and in the mean."""
    return tracking(records), training(records)


def tracking(records: Sequence[Record]) -> Table:
    """Return, root mean square errors and falls of the mean action."""
    rows = [
        (
            test.contact,
            label,
            spread(outcomes, "return", 1),
            *(metric(outcomes, name, "rms", 3) for name in ERRORS),
            falls(outcomes),
        )
        for test in (TRAINED, HARD)
        for label, group in _by_seed(records, together="mean").items()
        for outcomes in (results(group, test),)
    ]
    columns = ("judged in", "seed", "return", *(f"error, {words}" for words in ERRORS.values()), "falls")
    seeds = "; in a row of one seed, over its episodes" if len(records) > 1 else ""
    scale = (
        f"SHAC, `{ENV}`, trained under {records[0].contact} contact, {records[0].iterations} iterations, "
        f"{scale_in_words({records[0].entry: records})}{seeds}. Errors are root mean squares over all steps, the first "
        "ones after a new command or a push among them."
    )
    reference = (
        "Commands are uniform in ±1 m/s, ±1 m/s and ±1 rad/s: a robot that stands still errs by 0.58 in each. "
        "The paper trains for 20000 iterations and prints no errors."
    )
    notes = (scale, reference, *broken_worlds(records))
    return Table("Velocity tracking, mean action", columns, tuple(rows), notes, labels=2)


def training(records: Sequence[Record]) -> Table:
    """Seconds of an iteration and of the training."""
    rows = tuple(
        (label, iteration_seconds(group), training_seconds(group))
        for label, group in _by_seed(records, together="median").items()
    )
    return Table("Training", ("seed", "seconds per iteration", "training"), rows, ("One process per core.",))


def draw(records: Sequence[Record], path: Path) -> None:
    """Return, and the errors while training, sampled actions, with the standing robot's as a line."""
    figure, (left, right) = new_figure(2)
    learning_curves(left, {records[0].entry: records}, ylabel="return while training")
    for colour, (name, words) in zip(COLOURS, ERRORS.items(), strict=False):
        curve_over_seeds(right, records, x="iteration", y=f"{name}_rms", colour=colour, label=words)
    right.axhline(3**-0.5, color="black", linestyle=":", linewidth=1, label="standing still")
    right.set_ylim(bottom=0.0)
    finish_curves(right, xlabel="iteration", ylabel="root mean square error while training")
    save(figure, path)


def _by_seed(records: Sequence[Record], together: str) -> dict[str, Sequence[Record]]:
    """Every seed alone, then all of them under the name `together` when there are several."""
    alone: dict[str, Sequence[Record]] = {str(record.seed): [record] for record in records}
    return alone | ({together: records} if len(records) > 1 else {})


VELOCITY_TRACKING = Experiment(
    name="velocity-tracking",
    title="SHAC on Task B, velocity tracking with ANYmal D (Section 4.3 of Schwarke et al. 2025)",
    entries=(Entry("shac", "shac", ENV, TRAINED.contact, (TRAINED, HARD), 0.4, 20.0, metrics=tuple(ERRORS)),),
    presets=(
        Preset("smoke", seeds=(0,), iterations=3, episodes=4, num_envs=8, kept=False),
        Preset("quick", seeds=(0,), iterations=600, episodes=100),
        Preset("seeds", seeds=(0, 1, 2), iterations=600, episodes=100),
        Preset("paper", seeds=tuple(range(5)), iterations=20_000, episodes=100),
    ),
    tabulate=tabulate,
    draw=draw,
)
