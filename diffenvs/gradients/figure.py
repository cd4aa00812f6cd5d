"""The picture of a report: error against horizon, a line an input, a panel a law."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from diffenvs.gradients.differences import tolerance
from diffenvs.gradients.report import WRONG, GradientReport
from diffenvs.gradients.window import STATE_INPUTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by colour-blind readers; markers tell inputs of one colour apart.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
MARKERS = ("o", "s", "^")


def draw(reports: Sequence[GradientReport]) -> "Figure":
    """A panel for each report. Needs Matplotlib, and no display. Raises ImportError, with what to install."""
    try:
        # imported here because checking needs no picture
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("the figure of a gradient report needs matplotlib: pip install matplotlib") from error

    figure = Figure(figsize=(1.5 + 3.6 * len(reports), 4.2), layout="constrained", dpi=120)
    panels = figure.subplots(1, len(reports), sharey=True, squeeze=False)[0]
    for panel, report in zip(panels, reports, strict=True):
        _fill(panel, report)
        panel.set_title(f"{textwrap.fill(report.contact, 44)}\n{report.verdict}", fontsize=8)
        panel.set_xlabel("control steps")
    panels[0].set_ylabel("worst relative error of the gradient")
    handles = {line.get_label(): line for panel in panels for line in panel.lines}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=7, frameon=False)
    figure.suptitle(", ".join(dict.fromkeys(report.env for report in reports)), fontsize=10)
    return figure


def _fill(panel, report: GradientReport) -> None:
    for k, name in enumerate(report.inputs):
        points = [(h, report.worst(name, h)) for h in report.horizons]
        # an error of exactly zero has no place on a logarithmic axis
        points = [(h, error) for h, error in points if error]
        wrong = report.verdicts[name] == WRONG
        panel.loglog(
            *(zip(*points, strict=True) if points else ((), ())),
            color=COLOURS[k % len(COLOURS)],
            marker=MARKERS[k // len(COLOURS)],
            markersize=4,
            linewidth=1.6 if name in (*STATE_INPUTS, "action") or wrong else 0.9,
            label=name,
        )
    panel.step(
        report.horizons,
        [tolerance(h) for h in report.horizons],
        where="mid",
        color="black",
        linestyle=":",
        label="tolerance",
    )
    panel.set_xticks(report.horizons, labels=[str(h) for h in report.horizons])
    panel.minorticks_off()
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", alpha=0.3)
