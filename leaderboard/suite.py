"""Every environment, by SHAC and by PPO: the return, and what it took to a stated one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leaderboard.figures import COLOURS, curve_over_seeds, finish_curves, new_figure, save
from leaderboard.over_seeds import (
    Groups,
    Results,
    broken_worlds,
    by_entry,
    falls,
    first_reached,
    iteration_seconds,
    median_or_never,
    results,
    scale_in_words,
    spread,
    training_seconds,
)
from leaderboard.protocol import Entry, Evaluation, Experiment, Preset
from leaderboard.records import Record
from leaderboard.sample_efficiency import millions
from leaderboard.tables import Table, seconds

TRAINED, HARD = Evaluation("smoothed"), Evaluation("hard")
AGENTS = ("shac", "ppo")
SMALL = 10.0  # returns below it are given with digits
COLUMNS = 4  # panels of the figure side by side


@dataclass(frozen=True)
class Trial:
    """An environment of the suite.

    goal: the return to which samples and seconds are counted. shac, ppo: iterations. costs: expected seconds of an
    iteration on one core, of SHAC and of PPO.
    """

    env: str
    goal: float
    shac: int
    ppo: int
    costs: tuple[float, float]

    def name(self, agent: str) -> str:
        """Of the entry: `ant-shac`."""
        return f"{self.env.removeprefix('Diff').removesuffix('-v0').lower()}-{agent}"

    def entry(self, agent: str) -> Entry:
        """The training of one agent, judged in its own and in the hard law."""
        cost = self.costs[AGENTS.index(agent)]
        name, tests = self.name(agent), (TRAINED, HARD)
        return Entry(name, agent, self.env, TRAINED.contact, tests, cost, 10.0, milestones=(self.goal,))


TRIALS = (
    Trial("DiffQuadruped-v0", 1800.0, 400, 400, (0.1, 1.1)),
    Trial("DiffAnymal-v0", 100.0, 600, 300, (0.2, 2.2)),
    Trial("DiffFallingMass-v0", -0.16, 300, 300, (0.05, 0.2)),
    Trial("DiffCartpole-v0", -600.0, 500, 500, (0.1, 0.5)),
    Trial("DiffHopper-v0", 3000.0, 600, 1000, (0.2, 0.8)),
    Trial("DiffCheetah-v0", 4000.0, 600, 1000, (0.3, 1.5)),
    Trial("DiffAnt-v0", 2500.0, 1000, 300, (0.6, 6.0)),
    Trial("DiffHumanoid-v0", 1000.0, 1000, 300, (2.0, 15.0)),
)


def tabulate(records: Sequence[Record]) -> tuple[Table, ...]:
    """Returns of the trained policies, and what training took."""
    groups = by_entry(records, [trial.name(agent) for trial in TRIALS for agent in AGENTS])
    return returns(groups), costs(groups)


def returns(groups: Groups) -> Table:
    """Mean action, in the law trained in and in the hard one."""
    rows = []
    for group in groups.values():
        own, hard = results(group, TRAINED), results(group, HARD)
        first = group[0]
        rows.append((f"`{first.env}`", _agent(first), _return(own), falls(own), _return(hard), falls(hard)))
    columns = ("environment", "agent", "return", "ended early", "return, hard law", "ended early")
    return Table("Returns, mean action", columns, tuple(rows), (_sentence(groups),), labels=2)


def costs(groups: Groups) -> Table:
    """Samples and seconds to each environment's goal, and of the whole training."""
    rows = []
    for trial in TRIALS:
        for agent in AGENTS:
            if (group := groups.get(trial.name(agent))) is None:
                continue
            rows.append(
                (
                    f"`{trial.env}`",
                    agent,
                    f"{trial.goal:g}",
                    median_or_never(first_reached(group, trial.goal, "samples"), millions),
                    median_or_never(first_reached(group, trial.goal, "seconds"), seconds),
                    millions(group[0].samples),
                    training_seconds(group),
                    iteration_seconds(group),
                )
            )
    columns = (
        *("environment", "agent", "goal", "samples to it", "seconds to it"),
        *("samples in all", "seconds in all", "an iteration"),
    )
    note = (
        "The goal is a return of the training curve (sampled actions); medians over seeds, one process per core. "
        "Goals were set to what SHAC reaches well before its end."
    )
    notes = (note, *broken_worlds(record for group in groups.values() for record in group))
    return Table("Training", columns, tuple(rows), notes, labels=2)


def cells(group: Sequence[Record], trial: Trial) -> tuple[str, str]:
    """Return of the mean action in the law trained in; samples and seconds to the goal."""
    samples, time = (first_reached(group, trial.goal, quantity) for quantity in ("samples", "seconds"))
    words = median_or_never(samples, millions)
    if any(samples):
        words += f", {median_or_never(time, seconds)}"
    return _return(results(group, TRAINED)), words


def draw(records: Sequence[Record], path: Path) -> None:
    """Training return over samples, one panel an environment."""
    groups = by_entry(records, [trial.name(agent) for trial in TRIALS for agent in AGENTS])
    shown = [trial for trial in TRIALS if any(trial.name(agent) in groups for agent in AGENTS)]
    columns = min(COLUMNS, len(shown))
    figure, panels = new_figure(columns, -(-len(shown) // columns), height=3.0)
    for panel in panels[len(shown) :]:
        panel.remove()
    for trial, panel in zip(shown, panels, strict=False):
        for colour, agent in zip(COLOURS, AGENTS, strict=False):
            if group := groups.get(trial.name(agent)):
                curve_over_seeds(panel, group, x="samples", y="return", colour=colour, label=agent)
        panel.axhline(trial.goal, color="black", linestyle=":", linewidth=1, label="goal")
        panel.set_xscale("log")
        panel.set_title(trial.env)
        finish_curves(panel, xlabel="samples", ylabel="return while training")
    save(figure, path)


def _return(outcomes: Results) -> str:
    """With three digits after the point where the return is a small number."""
    return spread(outcomes, "return", 3 if abs(outcomes[0]["return_mean"]) < SMALL else 0)


def _agent(record: Record) -> str:
    return record.entry.rpartition("-")[2]


def _sentence(groups: Groups) -> str:
    words = scale_in_words(groups)
    return f"Trained under smoothed contact; {words}."


def _iterations(agent: str) -> Mapping[str, int]:
    return {trial.name(agent): getattr(trial, agent) for trial in TRIALS}


_ITERATIONS = _iterations("shac") | _iterations("ppo")
# DiffRL's own scale: 2000 iterations of SHAC, 5000 epochs of PPO
_PAPER = {trial.name(agent): n for trial in TRIALS for agent, n in (("shac", 2000), ("ppo", 5000))}

SUITE = Experiment(
    name="suite",
    title="SHAC and PPO on every environment",
    entries=tuple(trial.entry(agent) for trial in TRIALS for agent in AGENTS),
    presets=(
        Preset("smoke", seeds=(0,), iterations=3, episodes=2, num_envs=2, kept=False),
        Preset("quick", seeds=(0,), iterations=1, episodes=100, own_iterations=_ITERATIONS),
        Preset("seeds", seeds=(0, 1, 2), iterations=1, episodes=100, own_iterations=_ITERATIONS),
        Preset("paper", seeds=tuple(range(5)), iterations=1, episodes=100, own_iterations=_PAPER),
    ),
    tabulate=tabulate,
    draw=draw,
)
