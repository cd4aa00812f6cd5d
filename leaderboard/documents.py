"""Generated tables of README.md, between `<!-- NAME -->` and `<!-- /NAME -->`, never edited by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import gymnasium as gym

from diffenvs.registry import ENVS
from leaderboard.conduct import command, default_results, kept_records, provenance
from leaderboard.experiments import experiment
from leaderboard.records import write_text
from leaderboard.tables import Table

PRESET = "quick"  # whose results the README shows: those that its command makes on a laptop


def environments() -> str:
    """The registered environments."""
    rows = []
    for row in ENVS:
        envs = gym.make_vec(row.id, num_envs=1)
        step = envs.unwrapped.task.control_timestep
        rows.append(
            (
                f"`{row.id}`",
                row.summary,
                str(envs.single_observation_space.shape[0]),
                str(envs.single_action_space.shape[0]),
                f"{step:g} s",
                f"{row.max_episode_steps * step:g} s",
            )
        )
        envs.close()
    columns = ("id", "task", "observations", "actions", "control step", "episode")
    return Table("Environments", columns, tuple(rows), labels=2).markdown(heading=None)


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
