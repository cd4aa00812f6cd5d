"""Numbers of a training: one JSON line an iteration, TensorBoard, a progress bar."""

from __future__ import annotations

import json
import math
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from agents import atomic

FILE = "log.jsonl"


class TrainingLog:
    """Writes a run folder's ``log.jsonl`` and TensorBoard files; to be used in a ``with`` block.

    Args:
        directory: the run folder.
        iteration: iterations already done; later lines of an interrupted run are removed, so that none counts
            twice.
        total: iterations of the whole training.
    """

    def __init__(self, directory: Path, iteration: int, total: int) -> None:
        self.path = directory / FILE
        truncate(self.path, iteration)
        self._file = self.path.open("a", encoding="utf-8")
        # TensorBoard drops what it has read from this step on.
        self._board = SummaryWriter(str(directory), purge_step=iteration + 1)
        # disable=None: silent when the output is not a terminal.
        self._bar = tqdm(total=total, initial=iteration, unit="it", disable=None, dynamic_ncols=True)

    def __enter__(self) -> TrainingLog:
        return self

    def __exit__(self, *_) -> None:
        self._bar.close()
        self._board.close()
        self._file.close()

    def write(self, line: dict) -> None:
        """Appends one iteration; a number that is not finite is written as null."""
        self._file.write(json.dumps(_plain(line), allow_nan=False) + "\n")
        self._file.flush()
        for name, value in _numbers(line):
            self._board.add_scalar(name, value, line["iteration"])
        self._bar.update()
        shown = {"return": line["return"], "grad": line["grad_norm"], "s/it": line["seconds_iteration"]}
        self._bar.set_postfix({k: f"{v:.3g}" for k, v in shown.items() if v is not None}, refresh=False)


class Silence:
    """Takes the lines of a process that keeps no log."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *_) -> None:
        pass

    def write(self, line: dict) -> None:
        """Does nothing."""


def truncate(path: Path, iteration: int) -> None:
    """Keeps the lines up to ``iteration``; a line cut short by a kill goes too."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n") or json.loads(line)["iteration"] > iteration:
            break
        kept.append(line)
    atomic.replace_text(path, "".join(kept))


def read(directory: Path) -> list[dict]:
    """All lines of a run folder's log."""
    return [json.loads(line) for line in (directory / FILE).read_text(encoding="utf-8").splitlines()]


def _plain(value):
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(line: dict, prefix: str = "") -> list[tuple[str, float]]:
    numbers: list[tuple[str, float]] = []
    for name, value in line.items():
        if isinstance(value, dict):
            numbers += _numbers(value, f"{prefix}{name}/")
        elif value is not None:
            numbers.append((prefix + name, value))
    return numbers
