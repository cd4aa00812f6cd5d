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


def new_figure(columns: int, rows: int = 1, *, width: float = 10.0, height: float = 3.8) -> tuple[Figure, list[Axes]]:
    """A figure, each row of panels so wide and high [inches], drawn without any window system; panels row by row."""
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", alpha=0.3)
        panel.set_axisbelow(True)
    return figure, list(axes)


def learning_curves(
    panel: Axes, groups: Mapping[str, Sequence[Record]], *, ylabel: str, x: str = "iteration", log: bool = False
) -> None:
    """Training return against another column of the curve, a line an entry. log: logarithmic x."""
    for colour, (name, records) in zip(COLOURS, groups.items(), strict=False):
        curve_over_seeds(panel, records, x=x, y="return", colour=colour, label=name)
    if log:
        panel.set_xscale("log")
    finish_curves(panel, xlabel=x, ylabel=ylabel)


def curve_over_seeds(panel: Axes, records: Sequence[Record], *, x: str, y: str, colour: str, label: str) -> None:
    """One column of the curve against another: the mean over seeds as a line, one deviation as a band.

    Drawn where every seed has numbers; not at all when a training was too short for a single episode to end.
    """
    points = [_points(record, x, y) for record in records]
    if not all(len(at) for at, _ in points):
        return
    grid = np.unique(np.concatenate([at for at, _ in points]))
    grid = grid[(grid >= max(at[0] for at, _ in points)) & (grid <= min(at[-1] for at, _ in points))]
    if not grid.size:
        return
    curves = np.stack([np.interp(grid, *point) for point in points])
    panel.plot(grid, curves.mean(0), color=colour, label=label, linewidth=1.5)
    if len(records) > 1:
        low, high = curves.mean(0) - curves.std(0), curves.mean(0) + curves.std(0)
        panel.fill_between(grid, low, high, color=colour, alpha=0.2, linewidth=0)


def finish_curves(panel: Axes, *, xlabel: str, ylabel: str) -> None:
    """Labels of a panel of curves, whole iterations on its axis, and the legend when there is a curve."""
    panel.set_xlabel(xlabel)
    if xlabel == "iteration":
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
    panel.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _points(record: Record, x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of the curve where the second has a number: returns begin at the first finished episode."""
    pairs = zip(record.curve[x], record.curve[y], strict=True)
    kept = np.array([pair for pair in pairs if pair[1] is not None], dtype=np.float64).reshape(-1, 2)
    return kept[:, 0], kept[:, 1]


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG, whole or not at all, without the program that would make files differ."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120, metadata={"Software": None})
    write_bytes(path, picture.getvalue())
