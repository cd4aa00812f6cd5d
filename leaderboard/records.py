"""What is kept of a run: one small JSON file with the facts that let somebody else repeat and judge it."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from leaderboard.schedule import available_cores

SCHEMA = 1
MAX_BYTES = 20_000
MAX_CURVE = 200
DIGITS = 6  # significant; float32 training has no more


@dataclass(frozen=True)
class Record:
    """One run of an experiment.

    command: trains the run, as typed in a checkout of `commit`. dirty: with uncommitted changes, or continued
    at another commit. None: not known.
    wall_seconds: training [s], the parts of a resumed one together.
    seconds_per_iteration: medians, `iteration` and its parts by name [s].
    nonfinite: worlds that went non-finite in training and evaluation, each reset and counted.
    reached: return -> iteration, samples and seconds at which training first showed it; absent when never.
    curve: columns of equal length, at most 200 rows.
    evaluations: by label, what `python -m agents evaluate` said.
    """

    experiment: str
    preset: str
    entry: str
    seed: int
    env: str
    contact: str
    command: str
    commit: str | None
    dirty: bool | None
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    wall_seconds: float
    iterations: int
    samples: int
    seconds_per_iteration: Mapping[str, float]
    nonfinite: int
    reached: Mapping[str, Mapping[str, float]]
    curve: Mapping[str, list[float | None]]
    evaluations: Mapping[str, Mapping[str, Any]]
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        """Raise ValueError for what would make the record useless or misleading."""
        name = f"record {self.entry}-{self.seed}"
        if self.schema != SCHEMA:
            raise ValueError(f"{name}: schema {self.schema} is not {SCHEMA}, the one this version reads")
        lengths = {len(column) for column in self.curve.values()}
        if len(lengths) > 1 or not lengths <= set(range(MAX_CURVE + 1)):
            raise ValueError(f"{name}: curve columns must have one length of at most {MAX_CURVE}, got {lengths}")
        if not self.evaluations:
            raise ValueError(f"{name}: no evaluation")
        if not (math.isfinite(self.wall_seconds) and self.wall_seconds >= 0.0):
            raise ValueError(f"{name}: wall_seconds must be a finite time of at least 0, got {self.wall_seconds}")
        if self.nonfinite < 0:
            raise ValueError(f"{name}: nonfinite must be a count, got {self.nonfinite}")

    @property
    def filename(self) -> str:
        return f"{self.entry}-{self.seed}.json"


def write_record(record: Record, folder: Path) -> Path:
    """Write the record into the folder; ValueError when it is too large or holds a non-finite number."""
    text = json.dumps(shortened(asdict(record)), indent=1, sort_keys=True, allow_nan=False)
    text = _one_line_lists(text) + "\n"
    if len(text.encode()) > MAX_BYTES:
        raise ValueError(f"record {record.filename} has {len(text.encode())} bytes, more than the {MAX_BYTES} allowed")
    return write_text(folder / record.filename, text)


def read_record(path: Path) -> Record:
    """The record in a file; ValueError names the file and what is wrong with it."""
    try:
        values = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    known = {field.name for field in fields(Record)}
    if not isinstance(values, dict) or set(values) != known:
        odd = sorted(set(values) ^ known) if isinstance(values, dict) else type(values).__name__
        raise ValueError(f"{path} is not a record: missing or unknown fields {odd}")
    return Record(**values)


def read_records(folder: Path, names: Iterable[str]) -> tuple[Record, ...]:
    """The records of those names in the folder, in that order; those without a file are left out."""
    paths = [folder / f"{name}.json" for name in names]
    return tuple(read_record(path) for path in paths if path.exists())


def write_json(path: Path, value: Any) -> Path:
    """Write plain values as JSON, numbers shortened, whole or not at all; ValueError for a non-finite number."""
    return write_text(path, json.dumps(shortened(value), indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> Path:
    """Write a UTF-8 file whole or not at all."""
    return write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    os.replace(temporary, path)
    return path


def thinned(count: int, limit: int = MAX_CURVE) -> list[int]:
    """At most `limit` indices spread evenly over range(count), the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return [round(i * (count - 1) / (limit - 1)) for i in range(limit)]


def shortened(value: Any) -> Any:
    """The value with every float cut to the digits that mean something."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value
    if isinstance(value, Mapping):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(item) for item in value]
    return value


def machine() -> dict[str, Any]:
    """What the seconds were measured on; nothing that names the machine."""
    return {"cpu": _cpu_model(), "cores": available_cores(), "system": platform.system()}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _one_line_lists(text: str) -> str:
    """Indented JSON with each list of numbers on one line: a curve is not worth 200 lines of a diff."""
    return re.sub(r'\[\s+([^][{}"]*?)\s+\]', lambda found: "[" + " ".join(found[1].split()) + "]", text)
