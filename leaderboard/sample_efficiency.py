"""Figure 4 and Table 2 of Schwarke et al. 2025: how many samples and seconds SHAC and PPO take to walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from leaderboard.figures import COLOURS, learning_curves, new_figure, save
from leaderboard.over_seeds import (
    Groups,
    broken_worlds,
    by_entry,
    falls,
    first_reached,
    iteration_seconds,
    median_or_never,
    metric,
    results,
    scale_in_words,
    seeds_in_words,
    spread,
    training_seconds,
)
from leaderboard.protocol import Entry, Evaluation, Experiment, Preset
from leaderboard.records import Record
from leaderboard.tables import Table, seconds

ENV = "DiffQuadruped-v0"
TRAINED = Evaluation("smoothed")
MILESTONES = (1000, 1500, 1800, 1900)  # standing still gives about 1,400


@dataclass(frozen=True)
class Published:
    """Table 2: seconds and samples of an iteration. Figure 4: samples to a return; 1900 was not read off."""

    iteration_seconds: float
    iteration_samples: int
    samples: Mapping[int, float]


PUBLISHED: Mapping[str, Published] = {
    "shac": Published(0.330, 2048, {1000: 0.135e6, 1500: 0.58e6, 1800: 0.82e6}),
    "ppo": Published(0.183, 49152, {1000: 5.0e6, 1500: 5.4e6, 1800: 19.5e6}),
}


def tabulate(records: Sequence[Record]) -> tuple[Table, ...]:
    """Samples and seconds to each return, what an iteration costs, how the policies walk at the end."""
    groups = by_entry(records, PUBLISHED)
    return milestones(groups), iterations(groups), final(groups)


def milestones(groups: Groups) -> Table:
    """Where the training curve first shows each return, beside Figure 4."""
    rows = []
    for target in MILESTONES:
        for name, records in groups.items():
            paper = PUBLISHED[name].samples.get(target)
            rows.append(
                (
                    str(target),
                    name,
                    median_or_never(first_reached(records, target, "samples"), millions),
                    "-" if paper is None else millions(paper),
                    median_or_never(first_reached(records, target, "seconds"), seconds),
                )
            )
    columns = ("return", "agent", "samples", "paper: samples", "seconds on one core")
    scale = (
        f"`{ENV}`, smoothed contact, {seeds_in_words(groups)}; medians over seeds of the first iteration whose "
        "training curve (sampled actions) shows that return."
    )
    broken = broken_worlds(record for records in groups.values() for record in records)
    notes = (scale, *_comparison(groups), *broken)
    return Table("Samples and seconds to a return", columns, tuple(rows), notes, labels=2)


def iterations(groups: Groups) -> Table:
    """What an iteration costs, beside Table 2."""
    rows = []
    for name, records in groups.items():
        paper = PUBLISHED[name]
        rows.append(
            (
                name,
                str(records[0].iterations),
                f"{records[0].samples / records[0].iterations:.0f}",
                str(paper.iteration_samples),
                iteration_seconds(records),
                f"{paper.iteration_seconds:.3f} s",
                millions(records[0].samples),
                training_seconds(records),
            )
        )
    columns = (
        *("agent", "iterations", "samples per iteration", "paper"),
        *("seconds per iteration", "paper: GPU", "samples", "training"),
    )
    note = "Medians over seeds, one process per core; the paper's iterations ran on an RTX 2080 Ti."
    return Table("Iterations", columns, tuple(rows), (note,))


def final(groups: Groups) -> Table:
    """The policies at the end of training, mean action."""
    rows = []
    for name, records in groups.items():
        outcomes = results(records, TRAINED)
        speed = metric(outcomes, "forward_velocity", "mean")
        rows.append((name, spread(outcomes, "return"), spread(outcomes, "seconds", 2), speed, falls(outcomes)))
    columns = ("agent", "return", "episode s", "speed in m/s", "falls")
    scale = scale_in_words(groups)
    note = f"{scale[0].upper()}{scale[1:]}. The task asks for 1 m/s."
    return Table("After training, mean action", columns, tuple(rows), (note,))


def draw(records: Sequence[Record], path: Path) -> None:
    """Training return against samples, the paper's as diamonds, and against seconds; both axes logarithmic."""
    groups = by_entry(records, PUBLISHED)
    figure, (left, right) = new_figure(2)
    for colour, name in zip(COLOURS, groups, strict=False):
        known = PUBLISHED[name].samples
        marks = {"linestyle": "none", "marker": "D", "markerfacecolor": "white", "markeredgecolor": colour}
        left.plot(list(known.values()), list(known), **marks, label=f"{name}, paper")
    for panel, x in ((left, "samples"), (right, "seconds")):
        learning_curves(panel, groups, ylabel="return while training", x=x, log=True)
    right.set_xlabel("seconds on one core")
    save(figure, path)


def millions(count: float) -> str:
    """`0.82 M`, to three digits."""
    return f"{count / 1e6:.3g} M"


def _comparison(groups: Groups) -> tuple[str, ...]:
    """A sentence for the highest of the paper's returns that both agents reached in every seed."""
    if set(groups) != set(PUBLISHED):
        return ()
    for target, paper in sorted(PUBLISHED["ppo"].samples.items(), reverse=True):
        samples = _ratio(groups, target, "samples")
        time = _ratio(groups, target, "seconds")
        if samples and time:
            published = paper / PUBLISHED["shac"].samples[target]
            sentence = f"To {target} PPO takes {samples:.3g} times the samples of SHAC (paper: {published:.3g} times) "
            return (f"{sentence}and {time:.3g} times the seconds.",)
    return ()


def _ratio(groups: Groups, target: int, quantity: str) -> float | None:
    """PPO's median over SHAC's of what it took to reach that return; None unless every seed reached it."""
    ppo, shac = (first_reached(groups[name], target, quantity) for name in ("ppo", "shac"))
    return None if None in ppo or None in shac else median(ppo) / median(shac)


def _entry(agent: str, seconds_per_iteration: float) -> Entry:
    return Entry(agent, agent, ENV, TRAINED.contact, (TRAINED,), seconds_per_iteration, 4.0)


SAMPLE_EFFICIENCY = Experiment(
    name="sample-efficiency",
    title="SHAC and PPO on Task A under smoothed contact (Figure 4 and Table 2 of Schwarke et al. 2025)",
    entries=(_entry("shac", 0.16), _entry("ppo", 1.0)),
    presets=(
        Preset("smoke", seeds=(0,), iterations=3, episodes=4, num_envs=8, kept=False),
        Preset("quick", seeds=(0,), iterations=400, episodes=100, own_iterations={"ppo": 1000}),
        Preset("paper", seeds=tuple(range(5)), iterations=1000, episodes=100),
    ),
    tabulate=tabulate,
    draw=draw,
)
