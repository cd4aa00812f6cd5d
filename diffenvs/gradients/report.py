"""What a check of the gradients found: verdicts, a table for people, a record for machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from diffenvs.gradients.differences import STEPS, TRUST, tolerance
from diffenvs.gradients.window import OBJECTIVES

RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"
# Of the probes, the share that must be judged before their gradient is called right.
ENOUGH = 0.5


@dataclass(frozen=True)
class Entry:
    """Gradient of one objective after `horizon` steps with respect to one input, over all worlds and directions.

    probes: how many; right, wrong, crossed: how many of them are that; the others are too small to tell. idle: how
    many of the right ones are exactly zero, both ways. worst, median: relative error of those judged, None where none
    is or one is not finite. world: of the worst. size: expected size of a derivative, median over the worlds. kind: of
    what is wrong, "zero", "not finite" or "off".
    """

    input: str
    horizon: int
    objective: str
    probes: int
    right: int
    wrong: int
    crossed: int
    idle: int
    worst: float | None
    median: float | None
    world: int
    size: float
    kind: str | None


@dataclass(frozen=True)
class Fault:
    """Where the backward pass, which runs from the last step to the first, goes wrong first.

    step: of `horizon`, counted from 0. arrays: what is wrong there, name -> kind: the gradients with respect to the
    state before the step, its action and the parameters it used. objective: what was differentiated. world: of those
    of the check. gradient, difference: derivative of the first array along a random direction, both ways.
    """

    objective: str
    horizon: int
    step: int
    arrays: Mapping[str, str]
    world: int
    gradient: float
    difference: float

    def __str__(self) -> str:
        kinds = dict.fromkeys(self.arrays.values())
        named = ("the gradient to " + ", ".join(n for n, k in self.arrays.items() if k == kind) for kind in kinds)
        said = "; ".join(f"{names} is {kind}" for names, kind in zip(named, kinds, strict=True))
        first = next(iter(self.arrays))
        return (
            f"first fault on the way back from the {self.objective} of {self.horizon} step(s), at step {self.step}: "
            f"{said} (world {self.world}, {first}: gradient {self.gradient:.3e}, difference {self.difference:.3e})"
        )


@dataclass(frozen=True)
class GradientReport:
    """See `check_gradients`.

    env, contact: what was checked. substeps, timestep [s]: of its simulation. worlds, directions: of each input.
    touching: share of contacts that touch the ground, over all substeps; sliding: share of these that slide.
    pairs: probes times step sizes, per horizon. kinks: by horizon, by kind, how many pairs fall on two sides of one.
    """

    env: str
    contact: str
    substeps: int
    timestep: float
    worlds: int
    directions: int
    horizons: tuple[int, ...]
    touching: float
    sliding: float
    pairs: int
    kinks: Mapping[int, Mapping[str, int]]
    entries: tuple[Entry, ...]
    fault: Fault | None
    seconds: float

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return tuple(dict.fromkeys(entry.input for entry in self.entries))

    @property
    def verdicts(self) -> dict[str, str]:
        """By input, over all horizons and objectives: "wrong" if any probe is, "right" if none is and enough of them
        could be judged, or "undecided".
        """
        return {name: _verdict(self.select(input=name)) for name in self.inputs}

    @property
    def verdict(self) -> str:
        """Of all inputs together: the worst of theirs."""
        found = self.verdicts.values()
        return next(verdict for verdict in (WRONG, UNDECIDED, RIGHT) if verdict in found)

    def select(self, **which: Any) -> list[Entry]:
        """Entries with these values, for example `select(input="qpos", horizon=1)`."""
        return [e for e in self.entries if all(getattr(e, name) == value for name, value in which.items())]

    def worst(self, name: str, horizon: int) -> float | None:
        """Largest relative error of an input's judged probes, over the objectives; None where there are none."""
        errors = [e.worst for e in self.select(input=name, horizon=horizon) if e.worst is not None]
        return max(errors, default=None)

    def record(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return {
            **asdict(self),
            "horizons": list(self.horizons),
            "steps": list(STEPS),
            "tolerance": {str(h): tolerance(h) for h in self.horizons},
            "kinks": {str(h): dict(kinds) for h, kinds in self.kinks.items()},
            "entries": [asdict(entry) for entry in self.entries],
            "verdicts": self.verdicts,
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        h = self.horizons
        probes = sum(entry.probes for entry in self.select(horizon=h[0]))
        crossed = [sum(e.crossed for e in self.select(horizon=k)) for k in h]
        small = [sum(e.probes - e.right - e.wrong - e.crossed for e in self.select(horizon=k)) for k in h]
        rows = [("control steps", h, "")]
        for name, verdict in self.verdicts.items():
            moved = any(e.idle < e.right or e.wrong for e in self.select(input=name))
            errors = [_number(self.worst(name, k)) for k in h]
            rows.append((name, errors, verdict if moved else f"{verdict}, no influence"))
        rows.append(("tolerance", [_number(tolerance(k)) for k in h], ""))
        rows.append(("across a kink", crossed, f"of {probes} probes, not judged"))
        rows.append(("too small to tell", small, f"of {probes} probes, not judged"))
        for kind in self.kinks[h[0]]:
            counts = [self.kinks[k][kind] for k in h]
            rows.append((f"kink: {kind}", counts, f"of {self.pairs} pairs of windows"))
        lines = [
            f"{self.env}, {self.contact}: the gradient is {self.verdict}",
            f"float64, {self.worlds} worlds x {self.directions} directions, {self.substeps} substep(s) a control step",
            f"feet touch the ground {self.touching:.0%} of the time and slide in {self.sliding:.0%} of that",
            "",
            f"worst relative error, gradients of the {', '.join(OBJECTIVES)}",
            *(f"{name:<18}{''.join(f'{x:>9}' for x in cells)}  {note}".rstrip() for name, cells, note in rows),
            "",
            "error = |difference - gradient . direction| / max(|gradient * unit|, |difference|)",
            f"wrong: above the tolerance and above {TRUST:g} x the difference's own doubt",
            *([str(self.fault)] if self.fault else []),
            f"took {self.seconds:.0f} s",
        ]
        return "\n".join(lines)


def _verdict(entries: Sequence[Entry]) -> str:
    if any(entry.wrong for entry in entries):
        return WRONG
    enough = sum(entry.right for entry in entries) >= ENOUGH * sum(entry.probes for entry in entries)
    return RIGHT if enough else UNDECIDED


def _number(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0.0 else f"{value:.1e}"
