"""Records of an experiment by entry, and the cells and sentences that sum their seeds up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from leaderboard.protocol import Evaluation
from leaderboard.records import Record
from leaderboard.statistics import Summary, summarise
from leaderboard.tables import plus_minus

Groups = Mapping[str, Sequence[Record]]
Results = Sequence[Mapping[str, Any]]


def by_entry(records: Sequence[Record], names: Iterable[str]) -> dict[str, list[Record]]:
    """Records by the name of their entry, in the order of the names; entries without a record are left out."""
    groups = {name: [record for record in records if record.entry == name] for name in names}
    return {name: group for name, group in groups.items() if group}


def results(records: Sequence[Record], test: Evaluation) -> list[Mapping[str, Any]]:
    """What that evaluation said of each record's policy."""
    return [record.evaluations[test.label] for record in records]


def summary(outcomes: Results, quantity: str) -> Summary:
    """Of an evaluation's `QUANTITY_mean`, one per seed."""
    return summarise([outcome[f"{quantity}_mean"] for outcome in outcomes])


def mean_and_spread(outcomes: Results, quantity: str) -> tuple[float, float]:
    """Mean, and standard deviation over seeds; with one seed, over its episodes."""
    over = summary(outcomes, quantity)
    return over.mean, outcomes[0][f"{quantity}_std"] if over.std is None else over.std


def spread(outcomes: Results, quantity: str, digits: int = 0) -> str:
    """`mean_and_spread` as a cell."""
    return plus_minus(*mean_and_spread(outcomes, quantity), digits)


def metric(outcomes: Results, name: str, statistic: str, digits: int = 2) -> str:
    """A metric's `mean` or `rms` over an evaluation's steps: its mean and deviation over seeds, as a cell."""
    over = summarise([outcome["metrics"][name][statistic] for outcome in outcomes])
    return plus_minus(over.mean, over.std, digits)


def falls(outcomes: Results) -> str:
    """`3 of 100` episodes ended in a fall."""
    fell, count = (sum(outcome[name] for outcome in outcomes) for name in ("falls", "episodes"))
    return f"{fell} of {count}"


def first_reached(records: Sequence[Record], milestone: float, quantity: str) -> list[float | None]:
    """Iteration, samples or seconds at which each training first showed that return; None when it never did."""
    return [record.reached.get(f"{milestone:g}", {}).get(quantity) for record in records]


def median_or_never(values: Sequence[float | None], show: Callable[[float], str]) -> str:
    """The median of the seeds that got there, and how many did when not all."""
    there = [value for value in values if value is not None]
    if not there:
        return "never"
    suffix = "" if len(there) == len(values) else f" ({len(there)} of {len(values)})"
    return show(median(there)) + suffix


def iteration_seconds(records: Sequence[Record]) -> str:
    """Median over seeds of the median time of an iteration."""
    return f"{median([record.seconds_per_iteration['iteration'] for record in records]):.3f} s"


def training_seconds(records: Sequence[Record]) -> str:
    """Median time of a training."""
    return f"{median([record.wall_seconds for record in records]):.0f} s"


def seeds_in_words(groups: Groups) -> str:
    """`seed 0`; `seeds 0, 1`; `seeds 0, 1 (soft, hard) and 0, 1, 2 (smoothed)` where entries differ."""
    entries: dict[str, list[str]] = {}
    for name, records in groups.items():
        entries.setdefault(", ".join(str(record.seed) for record in records), []).append(name)
    noun = "seeds" if any(len(records) > 1 for records in groups.values()) else "seed"
    if len(entries) == 1:
        return f"{noun} {next(iter(entries))}"
    return f"{noun} " + " and ".join(f"{seeds} ({', '.join(names)})" for seeds, names in entries.items())


def scale_in_words(groups: Groups) -> str:
    """Seeds, episodes, and over what the deviations are taken."""
    first = next(iter(groups.values()))[0]
    episodes = next(iter(first.evaluations.values()))["episodes"]
    many = {len(records) > 1 for records in groups.values()}
    over = {
        (True,): "seeds",
        (False,): "the episodes of the one seed",
        (False, True): "seeds, or the episodes where there is one seed",
    }[tuple(sorted(many))]
    return f"{seeds_in_words(groups)}, {episodes} episodes for each number; ± is the standard deviation over {over}"


def broken_worlds(records: Iterable[Record]) -> tuple[str, ...]:
    """A sentence when worlds went non-finite, nothing when none did."""
    count = sum(record.nonfinite for record in records)
    return (f"Worlds that went non-finite, each restarted: {count}.",) if count else ()
