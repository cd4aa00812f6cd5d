"""What `python -m agents` leaves in a run folder, read back: how far it is, its curve, its evaluations."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from leaderboard.records import thinned

CURVE_COLUMNS = ("iteration", "samples", "seconds", "return", "length", "grad_norm")
TAIL_BYTES = 8192


@dataclass(frozen=True)
class RunFolder:
    """A folder with config.json, log.jsonl, checkpoint.json, checkpoint.safetensors, evaluate-*.json."""

    path: Path

    def config(self) -> Mapping[str, Any]:
        """What the run was started with; empty before it was."""
        return _read(self.path / "config.json") or {}

    def checkpointed(self) -> int:
        """Iterations held by the last checkpoint; 0 when there is none."""
        card = _read(self.path / "checkpoint.json")
        return int(card["iteration"]) if card and (self.path / "checkpoint.safetensors").exists() else 0

    def logged(self) -> Mapping[str, Any]:
        """The last whole line of the log; empty when there is none."""
        path = self.path / "log.jsonl"
        if not path.exists():
            return {}
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(log.tell() - TAIL_BYTES, 0))
            lines = log.read().decode(errors="replace").splitlines()
        return next((line for line in map(_parse, reversed(lines)) if line), {})

    def trained(self, iterations: int) -> float:
        """Fraction of the training done, 1 only when a checkpoint holds its end."""
        if self.checkpointed() >= iterations:
            return 1.0
        return min(self.logged().get("iteration", 0) / iterations, 0.999)

    def log(self) -> list[Mapping[str, Any]]:
        """Every iteration once, in order; where a resumed run repeated some, what it wrote last counts."""
        path = self.path / "log.jsonl"
        lines = map(_parse, path.read_text().splitlines()) if path.exists() else ()
        by_iteration = {line["iteration"]: line for line in lines if line}
        return [by_iteration[iteration] for iteration in sorted(by_iteration)]

    def evaluation(self, label: str) -> Mapping[str, Any] | None:
        """What the evaluation of that label said; None before it was made."""
        return _read(self.path / f"evaluate-{label}.json")


def curve(log: Sequence[Mapping[str, Any]], metrics: Sequence[str] = ()) -> dict[str, list[float | None]]:
    """The log as columns of at most 200 rows, the first and the last iteration among them.

    Besides the columns that every log has, `METRIC_rms` for each of the environment's metrics asked for.
    None stands where there was no number: no episode had finished, or a gradient norm was not finite.
    """
    rows = [log[index] for index in thinned(len(log))]
    columns = {name: [row.get(name) for row in rows] for name in CURVE_COLUMNS}
    return columns | {f"{name}_rms": [row["metrics"][name]["rms"] for row in rows] for name in metrics}


def reached(log: Sequence[Mapping[str, Any]], returns: Sequence[float]) -> dict[str, dict[str, float]]:
    """For each of the returns, where training first showed it; left out when it never did."""
    found = {}
    for threshold in returns:
        row = next((row for row in log if row["return"] is not None and row["return"] >= threshold), None)
        if row is not None:
            found[f"{threshold:g}"] = {name: row[name] for name in ("iteration", "samples", "seconds")}
    return found


def nonfinite(log: Sequence[Mapping[str, Any]]) -> int:
    """Worlds that went non-finite in training."""
    return sum(row["nonfinite"] for row in log)


def seconds_per_iteration(log: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Median seconds of an iteration: `iteration`, and each part that the log times."""
    names = [name for name in log[0] if name.startswith("seconds_")]
    return {name.removeprefix("seconds_"): median(row[name] for row in log) for name in names}


def _parse(line: str) -> Mapping[str, Any] | None:
    """A line of the log; None for one that a kill cut short."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _read(path: Path) -> Mapping[str, Any] | None:
    """A JSON file that agents write whole or not at all; None when it is not there."""
    return json.loads(path.read_text()) if path.exists() else None
