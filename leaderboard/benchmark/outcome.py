"""What became of a contestant: its times, or why there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from leaderboard.benchmark.contestant import Contestant, Course, Missing
from leaderboard.benchmark.scene import Scene
from leaderboard.benchmark.standing import Evidence, Invalid
from leaderboard.benchmark.timing import Clocks, Sample, Turns, take_turns

Status = Literal["timed", "missing", "invalid", "failed"]


@dataclass(frozen=True)
class Outcome:
    """status: "timed", or why not, with the reason in a sentence: a package is missing, the physics is invalid, or
    the peer's own code failed. turns, evidence: only of those timed."""

    contestant: Contestant
    status: Status
    reason: str = ""
    turns: tuple[Turns, ...] = ()
    evidence: Evidence | None = None

    @property
    def substeps(self) -> int:
        """Simulation steps in 0.01 s."""
        return self.evidence.substeps if self.evidence else 1

    def record(self) -> dict[str, Any]:
        """For JSON; times in microseconds per world."""
        who = self.contestant
        return {
            "peer": who.peer,
            "contestant": who.label,
            "precision": who.precision,
            "worlds": who.worlds,
            "threads": who.threads,
            "status": self.status,
            "reason": self.reason,
            "evidence": asdict(self.evidence) if self.evidence else None,
            "courses": [_course(turns, self.substeps) for turns in self.turns],
        }


def microseconds(samples: Sequence[Sample]) -> float:
    """Median time of a control step of one world [us]."""
    return 1e6 * median(sample.seconds for sample in samples)


def enter(
    contestant: Contestant, reference: Course, scene: Scene, *, repetitions: int, least_seconds: float, clocks: Clocks
) -> Outcome:
    """Prepare a contestant and time it in turns with the reference, or say why not."""
    try:
        prepared = contestant.prepare(scene)
        turns = take_turns(
            prepared.courses, reference, repetitions=repetitions, least_seconds=least_seconds, clocks=clocks
        )
    except Missing as error:
        return Outcome(contestant, "missing", str(error))
    except Invalid as error:
        return Outcome(contestant, "invalid", str(error))
    except Exception as error:  # other people's code in versions not foreseen here: named, and the others go on
        return Outcome(contestant, "failed", " ".join(f"{type(error).__name__}: {error}".split())[:300])
    return Outcome(contestant, "timed", "", turns, prepared.evidence)


def _course(turns: Turns, substeps: int) -> dict[str, Any]:
    return {
        "name": turns.course.name,
        "compile_seconds": turns.course.compile_seconds,
        "us_per_control_step": _spread(turns.samples, lambda sample: 1e6 * sample.seconds),
        "us_per_simulation_step": _spread(turns.samples, lambda sample: 1e6 * sample.seconds / substeps),
        "processors": _spread(turns.samples, lambda sample: sample.processors),
        "reference_us": _spread(turns.reference, lambda sample: 1e6 * sample.seconds),
        "ratio": turns.ratio,
    }


def _spread(samples: Sequence[Sample], number: Callable[[Sample], float]) -> dict[str, Any]:
    values = [number(sample) for sample in samples]
    return {"median": median(values), "min": min(values), "max": max(values), "all": values}
