"""Table 1 of Schwarke et al. 2025: which contact law to train under, judged in its own and the hard law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from leaderboard.figures import bars, learning_curves, new_figure, save
from leaderboard.protocol import Entry, Evaluation, Experiment, Preset
from leaderboard.records import Record
from leaderboard.statistics import Summary, summarise
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
    groups = by_entry(records)
    return (
        comparison(groups, stochastic=False),
        comparison(groups, stochastic=True),
        episodes(groups),
        training(groups),
    )


def comparison(groups: Mapping[str, Sequence[Record]], *, stochastic: bool) -> Table:
    """Table 1 beside the paper's numbers."""
    rows = []
    for law, records in groups.items():
        own = [_result(record, law, stochastic) for record in records]
        hard = [_result(record, HARD, stochastic) for record in records]
        paper = PUBLISHED[law]
        rows.append(
            (
                law,
                _spread(own, "return"),
                _spread(own, "seconds", 2),
                _spread(hard, "return"),
                _spread(hard, "seconds", 2),
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


def episodes(groups: Mapping[str, Sequence[Record]]) -> Table:
    """How the policies walked: speed, and how many episodes ended in a fall."""
    rows = []
    for law, records in groups.items():
        cells = []
        for contact in (law, HARD):
            results = [_result(record, contact, False) for record in records]
            speed = summarise([result["metrics"]["forward_velocity"]["mean"] for result in results])
            falls, count = (sum(result[name] for result in results) for name in ("falls", "episodes"))
            cells += [plus_minus(speed.mean, speed.std, 2), f"{falls} of {count}"]
        rows.append((law, *cells))
    columns = (
        *("trained with", "speed in m/s, own law", "falls, own law"),
        *("speed in m/s, hard law", "falls, hard law"),
    )
    return Table("Walking, mean action", columns, tuple(rows), ("The task asks for 1 m/s.",))


def training(groups: Mapping[str, Sequence[Record]]) -> Table:
    """What each law cost to train with, and how soon it walked."""
    bad = any(record.nonfinite for records in groups.values() for record in records)
    rows = []
    for law, records in groups.items():
        times = [_reached(record, "seconds") for record in records]
        iterations = [_reached(record, "iteration") for record in records]
        row = (
            law,
            str(len(records)),
            f"{median([record.seconds_per_iteration['iteration'] for record in records]):.3f} s",
            _all_or_count(iterations, lambda value: f"{value:.0f}"),
            _all_or_count(times, seconds),
            f"{median([record.wall_seconds for record in records]):.0f} s",
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
    groups = by_entry(records)
    figure, (left, right) = new_figure(2)
    learning_curves(left, groups, ylabel="return while training")
    clusters = {}
    for label, contact in (("own law", None), ("hard law", HARD)):
        results = {law: [_result(record, contact or law, False) for record in group] for law, group in groups.items()}
        clusters[label] = [_mean_and_spread(result, "return") for result in results.values()]
    published = {
        "own law": [PUBLISHED[law].own[0] for law in groups],
        "hard law": [PUBLISHED[law].hard[0] for law in groups],
    }
    bars(right, list(groups), clusters, published, ylabel="return of an episode, mean action")
    right.set_xlabel("contact law trained with")
    save(figure, path)


def by_entry(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records by contact law trained with, in the paper's order."""
    groups = {law: [record for record in records if record.entry == law] for law in PUBLISHED}
    return {law: group for law, group in groups.items() if group}


def kept(own: Sequence[Mapping[str, float]], hard: Sequence[Mapping[str, float]]) -> float:
    """Mean return in the hard law over mean return in the law trained with."""
    return _summary(hard, "return").mean / _summary(own, "return").mean


def _result(record: Record, contact: str, stochastic: bool) -> Mapping[str, float]:
    return record.evaluations[Evaluation(contact, stochastic).label]


def _summary(results: Sequence[Mapping[str, float]], quantity: str) -> Summary:
    return summarise([result[f"{quantity}_mean"] for result in results])


def _spread(results: Sequence[Mapping[str, float]], quantity: str, digits: int = 0) -> str:
    return plus_minus(*_mean_and_spread(results, quantity), digits)


def _mean_and_spread(results: Sequence[Mapping[str, float]], quantity: str) -> tuple[float, float]:
    """Mean, and standard deviation over seeds; with one seed, over its episodes."""
    summary = _summary(results, quantity)
    return summary.mean, results[0][f"{quantity}_std"] if summary.std is None else summary.std


def _notes(groups: Mapping[str, Sequence[Record]], stochastic: bool) -> tuple[str, ...]:
    records = [record for group in groups.values() for record in group]
    seeds = sorted({record.seed for record in records})
    episodes = next(iter(records[0].evaluations.values()))["episodes"]
    many = len(seeds) > 1
    scale = (
        f"SHAC, `{ENV}`, {records[0].iterations} iterations, "
        f"{'seeds' if many else 'seed'} {', '.join(map(str, seeds))}, {episodes} episodes for each number; "
        f"± is the standard deviation over {'seeds' if many else 'the episodes of the one seed'}. "
        "Paper: 10 seeds, 1000 iterations; its reward terms as printed allow at most 2120, so compare the "
        "columns `kept`, not the returns."
    )
    notes = [scale, _kept_sentence(groups, stochastic)]
    if many:
        notes.append(_interval_sentence(groups, stochastic))
    return tuple(notes)


def _kept_sentence(groups: Mapping[str, Sequence[Record]], stochastic: bool) -> str:
    parts = []
    for law, group in groups.items():
        if law != HARD:
            own = [_result(record, law, stochastic) for record in group]
            hard = [_result(record, HARD, stochastic) for record in group]
            parts.append(f"the {law}-trained policy keeps {percent(kept(own, hard))} of its return")
    return f"In the hard law {' and '.join(parts)}." if parts else "No law but the hard one was run."


def _interval_sentence(groups: Mapping[str, Sequence[Record]], stochastic: bool) -> str:
    parts = []
    for law, group in groups.items():
        summary = _summary([_result(record, HARD, stochastic) for record in group], "return")
        parts.append(f"{law} {summary.iqm:.0f} [{summary.low:.0f}, {summary.high:.0f}]")
    return f"Interquartile mean in the hard law with its 95 % bootstrap interval over seeds: {', '.join(parts)}."


def _reached(record: Record, quantity: str) -> float | None:
    return record.reached.get(str(MILESTONE), {}).get(quantity)


def _all_or_count(values: Sequence[float | None], show: Callable[[float], str]) -> str:
    """The median of the seeds that got there, and how many did when not all."""
    reached = [value for value in values if value is not None]
    if not reached:
        return "never"
    suffix = "" if len(reached) == len(values) else f" ({len(reached)} of {len(values)})"
    return show(median(reached)) + suffix


CONTACT_MODELS = Experiment(
    name="contact-models",
    title="SHAC on Task A under soft, hard and smoothed contact (Table 1 of Schwarke et al. 2025)",
    entries=(_entry("soft", 0.6, 12.0), _entry("hard", 0.17, 4.0), _entry("smoothed", 0.17, 4.0)),
    presets=(
        Preset("smoke", seeds=(0,), iterations=3, episodes=4, num_envs=8, kept=False),
        Preset("quick", seeds=(0,), iterations=400, episodes=100),
        Preset("paper", seeds=tuple(range(10)), iterations=1000, episodes=100),
    ),
    tabulate=tabulate,
    draw=draw,
)
