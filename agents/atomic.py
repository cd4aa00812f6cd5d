"""Files that are either old or new, never half written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def replace(path: Path, write: Callable[[Path], None]) -> None:
    """Lets ``write`` fill a temporary file beside ``path``, then moves it there in one step."""
    temporary = path.with_name(f".{path.name}.tmp")
    write(temporary)
    os.replace(temporary, path)


def replace_text(path: Path, text: str) -> None:
    """Writes a text file in one step."""
    replace(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
