"""Tables as values, and their two renderings: Markdown for files, aligned text for terminals."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

NOTE_WIDTH = 100


@dataclass(frozen=True)
class Table:
    """A titled table of strings.

    notes: sentences below it. labels: how many columns, from the first, are words; the others are numbers.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    labels: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: row {row[:1]} has {len(row)} cells for {len(self.columns)} columns")

    def markdown(self, *, heading: int | None = 2) -> str:
        """Markdown with the title as a heading of that level (None: no title)."""
        lines = [f"{'#' * heading} {self.title}", ""] if heading else []
        rule = ("---",) * self.labels + ("---:",) * (len(self.columns) - self.labels)
        lines += [_pipes(self.columns), _pipes(rule)]
        lines += [_pipes(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """The table aligned for a terminal, Markdown's emphasis taken off."""
        cells = [tuple(_plain(cell) for cell in row) for row in (self.columns, *self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.columns))]
        lines = [self.title]
        for row in cells:
            aligned = [
                cell.ljust(width) if column < self.labels else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(aligned).rstrip())
        lines.insert(2, "-" * max(len(line) for line in lines[1:]))
        notes = [textwrap.fill(_plain(note), NOTE_WIDTH) for note in self.notes]
        return "\n".join([*lines, *notes]) + "\n"


def plus_minus(mean: float, std: float | None, digits: int = 0) -> str:
    """`1979 ± 12`, or the mean alone where there is no spread."""
    if std is None:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {std:.{digits}f}"


def percent(ratio: float) -> str:
    """`98 %`."""
    return f"{100 * ratio:.0f} %"


def seconds(value: float | None, digits: int = 0) -> str:
    """`241 s`; a dash for a time that never came."""
    return "-" if value is None else f"{value:.{digits}f} s"


def _pipes(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    return text.replace("**", "").replace("`", "")
