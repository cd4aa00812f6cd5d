"""Records of runs that never were."""

import json
from pathlib import Path

from leaderboard.records import Record


def made_up(entry: str, seed: int, contact: str | None = None, **changes) -> Record:
    """A record such as a run of 400 iterations leaves, numbers invented. contact: the entry's name if None."""
    law = contact or entry
    own = {"soft": 2000.0, "hard": 1900.0, "smoothed": 1950.0}[law] + 10 * seed
    hard = {"soft": 300.0, "hard": 1900.0, "smoothed": 1900.0}[law] + 10 * seed
    count = 200
    values = {
        "experiment": "contact-models",
        "preset": "quick",
        "entry": entry,
        "seed": seed,
        "env": "DiffQuadruped-v0",
        "contact": law,
        "command": "python -m agents shac",
        "commit": "0123456789abcdef" * 2 + "01234567",
        "dirty": False,
        "versions": {"python": "3.11.7", "torch": "2.13.0"},
        "machine": {"cpu": "a cpu", "cores": 2, "system": "Linux"},
        "wall_seconds": 70.0 + seed,
        "iterations": 400,
        "samples": 400 * 2048,
        "seconds_per_iteration": {"iteration": 0.17, "rollout": 0.03},
        "nonfinite": 0,
        "reached": {"1800": {"iteration": 160 + seed, "samples": 1, "seconds": 27.0}},
        "curve": {
            name: [None, *(scale * 1.2345678 * i for i in range(count - 1))]
            for name, scale in (("return", 10), ("length", 5), ("grad_norm", 1e-3))
        }
        | {
            name: [scale * 1.2345678 * i for i in range(count)] for name, scale in (("iteration", 2), ("samples", 4096))
        },
        "evaluations": {
            name: {
                "episodes": 100,
                "return_mean": value,
                "return_std": 25.0,
                "seconds_mean": value / 205,
                "seconds_std": 0.2,
                "falls": 3,
                "metrics": {"forward_velocity": {"mean": 0.98, "rms": 1.0}},
            }
            for label, value in ((law, own), ("hard", hard))
            for name in (label, f"{label}-stochastic")
        },
    }
    return Record(**(values | changes))


def rows(table) -> list[dict[str, str]]:
    """Rows as dictionaries; the first of two columns of a name is NAME, the second NAME'."""
    names = []
    for column in table.columns:
        names.append(f"{column}'" if column in names else column)
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def write_json(path: Path, value) -> None:
    """A JSON file, its folder made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
