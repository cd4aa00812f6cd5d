"""From the start of a process to a policy that was judged: SHAC and PPO, one process at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from leaderboard.benchmark.machine import machine, made_with
from leaderboard.benchmark.run import require_writable
from leaderboard.conduct import CHECKOUT
from leaderboard.records import write_json, write_text
from leaderboard.run_folder import RunFolder

TABLE, RECORD = "race.md", "race.json"
LAW = "smoothed"


@dataclass(frozen=True)
class Goal:
    """What is run for: an environment, the return to reach, and the episodes in which the policy is judged."""

    env: str = "DiffQuadruped-v0"
    episode_return: float = 1800.0
    episodes: int = 100
    iterations: int | None = None


@dataclass(frozen=True)
class Lap:
    """One training: wall time of its process [s], of that in training [s], samples drawn, return of the policy."""

    agent: str
    seed: int
    seconds: float
    training_seconds: float
    samples: int
    judged: float
    arrived: bool


def race(goal: Goal, agents: Sequence[str], seeds: Sequence[int], out: Path, say: Callable[[str], None]) -> list[Lap]:
    """Run every agent with every seed in turn, and write a table and a JSON file into `out`.

    A lap that was run before, with the same goal, is not run again. Raises ValueError for no agent or no seed, OSError
    for a folder that cannot be written, RuntimeError when a training fails.
    """
    if not agents or not seeds:
        raise ValueError(f"agents are {list(agents)} and seeds {list(seeds)}, expected at least one of each")
    require_writable(out)
    laps, here = [], machine()
    for seed in seeds:
        for agent in agents:
            laps.append(_lap(goal, agent, seed, out / "laps"))
            say(_words(laps[-1]))
    record = {"goal": asdict(goal), "law": LAW, "laps": [asdict(lap) for lap in laps], "machine": here, **made_with()}
    write_json(out / RECORD, record)
    write_text(out / TABLE, markdown(goal, laps))
    return laps


def command(goal: Goal, agent: str, seed: int, folder: Path) -> tuple[str, ...]:
    """The training, as a person would type it."""
    return (
        *("python", "-m", "agents", agent, goal.env, "--contact", LAW, "--seed", str(seed)),
        *("--target", f"{goal.episode_return:g}", "--judge", str(goal.episodes)),
        *(() if goal.iterations is None else ("--iterations", str(goal.iterations))),
        *("--out", str(folder)),
    )


def markdown(goal: Goal, laps: Sequence[Lap]) -> str:
    """A table of the laps, and the agents' medians beside each other."""
    scale = (
        f"`{goal.env}`, {LAW} contact, one core. Wall time of one process: it starts, imports, trains until the last "
        f"episode of each of its worlds has that return on average, saves, and runs the policy, mean action, for "
        f"{goal.episodes} episodes. Kernels were compiled before."
    )
    lines = [
        f"# To a return of {goal.episode_return:g}",
        *("", scale, ""),
        "| agent | seed | seconds | of these in training | samples | return of the policy |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for lap in sorted(laps, key=lambda lap: (lap.agent, lap.seed)):
        where = f"{lap.judged:.0f}" if lap.arrived else f"{lap.judged:.0f}, never there in training"
        lines.append(
            f"| {lap.agent} | {lap.seed} | {lap.seconds:.1f} | {lap.training_seconds:.1f} | {lap.samples} | {where} |"
        )
    return "\n".join([*lines, "", *_comparison(laps)]) + "\n"


def _comparison(laps: Sequence[Lap]) -> list[str]:
    """One sentence, where both agents arrived with every seed."""
    seconds = {name: [lap.seconds for lap in laps if lap.agent == name] for name in ("shac", "ppo")}
    samples = {name: [lap.samples for lap in laps if lap.agent == name] for name in seconds}
    if not all(seconds.values()) or not all(lap.arrived for lap in laps):
        return []
    times, more = (median(x["ppo"]) / median(x["shac"]) for x in (seconds, samples))
    least = min(seconds["ppo"]) / max(seconds["shac"])
    middle = f"Medians: PPO takes {times:.3g} times the seconds of SHAC and {more:.3g} times the samples"
    return [f"{middle}; its fastest seed {least:.3g} times the seconds of SHAC's slowest."]


def _lap(goal: Goal, agent: str, seed: int, folder: Path) -> Lap:
    """Run it, or read what it left."""
    here = folder / f"{agent}-{seed}"
    told = here / "lap.json"
    argv = command(goal, agent, seed, here)
    if told.exists():
        lap = json.loads(told.read_text())
        if lap.pop("command") != list(argv):
            raise ValueError(f"{here} holds another race; choose another folder")
        return Lap(**lap)
    if here.exists():
        raise ValueError(f"{here} holds a lap that was broken off, whose time nobody knows; remove it")
    started = time.perf_counter()
    result = subprocess.run((sys.executable, *argv[1:]), cwd=CHECKOUT, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)} failed: {result.stderr.strip()[-300:]}")
    run = RunFolder(here)
    last, judged = run.logged(), run.evaluation(LAW)
    arrived = last["return"] is not None and last["return"] >= goal.episode_return
    lap = Lap(agent, seed, seconds, last["seconds"], last["samples"], judged["return_mean"], arrived)
    write_text(told, json.dumps(asdict(lap) | {"command": list(argv)}, indent=1) + "\n")
    return lap


def _words(lap: Lap) -> str:
    there = "" if lap.arrived else ", which its training never showed"
    return f"{lap.agent}, seed {lap.seed}: {lap.seconds:.1f} s to a policy of {lap.judged:.0f}{there}"
