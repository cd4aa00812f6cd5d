"""Parts that figures are made of: learning curves over seeds, bars with the published value beside them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leaderboard.records import Record, write_bytes

# Okabe and Ito's palette, told apart by colour-blind readers and in grey.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Bars compare tests, not entries, so they do not borrow the entries' colours.
GREYS = ("#555555", "#b0b0b0", "#808080")


def new_figure(columns: int, *, width: float = 10.0, height: float = 3.8) -> tuple[Figure, list[Axes]]:
    """A figure [inches] with panels side by side, drawn without any window system."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", alpha=0.3)
        panel.set_axisbelow(True)
    return figure, list(axes)


def learning_curves(panel: Axes, groups: Mapping[str, Sequence[Record]], *, ylabel: str) -> None:
    """Training return against iteration: the mean over seeds as a line, one standard deviation as a band."""
    for colour, (name, records) in zip(COLOURS, groups.items(), strict=False):
        points = [_points(record) for record in records]
        if not all(len(iterations) for iterations, _ in points):
            continue  # too short a training for a single episode to end
        grid = np.unique(np.concatenate([iterations for iterations, _ in points]))
        curves = np.stack([np.interp(grid, *point) for point in points])
        panel.plot(grid, curves.mean(0), color=colour, label=name, linewidth=1.5)
        if len(records) > 1:
            low, high = curves.mean(0) - curves.std(0), curves.mean(0) + curves.std(0)
            panel.fill_between(grid, low, high, color=colour, alpha=0.2, linewidth=0)
    panel.set_xlabel("iteration")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_ylabel(ylabel)
    if panel.lines:
        panel.legend(frameon=False)


def bars(
    panel: Axes,
    names: Sequence[str],
    groups: Mapping[str, Sequence[tuple[float, float | None]]],
    published: Mapping[str, Sequence[float]],
    *,
    ylabel: str,
) -> None:
    """A cluster of bars per name: groups maps a label to (mean, spread) per name, published to marks."""
    width = 0.8 / len(groups)
    for index, (label, values) in enumerate(groups.items()):
        x = np.arange(len(names)) + (index - (len(groups) - 1) / 2) * width
        panel.bar(x, [mean for mean, _ in values], width, color=GREYS[index], label=label)
        for at, (mean, spread) in zip(x, values, strict=True):
            if spread is not None:
                panel.errorbar(at, mean, spread, color="black", capsize=3, linewidth=1)
        marks = {"linestyle": "none", "marker": "D", "markerfacecolor": "white", "markeredgecolor": "black"}
        panel.plot(x, published[label], **marks, label="paper" if index == 0 else None)
    panel.set_xticks(range(len(names)), names)
    panel.set_ylabel(ylabel)
    panel.legend(frameon=False)


def _points(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """(iterations, returns) of the curve from its first finished episode on."""
    pairs = zip(record.curve["iteration"], record.curve["return"], strict=True)
    kept = np.array([pair for pair in pairs if pair[1] is not None], dtype=np.float64).reshape(-1, 2)
    return kept[:, 0], kept[:, 1]


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG, whole or not at all, without the program that would make files differ."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120, metadata={"Software": None})
    write_bytes(path, picture.getvalue())
