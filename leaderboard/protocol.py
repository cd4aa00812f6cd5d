"""What an experiment is: who is trained, at what scale, how it is judged, and the commands that do it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaderboard.records import Record
    from leaderboard.tables import Table


@dataclass(frozen=True)
class Evaluation:
    """One test of a trained policy: under this contact law, with the mean or with a sampled action."""

    contact: str
    stochastic: bool = False

    @property
    def label(self) -> str:
        """Name of the test; `python -m agents evaluate` writes evaluate-LABEL.json into the run folder."""
        return f"{self.contact}-stochastic" if self.stochastic else self.contact


@dataclass(frozen=True)
class Entry:
    """One row of an experiment: an agent trained in an environment under one contact law.

    seconds_per_iteration, evaluation_seconds: expected times on one core [s], of training and of one
    evaluation; they order the runs and foretell the time left, so only their ratios matter.
    metrics: the environment's metrics whose RMS in training is kept with the curve.
    options: further arguments of the training command, such as ("--last-gain", "0.1").
    milestones: returns whose first showing in training is kept.
    """

    name: str
    agent: str
    env: str
    contact: str
    evaluations: tuple[Evaluation, ...]
    seconds_per_iteration: float
    evaluation_seconds: float
    metrics: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    milestones: tuple[float, ...] = (1000.0, 1500.0, 1800.0, 1900.0)


@dataclass(frozen=True)
class Preset:
    """The scale at which an experiment is run.

    num_envs: worlds in training; None takes the agent's own setting.
    kept: whether the results are meant for the repository (a smoke test's never are).
    own_seeds, own_iterations: by entry, where one is trained at another scale than `seeds`, `iterations`.
    """

    name: str
    seeds: tuple[int, ...]
    iterations: int
    episodes: int
    num_envs: int | None = None
    kept: bool = True
    own_seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    own_iterations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A question, as a value.

    tabulate: the records of one preset -> tables, with the paper's numbers beside ours.
    draw: records, file -> writes the figure.
    """

    name: str
    title: str
    entries: tuple[Entry, ...]
    presets: tuple[Preset, ...]
    tabulate: Callable[[Sequence[Record]], tuple[Table, ...]]
    draw: Callable[[Sequence[Record], Path], None]

    def __post_init__(self) -> None:
        """Raise ValueError when a preset speaks of an entry that there is not."""
        names = {entry.name for entry in self.entries}
        for preset in self.presets:
            if strangers := {*preset.own_seeds, *preset.own_iterations} - names:
                raise ValueError(f"preset {preset.name} of {self.name}: no entry {sorted(strangers)}")

    def preset(self, name: str) -> Preset:
        """The preset of that name; ValueError names those that exist."""
        for preset in self.presets:
            if preset.name == name:
                return preset
        known = ", ".join(preset.name for preset in self.presets)
        raise ValueError(f"unknown preset {name!r} of {self.name}: expected one of {known}")


@dataclass(frozen=True)
class Run:
    """One seed of one entry: the unit that is trained, resumed, evaluated and recorded once."""

    experiment: str
    preset: Preset
    entry: Entry
    seed: int

    @property
    def name(self) -> str:
        return f"{self.entry.name}-{self.seed}"

    @property
    def iterations(self) -> int:
        """Iterations of the training."""
        return self.preset.own_iterations.get(self.entry.name, self.preset.iterations)

    def train_command(self, folder: Path | str, *, resume: bool = False) -> tuple[str, ...]:
        """Command, to be run in the checkout, that trains this run into the folder."""
        worlds = () if self.preset.num_envs is None else ("--num-envs", str(self.preset.num_envs))
        return (
            *("python", "-m", "agents", self.entry.agent, self.entry.env),
            *("--contact", self.entry.contact, "--seed", str(self.seed)),
            *("--iterations", str(self.iterations), *worlds, *self.entry.options),
            *("--threads", "1", "--out", str(folder)),
            *(("--resume",) if resume else ()),
        )

    def evaluate_command(self, folder: Path | str, evaluation: Evaluation) -> tuple[str, ...]:
        """Command that evaluates the policy in the folder."""
        return (
            *("python", "-m", "agents", "evaluate", str(folder), "--contact", evaluation.contact),
            *("--episodes", str(self.preset.episodes)),
            *(("--stochastic",) if evaluation.stochastic else ()),
        )

    @property
    def command(self) -> str:
        """The training command as a person would type it; it reproduces the run."""
        folder = Path("runs", self.experiment, self.preset.name, self.name)
        return shlex.join(self.train_command(folder.as_posix()))


def runs(experiment: Experiment, preset: Preset) -> tuple[Run, ...]:
    """Every run of the experiment at that scale, seed by seed, so that early results cover all entries."""
    seeds = {entry.name: preset.own_seeds.get(entry.name, preset.seeds) for entry in experiment.entries}
    return tuple(
        Run(experiment.name, preset, entry, seed)
        for seed in dict.fromkeys(sorted(chain.from_iterable(seeds.values())))
        for entry in experiment.entries
        if seed in seeds[entry.name]
    )
