"""Conduct an experiment: train and evaluate every run on the cores at hand, then write what was found."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from leaderboard.protocol import Evaluation, Experiment, Preset, Run, runs
from leaderboard.records import Record, machine, read_records, write_record, write_text
from leaderboard.run_folder import RunFolder, curve, nonfinite, reached, seconds_per_iteration
from leaderboard.schedule import Job, Step
from leaderboard.tables import plus_minus

CHECKOUT = Path(__file__).resolve().parent.parent
RESULTS = CHECKOUT / "leaderboard" / "results"
# Of an evaluation; the returns of single episodes stay in the run folder.
KEPT = ("episodes", "seed", "return_mean", "return_std", "return_min", "falls", "nonfinite", "metrics")
LOCK_SECONDS = 70.0  # a leaderboard that was just killed leaves agents that are still saving


def jobs(experiment: Experiment, preset: Preset, work: Path) -> tuple[Job, ...]:
    """A job per run: train it, then each of its evaluations, in a folder of its own under `work`.

    Raises ValueError, before anything is started, when a folder holds a run of other settings.
    """
    return tuple(_job(run, RunFolder(work / run.name)) for run in runs(experiment, preset))


def collect(experiment: Experiment, preset: Preset, work: Path, results: Path) -> tuple[Record, ...]:
    """Write a record for every run complete in `work`, the report and the figure; returns the records."""
    records = tuple(
        record(run, RunFolder(work / run.name))
        for run, job in zip(runs(experiment, preset), jobs(experiment, preset, work), strict=True)
        if job.done()
    )
    for item in records:
        write_record(item, results)
    if records:
        publish(experiment, preset, records, results)
    return records


def publish(experiment: Experiment, preset: Preset, records: Sequence[Record], results: Path) -> None:
    """Write README.md and figure.png of the records into the results folder."""
    experiment.draw(records, results / "figure.png")
    write_text(results / "README.md", report(experiment, preset, records))


def kept_records(experiment: Experiment, preset: Preset, results: Path) -> tuple[Record, ...]:
    """The records of the experiment that lie in the results folder, in the order of its runs."""
    return read_records(results, [run.name for run in runs(experiment, preset)])


def record(run: Run, folder: RunFolder) -> Record:
    """The record of a run that is trained and evaluated."""
    log, config = folder.log(), folder.config()
    evaluations = {test.label: _judged(run, folder.evaluation(test.label)) for test in run.entry.evaluations}
    commit, dirty = _commit(config)
    return Record(
        experiment=run.experiment,
        preset=run.preset.name,
        entry=run.entry.name,
        seed=run.seed,
        env=run.entry.env,
        contact=run.entry.contact,
        command=run.command,
        commit=commit,
        dirty=dirty,
        versions=config["versions"],
        machine=machine(),
        wall_seconds=log[-1]["seconds"],
        iterations=len(log),
        samples=log[-1]["samples"],
        seconds_per_iteration=seconds_per_iteration(log),
        nonfinite=nonfinite(log) + sum(test["nonfinite"] for test in evaluations.values()),
        reached=reached(log, run.entry.milestones),
        curve=curve(log, run.entry.metrics),
        evaluations=evaluations,
    )


def _judged(run: Run, said: Mapping[str, Any]) -> dict[str, Any]:
    """What an evaluation said, episode lengths in seconds, without the single episodes."""
    from diffenvs.registry import find  # brings torch, seconds to import, and is not needed before the end

    step = find(run.entry.env).task.Config().control_timestep
    return {name: said[name] for name in KEPT} | {
        "seconds_mean": step * said["length_mean"],
        "seconds_std": step * said["length_std"],
    }


def _commit(config: Mapping[str, Any]) -> tuple[str | None, bool | None]:
    """(commit, dirty) of a training, from what it and its continuations noted; see Record."""
    first, *later = [part["commit"] for part in (config, *config.get("resumed", ()))]
    if first is None:
        return None, None
    return first.removesuffix("-dirty"), first.endswith("-dirty") or any(commit != first for commit in later)


def report(experiment: Experiment, preset: Preset, records: Sequence[Record]) -> str:
    """The results page of a preset: tables, figure, and where the numbers come from."""
    tables = experiment.tabulate(records)
    lines = [
        f"# {experiment.title}",
        "",
        f"`{command(experiment, preset)}` wrote this page from the JSON files beside it, one per run.",
        "",
        *[table.markdown() for table in tables],
        "![learning curves and returns](figure.png)",
        "",
        provenance(records),
        "",
    ]
    return "\n".join(lines)


def provenance(records: Sequence[Record]) -> str:
    """One sentence: commit, machine, packages and time behind the records."""
    commits = sorted({(item.commit or "none")[:12] for item in records})
    changed = " with uncommitted changes" if any(item.dirty for item in records) else ""
    machines = sorted({f"{item.machine['cores']} cores of {item.machine['cpu']}" for item in records})
    packages = sorted({f"{name} {text}" for item in records for name, text in item.versions.items()})
    total = sum(item.wall_seconds for item in records)
    return (
        f"Commit {', '.join(commits)}{changed}; {', '.join(machines)}; {', '.join(packages)}; "
        f"{total:.0f} s of training on one core in all."
    )


def command(experiment: Experiment, preset: Preset) -> str:
    """What a person types to repeat the experiment."""
    return f"python -m leaderboard run {experiment.name} --preset {preset.name}"


def default_results(experiment: Experiment, preset: Preset) -> Path:
    """Where the results of a preset are kept in the checkout."""
    return RESULTS / experiment.name / preset.name


@contextmanager
def claimed(work: Path) -> Iterator[tuple[int, ...]]:
    """Hold the folder against a second leaderboard; yields the descriptors that children must inherit.

    The lock lives as long as any process that has it open: children left by a killed leaderboard hold it
    until they have saved. Raises ValueError when it is still taken after a while.
    """
    work.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not a POSIX system: nothing to hold the folder with
        yield ()
        return
    with (work / ".lock").open("w") as lock:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ValueError(f"{work} is in use by another leaderboard") from None
                time.sleep(0.2)
        os.set_inheritable(lock.fileno(), True)
        yield (lock.fileno(),)


def _job(run: Run, folder: RunFolder) -> Job:
    _check_same(run, folder)
    log = folder.path.with_suffix(".log")
    train = Step(
        label=f"training {run.iterations} iterations",
        command=partial(_train_command, run, folder),
        done=partial(folder.trained, run.iterations),
        seconds=run.iterations * run.entry.seconds_per_iteration,
        log=log,
        fares=partial(_training_return, folder),
    )
    tests = tuple(
        Step(
            label=f"evaluation {test.label}",
            command=partial(run.evaluate_command, folder.path, test),
            done=partial(_evaluated, run, folder, test),
            seconds=run.entry.evaluation_seconds,
            log=log,
            fares=partial(_evaluation_return, folder, test),
        )
        for test in run.entry.evaluations
    )
    return Job(run.name, (train, *tests))


def _train_command(run: Run, folder: RunFolder) -> tuple[str, ...]:
    """Continue from the checkpoint; where none was written yet, begin again."""
    resume = folder.checkpointed() > 0
    if not resume and folder.path.exists():
        shutil.rmtree(folder.path)
    return run.train_command(folder.path, resume=resume)


def _evaluated(run: Run, folder: RunFolder, test: Evaluation) -> float:
    """1 when the test was made of the policy at the end of training, on the preset's number of episodes."""
    said = folder.evaluation(test.label)
    wanted = (run.preset.episodes, run.iterations)
    return float(said is not None and (said["episodes"], said["trained"]["iteration"]) == wanted)


def _training_return(folder: RunFolder) -> str:
    value = folder.logged().get("return")
    return "" if value is None else f"return {value:.0f}"


def _evaluation_return(folder: RunFolder, test: Evaluation) -> str:
    said = folder.evaluation(test.label)
    return "" if said is None else f"return {plus_minus(said['return_mean'], said['return_std'])}"


def _check_same(run: Run, folder: RunFolder) -> None:
    """Raise ValueError when the folder holds a run of other settings, which would be counted as this one."""
    config = folder.config()
    if not config:
        return
    settings = config["settings"]
    found = {name: config[name] for name in ("env", "contact", "seed")} | {"iterations": settings["iterations"]}
    wanted = {
        "env": run.entry.env,
        "contact": run.entry.contact,
        "seed": run.seed,
        "iterations": run.iterations,
    }
    if run.preset.num_envs is not None:
        found["num_envs"], wanted["num_envs"] = settings["num_envs"], run.preset.num_envs
    for name, value in wanted.items():
        if found[name] != value:
            raise ValueError(
                f"{folder.path} holds a run with {name} {found[name]!r}, not {value!r}: choose another --out"
            )
