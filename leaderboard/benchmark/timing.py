"""Turns: a contestant, the reference, the contestant, ... so that a busy moment of the machine falls on both."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from leaderboard.benchmark.contestant import Course

Clock = Callable[[], float]


@dataclass(frozen=True)
class Clocks:
    """wall, cpu: () -> seconds; cpu counts all threads of this process."""

    wall: Clock = time.perf_counter
    cpu: Clock = time.process_time


@dataclass(frozen=True)
class Sample:
    """Seconds of one control step of one world, and processors busy meanwhile."""

    seconds: float
    processors: float


@dataclass(frozen=True)
class Turns:
    """Samples of a course and of the reference beside it, one each a repetition."""

    course: Course
    samples: tuple[Sample, ...]
    reference: tuple[Sample, ...]

    @property
    def ratio(self) -> float:
        """Median over the repetitions of course over reference."""
        return median(a.seconds / b.seconds for a, b in zip(self.samples, self.reference, strict=True))


def take_turns(
    courses: Sequence[Course], reference: Course, *, repetitions: int, least_seconds: float, clocks: Clocks
) -> tuple[Turns, ...]:
    """Time every course in turn with the reference.

    A first, uncounted run warms up and tells how many runs make a sample of at least `least_seconds` [s].
    Raises ValueError for fewer than one repetition.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions is {repetitions}, expected at least 1")
    runners = [_runner(course, least_seconds, clocks) for course in courses]
    beside = _runner(reference, least_seconds, clocks)
    pairs: list[list[tuple[Sample, Sample]]] = [[] for _ in courses]
    for _ in range(repetitions):
        for kept, runner in zip(pairs, runners, strict=True):
            kept.append((runner(), beside()))
    return tuple(
        Turns(course, tuple(a for a, _ in kept), tuple(b for _, b in kept))
        for course, kept in zip(courses, pairs, strict=True)
    )


def _runner(course: Course, least_seconds: float, clocks: Clocks) -> Callable[[], Sample]:
    started = clocks.wall()
    course.run()
    once = clocks.wall() - started
    calls = max(1, math.ceil(least_seconds / once)) if once > 0.0 else 1

    def sample() -> Sample:
        wall, cpu = clocks.wall(), clocks.cpu()
        for _ in range(calls):
            course.run()
        wall, cpu = clocks.wall() - wall, clocks.cpu() - cpu
        return Sample(wall / (calls * course.control_steps), cpu / wall if wall > 0.0 else 0.0)

    return sample
