"""How fast is it, beside MuJoCo, MJX and Newton? `python scripts/benchmark.py --preset quick`"""

import os
import sys
from pathlib import Path

import tyro

# the leaderboard is no part of the installed library
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from leaderboard.benchmark.run import TABLE, benchmark


def main(preset: str = "quick", peers: tuple[str, ...] | None = None, out: Path = Path("runs/benchmark")) -> bool:
    """Time the quadruped on its four feet in every simulator, each in turns with MuJoCo; print the tables.

    Ends with status 0; 1 if a contestant's own code failed, 2 for a bad argument. One that is not installed, or whose
    robot does not stand, is named.

    Args:
        preset: smoke (seconds), quick (minutes), full (all numbers of worlds, all settings).
        peers: who takes part (ours, mujoco, mjx, newton, differences); the preset's by default.
        out: folder for benchmark.md, benchmark.png and benchmark.json.
    """
    run = benchmark(preset, peers, out, say=lambda line: print(line, flush=True))
    print(f"\n{(out / TABLE).read_text()}\nwritten to {out}")
    return run.failed


if __name__ == "__main__":
    try:
        failed = tyro.cli(main)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    # a simulator that got stuck keeps its threads, and would keep this process from ending
    sys.stdout.flush()
    os._exit(failed)
