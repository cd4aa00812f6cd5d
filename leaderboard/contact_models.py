"""Table 1 of Schwarke et al. 2025: which contact law to train under, judged in its own and the hard law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leaderboard.figures import bars, learning_curves, new_figure, save
from leaderboard.over_seeds import (
    Groups,
    Results,
    by_entry,
    falls,
    first_reached,
    iteration_seconds,
    mean_and_spread,
    median_or_never,
    metric,
    results,
    scale_in_words,
    spread,
    summary,
    training_seconds,
)
from leaderboard.protocol import Entry, Evaluation, Experiment, Preset
from leaderboard.records import Record
from leaderboard.tables import Table, percent, plus_minus, seconds

ENV = "DiffQuadruped-v0"
HARD = "hard"
MILESTONE = 1800  # the return at which Task A walks for certain; standing still gives about 1,400


@dataclass(frozen=True)
class Published:
    """A row of Table 1: return and episode seconds, mean and deviation, in the own and in the hard law."""

    own: tuple[float, float]
    own_seconds: tuple[float, float]
    hard: tuple[float, float]
    hard_seconds: tuple[float, float]


PUBLISHED: Mapping[str, Published] = {
    "soft": Published((2231, 192), (9.69, 0.28), (325, 250), (1.58, 1.15)),
    "hard": Published((2059, 125), (9.57, 0.15), (2059, 125), (9.57, 0.15)),
    "smoothed": Published((2311, 62), (9.88, 0.09), (2255, 99), (9.73, 0.25)),
}


def _entry(law: str, seconds_per_iteration: float, evaluation_seconds: float) -> Entry:
    evaluations = tuple(
        Evaluation(contact, stochastic) for contact in dict.fromkeys((law, HARD)) for stochastic in (False, True)
    )
    return Entry(law, "shac", ENV, law, evaluations, seconds_per_iteration, evaluation_seconds)


def tabulate(records: Sequence[Record]) -> tuple[Table, ...]:
    """The comparison with the mean and with sampled actions, how they walked, what the training took."""
    groups = by_entry(records, PUBLISHED)
    return (
        comparison(groups, stochastic=False),
        comparison(groups, stochastic=True),
        episodes(groups),
        training(groups),
    )


def comparison(groups: Groups, *, stochastic: bool) -> Table:
    """Table 1 beside the paper's numbers."""
    rows = []
    for law, records in groups.items():
        own = results(records, Evaluation(law, stochastic))
        hard = results(records, Evaluation(HARD, stochastic))
        paper = PUBLISHED[law]
        rows.append(
            (
                law,
                spread(own, "return"),
                spread(own, "seconds", 2),
                spread(hard, "return"),
                spread(hard, "seconds", 2),
                percent(kept(own, hard)),
                f"{plus_minus(*paper.own)} / {plus_minus(*paper.hard)}",
                f"{paper.own_seconds[0]:.2f} / {paper.hard_seconds[0]:.2f}",
                percent(paper.hard[0] / paper.own[0]),
            )
        )
    columns = (
        *("trained with", "return, own law", "episode s", "return, hard law", "episode s"),
        "kept in the hard law",
        *("paper: own / hard", "paper: episode s", "paper: kept"),
    )
    action = "sampled actions" if stochastic else "mean action"
    return Table(f"Contact models, {action}", columns, tuple(rows), _notes(groups, stochastic))


def episodes(groups: Groups) -> Table:
    """How the policies walked: speed, and how many episodes ended in a fall."""
    rows = []
    for law, records in groups.items():
        cells = []
        for contact in (law, HARD):
            outcomes = results(records, Evaluation(contact))
            cells += [metric(outcomes, "forward_velocity", "mean"), falls(outcomes)]
        rows.append((law, *cells))
    columns = (
        *("trained with", "speed in m/s, own law", "falls, own law"),
        *("speed in m/s, hard law", "falls, hard law"),
    )
    return Table("Walking, mean action", columns, tuple(rows), ("The task asks for 1 m/s.",))


def training(groups: Groups) -> Table:
    """What each law cost to train with, and how soon it walked."""
    bad = any(record.nonfinite for records in groups.values() for record in records)
    rows = []
    for law, records in groups.items():
        row = (
            law,
            str(len(records)),
            iteration_seconds(records),
            median_or_never(first_reached(records, MILESTONE, "iteration"), lambda value: f"{value:.0f}"),
            median_or_never(first_reached(records, MILESTONE, "seconds"), seconds),
            training_seconds(records),
        )
        rows.append((*row, str(sum(record.nonfinite for record in records))) if bad else row)
    columns = (
        *("trained with", "seeds", "per iteration"),
        *(f"first {MILESTONE} at iteration", f"first {MILESTONE} after", "training"),
        *(("non-finite worlds",) if bad else ()),
    )
    note = "Medians over seeds, one process per core. The paper's GPU took 0.330 s an iteration (smoothed)."
    return Table("Training", columns, tuple(rows), (note,))


def draw(records: Sequence[Record], path: Path) -> None:
    """Learning curves, and returns in the own and in the hard law with the paper's as diamonds."""
    groups = by_entry(records, PUBLISHED)
    figure, (left, right) = new_figure(2)
    learning_curves(left, groups, ylabel="return while training")
    clusters = {}
    for label, contact in (("own law", None), ("hard law", HARD)):
        outcomes = [results(group, Evaluation(contact or law)) for law, group in groups.items()]
        clusters[label] = [mean_and_spread(outcome, "return") for outcome in outcomes]
    published = {
        "own law": [PUBLISHED[law].own[0] for law in groups],
        "hard law": [PUBLISHED[law].hard[0] for law in groups],
    }
    bars(right, list(groups), clusters, published, ylabel="return of an episode, mean action")
    right.set_xlabel("contact law trained with")
    save(figure, path)


def kept(own: Results, hard: Results) -> float:
    """Mean return in the hard law over mean return in the law trained with."""
    return summary(hard, "return").mean / summary(own, "return").mean


def _notes(groups: Groups, stochastic: bool) -> tuple[str, ...]:
    first = next(iter(groups.values()))[0]
    scale = (
        f"SHAC, `{ENV}`, {first.iterations} iterations, {scale_in_words(groups)}. "
        "Paper: 10 seeds, 1000 iterations; its reward terms as printed allow at most 2120, so compare the "
        "columns `kept`, not the returns."
    )
    return (scale, _kept_sentence(groups, stochastic), *_interval_sentence(groups, stochastic))


def _kept_sentence(groups: Groups, stochastic: bool) -> str:
    parts = []
    for law, group in groups.items():
        if law != HARD:
            own = results(group, Evaluation(law, stochastic))
            hard = results(group, Evaluation(HARD, stochastic))
            parts.append(f"the {law}-trained policy keeps {percent(kept(own, hard))} of its return")
    return f"In the hard law {' and '.join(parts)}." if parts else "No law but the hard one was run."


def _interval_sentence(groups: Groups, stochastic: bool) -> tuple[str, ...]:
    """A sentence where there are several seeds; one has no interval."""
    parts = []
    for law, group in groups.items():
        over = summary(results(group, Evaluation(HARD, stochastic)), "return")
        if over.count > 1:
            parts.append(f"{law} {over.iqm:.0f} [{over.low:.0f}, {over.high:.0f}]")
    sentence = "Interquartile mean in the hard law with its 95 % bootstrap interval over seeds: "
    return (f"{sentence}{', '.join(parts)}.",) if parts else ()


# what soft-trained policies do in the hard law differs most from seed to seed
_OWN_SEEDS = {"soft": tuple(range(5)), "smoothed": tuple(range(5))}

CONTACT_MODELS = Experiment(
    name="contact-models",
    title="SHAC on Task A under soft, hard and smoothed contact (Table 1 of Schwarke et al. 2025)",
    entries=(_entry("soft", 0.18, 5.0), _entry("hard", 0.1, 4.0), _entry("smoothed", 0.1, 4.0)),
    presets=(
        Preset("smoke", seeds=(0,), iterations=3, episodes=4, num_envs=8, kept=False),
        Preset("quick", seeds=(0,), iterations=400, episodes=100),
        Preset("seeds", (0, 1, 2), iterations=400, episodes=100, own_seeds=_OWN_SEEDS),
        Preset("paper", seeds=tuple(range(10)), iterations=1000, episodes=100),
    ),
    tabulate=tabulate,
    draw=draw,
)
