"""How long until it walks, by SHAC and by PPO? `python scripts/race.py`"""

import sys
from pathlib import Path

import tyro

# the leaderboard is no part of the installed library
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from leaderboard.benchmark.race import TABLE, Goal, race


def main(
    agents: tuple[str, ...] = ("shac", "ppo"),
    seeds: tuple[int, ...] = (0, 1, 2),
    goal: Goal = Goal(),  # noqa: B008 a frozen value
    out: Path = Path("runs/race"),
) -> None:
    """Time every agent from the start of its process to a judged policy, one process at a time.

    What was run before is kept. Twenty minutes, most of them PPO's.

    Args:
        agents: shac, ppo.
        seeds: one training each.
        goal: environment and return.
        out: folder for race.md, race.json and the trainings.
    """
    race(goal, agents, seeds, out, say=lambda line: print(line, flush=True))
    print(f"\n{(out / TABLE).read_text()}\nwritten to {out}")


if __name__ == "__main__":
    try:
        tyro.cli(main)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ValueError) else 1)
