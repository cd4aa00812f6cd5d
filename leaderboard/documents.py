"""Generated tables of README.md, between `<!-- NAME -->` and `<!-- /NAME -->`, never edited by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from diffenvs.registry import ENVS
from leaderboard import environment_facts, suite
from leaderboard.conduct import RESULTS, command, default_results, kept_records, provenance
from leaderboard.environment_facts import Facts
from leaderboard.experiments import experiment
from leaderboard.records import write_text
from leaderboard.suite import AGENTS, SUITE, TRIALS
from leaderboard.tables import Table

FACTS = RESULTS / "environments.json"
SPEED = "steps in a second, forward / with gradient"
PRESET = "quick"  # whose results the README shows: those that its command makes on a laptop


def environments() -> str:
    """The registered environments: what they are and cost, and what is learned in them."""
    facts, record = environment_facts.read(FACTS)
    return "\n".join([_sizes(facts, record), _returns(facts)])


def _sizes(facts: Mapping[str, Facts], record: Mapping[str, Any]) -> str:
    rows = []
    for row in ENVS:
        envs = gym.make_vec(row.id, num_envs=1)
        core = envs.unwrapped
        step, found = core.task.control_timestep, facts.get(row.id)
        rows.append(
            (
                f"`{row.id}`",
                row.summary,
                f"{envs.single_observation_space.shape[0]} / {envs.single_action_space.shape[0]}",
                f"{len(set(core.model.link_body.tolist()))} / {core.model.ncontact}",
                f"{1.0 / step:.0f} Hz / {1.0 / core.simulator.timestep:.0f} Hz",
                f"{row.max_episode_steps * step:.3g} s",
                "-" if found is None else f"{found.forward / 1e3:.1f} k / {found.gradient / 1e3:.1f} k",
            )
        )
        envs.close()
    columns = ("id", "task", "observations / actions", "bodies / contacts", "control / simulation", "episode", SPEED)
    notes = ()
    if record:
        cpu, worlds = record["machine"]["cpu"], record["worlds"]
        notes = (f"Control steps of one world in a second: {worlds} worlds on one thread of {cpu}, smoothed contact.",)
    return Table("Environments", columns, tuple(rows), notes, labels=2).markdown(heading=None)


def _returns(facts: Mapping[str, Facts]) -> str:
    """Random and zero actions, SHAC and PPO; a dash where it was not run."""
    preset = SUITE.preset("seeds")
    records = kept_records(SUITE, preset, default_results(SUITE, preset))
    if not records:
        preset = SUITE.preset("quick")
        records = kept_records(SUITE, preset, default_results(SUITE, preset))
    rows = []
    for trial in TRIALS:
        found, cells = facts.get(trial.env), []
        for agent in AGENTS:
            group = [record for record in records if record.entry == trial.name(agent)]
            cells += suite.cells(group, trial) if group else ("-", "-")
        rest = ("-", "-") if found is None else (f"{found.random:.4g}", f"{found.zero:.4g}")
        rows.append((f"`{trial.env}`", *rest, cells[0], cells[2], f"{trial.goal:g}", cells[1], cells[3]))
    columns = ("id", "random", "zero", "SHAC", "PPO", "goal", "SHAC to the goal", "PPO to the goal")
    note = "Returns of an episode under smoothed contact; of the trained policies' mean action, ± over seeds."
    return Table("Returns", columns, tuple(rows), (note,)).markdown(heading=None)


def contact_models() -> str:
    """Table 1 as measured here, mean action; a sentence where it has not been measured."""
    chosen = experiment("contact-models")
    preset = chosen.preset(PRESET)
    records = kept_records(chosen, preset, default_results(chosen, preset))
    if not records:
        return f"Not yet run: `{command(chosen, preset)}` fills this table.\n"
    first, *_ = chosen.tabulate(records)
    return first.markdown(heading=None) + f"\n{provenance(records)}\n"


BLOCKS: Mapping[str, Callable[[], str]] = {
    "environments": environments,
    "contact-models": contact_models,
}


def refreshed(text: str) -> str:
    """The text with every generated block written anew; ValueError when a block's markers are missing."""
    for name, generate in BLOCKS.items():
        block = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if len(block.findall(text)) != 1:
            raise ValueError(f"expected <!-- {name} --> and <!-- /{name} --> once each around a generated table")
        content = generate()
        text = block.sub(lambda found, content=content: f"{found[1]}\n{content}\n{found[2]}", text)
    return text


def refresh(path: Path) -> None:
    """Write the generated blocks of a Markdown file anew."""
    write_text(path, refreshed(path.read_text()))
