"""Contestants that stand in for simulators, and clocks that go only when told to."""

from collections.abc import Callable
from dataclasses import dataclass, field

from leaderboard.benchmark.contestant import Course, Missing, Prepared
from leaderboard.benchmark.standing import Evidence, require_standing
from leaderboard.benchmark.timing import Clocks

STANDING = Evidence(load=1.0, contacts=(4, 4), height=0.95, substeps=1, finite=True)


@dataclass
class Time:
    """A wall clock and a processor clock; `spend` is how work takes its time."""

    wall: float = 0.0
    cpu: float = 0.0
    order: list[str] = field(default_factory=list)

    def clocks(self) -> Clocks:
        return Clocks(lambda: self.wall, lambda: self.cpu)

    def course(self, name: str, seconds, *, control_steps: int = 1, processors: float = 1.0) -> Course:
        """A course whose n-th run takes the n-th of `seconds`, the last one over and over."""
        left = list(seconds)

        def run() -> None:
            taken = left.pop(0) if len(left) > 1 else left[0]
            self.order.append(name)
            self.wall += taken
            self.cpu += processors * taken

        return Course(name, run, control_steps)


@dataclass(frozen=True)
class MadeUp:
    """A contestant that does nothing, with whatever evidence it is given; `absent`: a package it lacks."""

    peer: str = "made-up"
    label: str = "made-up"
    precision: str = "float32"
    worlds: int = 1
    threads: int | None = 1
    evidence: Evidence = STANDING
    absent: str = ""
    error: Exception | None = None
    run: Callable[[], object] = bool

    def prepare(self, scene) -> Prepared:
        if self.absent:
            raise Missing(self.absent)
        if self.error:
            raise self.error
        return Prepared((Course("forward", self.run, 1),), require_standing(self.evidence))
