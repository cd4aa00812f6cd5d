"""The page: ours, the peers, an iteration of SHAC, and who was not timed and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leaderboard.benchmark.outcome import Outcome, microseconds
from leaderboard.benchmark.timing import Turns
from leaderboard.tables import Table

if TYPE_CHECKING:
    from leaderboard.benchmark.run import Run

OURS = "ours"


def markdown(run: Run) -> str:
    """All tables, then where the numbers come from."""
    return "# How fast\n\n" + "\n".join([table.markdown() for table in tables(run)] + [provenance(run)])


def tables(run: Run) -> tuple[Table, ...]:
    """The tables that have rows."""
    timed = [outcome for outcome in run.outcomes if outcome.status == "timed"]
    ours = [outcome for outcome in timed if outcome.contestant.peer == OURS]
    others = [outcome for outcome in timed if outcome.contestant.peer != OURS]
    made = (_ours(ours, run), _peers(others), _iterations(run), _absent(run))
    return tuple(table for table in made if table.rows)


def provenance(run: Run) -> str:
    """Where the numbers come from, in a paragraph."""
    machine, made = run.machine, run.made_with
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in made["versions"].items())
    load = "not known" if machine["load_average"] is None else f"{machine['load_average']:.1f}"
    flags = " ".join(machine["flags"]) or "unknown instruction sets"
    return (
        f"Preset {run.preset.name}, {run.preset.repetitions} repetitions, {run.seconds:.0f} s in all. "
        f"Commit {made['commit'] or 'unknown'}; {machine['cores']} cores of {machine['cpu']} ({flags}), load average "
        f"{load} at the start; {versions}.\n"
    )


def _ours(outcomes: Sequence[Outcome], run: Run) -> Table:
    """Laws and courses by number of worlds and of threads."""
    columns = sorted({(outcome.contestant.worlds, outcome.contestant.threads) for outcome in outcomes})
    found = {(o.contestant.label, o.contestant.worlds, o.contestant.threads): o for o in outcomes}
    rows = []
    for law in dict.fromkeys(outcome.contestant.label for outcome in outcomes):
        here = [found.get((law, *column)) for column in columns]
        one = next(outcome for outcome in here if outcome)
        for course in range(len(one.turns)):
            name = one.turns[course].course.name
            cells = tuple(_cell(outcome.turns[course]) if outcome else "-" for outcome in here)
            rows.append((law, name, "0.01 s", *cells))
            if one.substeps > 1:
                steps = tuple(f"{microseconds(o.turns[course].samples) / o.substeps:.3g}" if o else "-" for o in here)
                rows.append((law, name, f"{0.01 / one.substeps:g} s", *steps))
    headings = tuple(f"{worlds} worlds, {threads} thr." for worlds, threads in columns)
    notes = (
        (
            "Microseconds per world and step; in brackets the ratio to MuJoCo's `mj_step` of 0.01 s on one thread, "
            "timed in turns with it. Medians. Hard and smoothed contact simulate 0.01 s in one step, soft contact in "
            "steps of 0.0005 s: its rows are a control step and a simulation step."
        ),
        (
            "Forward and backward go through torch, as training does: the gradient of the last state to every joint "
            "target. Bare launches are the same kernels without torch, one step over and over."
        ),
    )
    return Table("diffenvs", ("law", "what", "step", *headings), tuple(rows), notes, labels=3)


def _peers(outcomes: Sequence[Outcome]) -> Table:
    rows = [
        (
            outcome.contestant.label,
            turns.course.name,
            outcome.contestant.precision,
            str(outcome.contestant.worlds),
            "its own" if outcome.contestant.threads is None else str(outcome.contestant.threads),
            str(outcome.substeps),
            f"{microseconds(turns.samples):.3g}",
            f"{turns.ratio:.3g}",
            _processors(turns),
            "-" if turns.course.compile_seconds is None else f"{turns.course.compile_seconds:.0f}",
        )
        for outcome in outcomes
        for turns in outcome.turns
    ]
    columns = (
        *("simulator", "what", "floats", "worlds", "threads", "simulation steps in 0.01 s"),
        *("µs per world and 0.01 s", "over `mj_step`", "processors busy", "compile s"),
    )
    note = (
        "The same robot, step and contacts, each contestant in turns with `mj_step`, whose own row says how far the "
        "ratio of a time to itself is from 1. The loop around `mj_step` is Python and adds some tenths of a "
        "microsecond a step; `mujoco.rollout` loops in C. "
        "`mjd_transitionFD` gives the whole Jacobian, the others one product with it. "
        "JAX shares its work out over a pool of 8 threads itself: with 2, its reverse pass got stuck. "
        "Peers' gradients are timed, not judged; only a gradient that is not finite is refused."
    )
    return Table("Other simulators", columns, tuple(rows), (note,), labels=3)


def _iterations(run: Run) -> Table:
    rows = []
    for split in run.splits:
        training, seconds = split.training, split.medians
        parts = tuple(f"{seconds[name]:.3f}" for name in ("rollout", "backward", "critic", "iteration"))
        size = f"{split.num_envs} x {training.horizon}"
        rows.append((training.env, training.contact, size, str(training.threads), *parts))
    columns = ("environment", "law", "worlds x steps", "threads", "rollout s", "backward s", "critic s", "iteration s")
    notes = ("Medians from the start of a training; threads are the simulator's, the networks have one.",)
    return Table("An iteration of SHAC", columns, tuple(rows), notes, labels=3)


def _absent(run: Run) -> Table:
    rows = [
        (outcome.contestant.label, str(outcome.contestant.worlds), outcome.status, outcome.reason)
        for outcome in run.outcomes
        if outcome.status != "timed"
    ]
    rows += [(name, "-", "left out", "not asked for") for name in run.left_out]
    return Table("Not timed", ("who", "worlds", "status", "why"), tuple(rows), labels=4)


def _cell(turns: Turns) -> str:
    return f"{microseconds(turns.samples):.3g} ({turns.ratio:.2f})"


def _processors(turns: Turns) -> str:
    values = sorted(sample.processors for sample in turns.samples)
    return f"{values[len(values) // 2]:.1f}"
