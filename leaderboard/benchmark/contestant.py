"""Who is timed: one small interface for ours and for every other simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from leaderboard.benchmark.scene import Scene
from leaderboard.benchmark.standing import Evidence


class Missing(Exception):
    """A package that the contestant needs cannot be imported; the message names it."""


@dataclass(frozen=True)
class Course:
    """One thing that is timed.

    run: does it once, and returns when it is done. control_steps: worlds times steps of 0.01 s in one run.
    compile_seconds: what compiling it took before [s]; None where nothing is compiled for it. bare: below the interface
    that users have, so no fair neighbour of the others in a figure.
    """

    name: str
    run: Callable[[], object]
    control_steps: int
    compile_seconds: float | None = None
    bare: bool = False


@dataclass(frozen=True)
class Prepared:
    """A contestant ready to be timed, and the evidence that it simulates the scene."""

    courses: tuple[Course, ...]
    evidence: Evidence


class Contestant(Protocol):
    """A frozen dataclass.

    peer: the row of PEERS it belongs to. label: what tells it from its siblings. precision: of its floats.
    worlds: simulated together. threads: told to use; None where it decides itself.
    """

    peer: str
    worlds: int

    @property
    def label(self) -> str: ...

    @property
    def precision(self) -> str: ...

    @property
    def threads(self) -> int | None: ...

    def prepare(self, scene: Scene) -> Prepared:
        """Set up, settle, validate, compile.

        Raises:
            Missing: a package is not installed.
            Invalid: the robot does not stand on its four feet.
        """
        ...
