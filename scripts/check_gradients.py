"""Is the gradient right? `python scripts/check_gradients.py DiffAnymal-v0 --contact smoothed --out runs/gradients`"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import tyro

from diffenvs.gradients import draw
from diffenvs.registry import find


def check(
    env: tyro.conf.Positional[str],
    /,
    contact: tuple[str, ...] = ("smoothed",),
    horizon: tuple[int, ...] = (1, 2, 5, 20, 32),
    worlds: int = 8,
    directions: int = 2,
    seed: int = 0,
    out: Path | None = None,
) -> str:
    """Compare the gradients of rollouts with central differences, in float64, for every input; print a table.

    Ends with status 0 if all gradients are right, 1 if one is wrong or cannot be judged, 2 for a bad argument.

    Args:
        env: the environment (DiffQuadruped-v0, DiffAnymal-v0).
        contact: contact laws (hard, soft, smoothed).
        horizon: lengths of the rollouts, in control steps.
        worlds: how many, each caught at another moment of an episode.
        directions: random directions along which every input of every world is moved.
        seed: of the worlds and the directions.
        out: folder for ENV-LAW.json, one a law, and the figure ENV.png, a panel a law.
    """
    find(env)
    reports = {}
    for law in contact:
        envs = gym.make_vec(env, num_envs=1, contact=law).unwrapped
        reports[law] = envs.check_gradients(horizon, worlds=worlds, directions=directions, seed=seed)
        print(reports[law], end="\n\n", flush=True)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for law, report in reports.items():
            text = json.dumps(report.record(), indent=1, allow_nan=False)
            write(out / f"{env}-{law}.json", lambda path, text=text: path.write_text(text + "\n"))
        write(out / f"{env}.png", draw(list(reports.values())).savefig)
        print(f"written to {out}")
    return max((report.verdict for report in reports.values()), key=("right", "undecided", "wrong").index)


def write(path: Path, fill: Callable[[Path], object]) -> None:
    """Write under a temporary name and move into place."""
    temporary = path.with_name(f".{path.name}.tmp{path.suffix}")
    fill(temporary)
    os.replace(temporary, path)


if __name__ == "__main__":
    try:
        verdict = tyro.cli(check)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(verdict != "right")
