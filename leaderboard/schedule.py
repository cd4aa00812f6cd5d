"""Processes over cores: one process a core, the longest job first, every job's steps in order."""

from __future__ import annotations

import heapq
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from leaderboard import leash

POLL_SECONDS = 0.05
TRUST_SECONDS = 30.0  # the expectations weigh as much as so many measured seconds: start-up is no progress
STOP_SECONDS = 60.0  # an agent that was told to stop writes its checkpoint first


@dataclass(frozen=True)
class Step:
    """One command of a job.

    label: what people read.
    command: () -> argv, asked at the start: a half-finished step continues with another command.
    done: () -> fraction in [0, 1]; 1 only when the product is complete, and a complete step is not run.
    seconds: expected duration on one core [s].
    log: where its output is appended.
    fares: () -> a few words on how it goes or went; empty when there is nothing to say.
    """

    label: str
    command: Callable[[], tuple[str, ...]]
    done: Callable[[], float]
    seconds: float
    log: Path
    fares: Callable[[], str] = str


@dataclass(frozen=True)
class Job:
    """Steps that depend on each other, so they run one after the other, on one core."""

    name: str
    steps: tuple[Step, ...]

    def done(self) -> bool:
        """Whether nothing is left to run."""
        return all(step.done() >= 1.0 for step in self.steps)

    def seconds_left(self) -> float:
        """Expected time of what is not done yet [s]."""
        return sum(step.seconds * (1.0 - step.done()) for step in self.steps)


@dataclass(frozen=True)
class Failure:
    """A step whose command did not deliver; the job's later steps were not tried."""

    job: str
    step: str
    reason: str
    log: Path


@dataclass
class Active:
    """A job on a core: its step in progress and what has been measured about it."""

    job: Job
    pending: list[Step]
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    began: float
    fraction: float  # of the step, when it began: a resumed step starts above 0

    @property
    def step(self) -> Step:
        return self.pending[0]

    def elapsed(self) -> float:
        return time.monotonic() - self.began


class Reporter(Protocol):
    """Whoever wants to know: the terminal, a log, a test."""

    def found(self, job: Job) -> None: ...
    def started(self, job: Job, step: Step) -> None: ...
    def finished(self, job: Job, step: Step, elapsed: float) -> None: ...
    def failed(self, failure: Failure) -> None: ...
    def tick(self, active: Sequence[Active], waiting: Sequence[Job], left: Callable[[], float]) -> None: ...


@dataclass
class Pace:
    """Measured over expected time, from the steps of this session: how far the expectations are off."""

    measured: float = 0.0
    expected: float = 0.0

    def ratio(self, active: Sequence[Active]) -> float:
        measured = self.measured + sum(work.elapsed() for work in active)
        expected = self.expected + sum(work.step.seconds * (work.step.done() - work.fraction) for work in active)
        return (measured + TRUST_SECONDS) / (expected + TRUST_SECONDS)


@dataclass(frozen=True)
class Cores:
    """The cores jobs are spread over. wrap: argv -> argv that is really started (the leash, normally).

    inherit: file descriptors that children keep open, such as the lock on the folder they write to.
    """

    count: int
    directory: Path
    inherit: tuple[int, ...] = ()
    wrap: Callable[[tuple[str, ...]], tuple[str, ...]] = field(default_factory=lambda: leashed)

    def run(self, jobs: Sequence[Job], reporter: Reporter) -> tuple[Failure, ...]:
        """Run what is not done of every job, the longest first; returns what failed, after all else ran.

        Ctrl-C (and anything else raised here) stops the children with SIGINT, waits for them, and goes on up.
        """
        waiting = sorted((job for job in jobs if not job.done()), key=Job.seconds_left, reverse=True)
        for job in jobs:
            if job.done():
                reporter.found(job)
        active: list[Active] = []
        failures: list[Failure] = []
        pace = Pace()
        try:
            while waiting or active:
                while waiting and len(active) < self.count:
                    job = waiting.pop(0)
                    self._begin(job, list(job.steps), active, reporter)
                for work in [work for work in active if work.process.poll() is not None]:
                    self._collect(work, active, failures, pace, reporter)
                reporter.tick(
                    active,
                    waiting,
                    lambda: (
                        finish_time(
                            [work.job.seconds_left() for work in active],
                            [job.seconds_left() for job in waiting],
                            self.count,
                        )
                        * pace.ratio(active)
                    ),
                )
                time.sleep(POLL_SECONDS if active else 0.0)
        except BaseException:
            stop([work.process for work in active])
            raise
        finally:
            for work in active:
                work.output.close()
        return tuple(failures)

    def _begin(self, job: Job, pending: list[Step], active: list[Active], reporter: Reporter) -> None:
        """Start the first pending step that is not done; nothing when all are."""
        while pending and (fraction := pending[0].done()) >= 1.0:
            pending.pop(0)
        if not pending:
            return
        step = pending[0]
        step.log.parent.mkdir(parents=True, exist_ok=True)
        output = step.log.open("ab")
        process = subprocess.Popen(
            self.wrap(step.command()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            env={**os.environ, **dict.fromkeys(THREAD_LIMITS, "1")},
            pass_fds=self.inherit,
            # The terminal's Ctrl-C reaches the leaderboard alone, which passes it on once.
            start_new_session=True,
        )
        active.append(Active(job, pending, process, output, time.monotonic(), fraction))
        reporter.started(job, step)

    def _collect(
        self, work: Active, active: list[Active], failures: list[Failure], pace: Pace, reporter: Reporter
    ) -> None:
        """Take a job whose process ended off its core; put its next step on it, or note the failure."""
        active.remove(work)
        work.output.close()
        step, code = work.step, work.process.returncode
        if code != 0 or step.done() < 1.0:
            reason = f"exit code {code}" if code else "ended without finishing"
            failures.append(Failure(work.job.name, step.label, f"{reason}{_last_line(step.log)}", step.log))
            reporter.failed(failures[-1])
            return
        pace.measured += work.elapsed()
        pace.expected += step.seconds * (1.0 - work.fraction)
        reporter.finished(work.job, step, work.elapsed())
        self._begin(work.job, work.pending[1:], active, reporter)


# Several processes share the cores already, one each; threads inside them would only fight.
THREAD_LIMITS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def available_cores() -> int:
    """Cores this process may use (a container's or taskset's share, where the system tells)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def leashed(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command as a child that ends with this process; `python` becomes this very interpreter."""
    python = [sys.executable if part == "python" else part for part in command[:1]]
    # -P: started by its path, the leash must not see its neighbours as top-level modules.
    return (sys.executable, "-P", leash.__file__, str(os.getpid()), *python, *command[1:])


def finish_time(running: Sequence[float], waiting: Sequence[float], count: int) -> float:
    """Time [s] until the last job ends when each free core takes the next waiting job."""
    cores = [*sorted(running), *[0.0] * (count - len(running))][:count] or [0.0]
    heapq.heapify(cores)
    for duration in waiting:
        heapq.heapreplace(cores, cores[0] + duration)
    return max(cores)


def stop(processes: Sequence[subprocess.Popen[bytes]], patience: float = STOP_SECONDS) -> None:
    """End the processes: SIGINT, on which agents save; after `patience` seconds in all, SIGKILL."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + patience
    for process in processes:
        try:
            process.wait(timeout=max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ""
