"""What a person sees while jobs run: one moving line on a terminal, a line a stage anywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from leaderboard.schedule import Active, Failure, Job, Step

REFRESH_SECONDS = 1.0


@dataclass
class Progress:
    """Reporter of a schedule of so many jobs on a stream."""

    total: int
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _shown: float = 0.0
    _width: int = 0

    def found(self, job: Job) -> None:
        self._line(f"{job.name}: finished before")

    def started(self, job: Job, step: Step) -> None:
        fraction = step.done()
        self._line(f"{job.name}: {step.label}" + (f", resumed at {100 * fraction:.0f} %" if fraction else ""))

    def finished(self, job: Job, step: Step, elapsed: float) -> None:
        words = step.fares()
        self._line(f"{job.name}: {step.label} done in {duration(elapsed)}" + (f", {words}" if words else ""))

    def failed(self, failure: Failure) -> None:
        self._line(f"{failure.job}: {failure.step} failed ({failure.reason}), see {failure.log}")

    def tick(self, active: Sequence[Active], waiting: Sequence[Job], left: Callable[[], float]) -> None:
        if not self.stream.isatty() or time.monotonic() - self._shown < REFRESH_SECONDS:
            return
        self._shown = time.monotonic()
        done = self.total - len(active) - len(waiting)
        parts = [f"about {duration(left())} left", f"{done} of {self.total} runs done"]
        for work in active:
            words = work.step.fares()
            parts.append(f"{work.job.name} {100 * work.step.done():.0f} %" + (f" {words}" if words else ""))
        line = " · ".join(parts)[: shutil.get_terminal_size().columns - 1]  # a wrapped line cannot be rewritten
        self.stream.write("\r" + line.ljust(self._width))
        self.stream.flush()
        self._width = len(line)

    def _line(self, text: str) -> None:
        if self._width:
            self.stream.write("\r" + " " * self._width + "\r")
            self._width = 0
        self.stream.write(text + "\n")
        self.stream.flush()


def duration(seconds: float) -> str:
    """`45 s`, `6 min 10 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
