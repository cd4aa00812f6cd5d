"""A run: every contestant in turns with MuJoCo, then the iterations of SHAC, then three files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.environment import use_threads
from leaderboard.benchmark import figure, report
from leaderboard.benchmark.iteration import Split, time_iterations
from leaderboard.benchmark.machine import machine, made_with
from leaderboard.benchmark.mujoco_c import Stepped
from leaderboard.benchmark.outcome import Outcome, enter
from leaderboard.benchmark.peers import PEERS, Peer, choose
from leaderboard.benchmark.presets import Preset, find
from leaderboard.benchmark.scene import Scene, quadruped
from leaderboard.benchmark.timing import Clocks
from leaderboard.records import write_json, write_text

TABLE, FIGURE, RECORD = "benchmark.md", "benchmark.png", "benchmark.json"


@dataclass(frozen=True)
class Run:
    """All that one run measured. left_out: peers that were not asked for."""

    preset: Preset
    outcomes: tuple[Outcome, ...]
    splits: tuple[Split, ...]
    left_out: tuple[str, ...]
    machine: dict[str, Any]
    made_with: dict[str, Any]
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether a contestant's code failed; one that is missing or invalid has only been named."""
        return any(outcome.status == "failed" for outcome in self.outcomes)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "preset": self.preset.name,
            "machine": self.machine,
            **self.made_with,
            "seconds": self.seconds,
            "results": [outcome.record() for outcome in self.outcomes],
            "iterations": [split.record() for split in self.splits],
            "left_out": list(self.left_out),
        }


def benchmark(
    preset: str, peers: Sequence[str] | None, out: Path, say: Callable[[str], None], clocks: Clocks | None = None
) -> Run:
    """Time, and write a table, a figure and a JSON file into the folder `out`.

    peers: names from PEERS, by default the preset's; MuJoCo's `mj_step`, the reference, always runs.
    say: gets a line for every contestant. Raises ValueError for an unknown preset or peer, OSError for a folder
    that cannot be written; both before anything is timed.
    """
    scale = find(preset)
    chosen = choose(scale.peers if peers is None else peers)
    require_writable(out)
    run = conduct(scale, chosen, quadruped(), say, clocks or Clocks())
    write_json(out / RECORD, run.record())
    write_text(out / TABLE, report.markdown(run))
    figure.draw(run, out / FIGURE)
    return run


def conduct(preset: Preset, peers: Sequence[Peer], scene: Scene, say: Callable[[str], None], clocks: Clocks) -> Run:
    """Time everything, one contestant after the other, each in turns with the reference."""
    started, here, made = time.perf_counter(), machine(), made_with()  # as it is before the work
    use_threads(1)  # torch's own, as in training
    stepped = Stepped()
    (reference,) = stepped.prepare(scene).courses
    scale = {"repetitions": preset.repetitions, "least_seconds": preset.least_seconds, "clocks": clocks}
    outcomes = []
    entrants = [stepped, *(contestant for peer in peers for contestant in peer.contestants(preset))]
    for contestant in entrants:
        threads = "" if contestant.threads is None else f", threads {contestant.threads}"
        outcomes.append(enter(contestant, reference, scene, **scale))
        say(f"{contestant.peer}: {contestant.label}, worlds {contestant.worlds}{threads}: {_words(outcomes[-1])}")
    trainings = [training for peer in peers for training in peer.trainings(preset)]
    splits = tuple(time_iterations(training, preset.repetitions, say) for training in trainings)
    names = {peer.name for peer in peers}
    left_out = tuple(peer.name for peer in PEERS if peer.name not in names)
    return Run(preset, tuple(outcomes), splits, left_out, here, made, time.perf_counter() - started)


def require_writable(out: Path) -> None:
    """Make the folder; raise OSError with one sentence where it cannot be made or written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = write_text(out / ".writable", "")
        probe.unlink()
    except OSError as error:
        raise OSError(f"out is {str(out)!r}, expected a folder that can be written: {error.strerror}") from error


def _words(outcome: Outcome) -> str:
    if outcome.status != "timed":
        return f"{outcome.status}, {outcome.reason}"
    return ", ".join(f"{turns.course.name} {turns.ratio:.2f} of MuJoCo's step" for turns in outcome.turns)
