"""The figure: our time against the number of worlds, and everybody side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from leaderboard.benchmark.outcome import Outcome, microseconds
from leaderboard.benchmark.report import OURS
from leaderboard.figures import COLOURS, GREYS, new_figure, save

if TYPE_CHECKING:
    from leaderboard.benchmark.run import Run

STYLES = {"forward": "--", "forward + backward": "-"}
MARKERS = ("o", "s", "^", "v")


def draw(run: Run, path: Path) -> None:
    """Write the figure as PNG."""
    timed = [outcome for outcome in run.outcomes if outcome.status == "timed"]
    ours = [outcome for outcome in timed if outcome.contestant.peer == OURS]
    others = [outcome for outcome in timed if outcome.contestant.peer != OURS]
    drawn, (left, right) = new_figure(2, width=13.0, height=5.0)
    _scaling(left, ours, microseconds(others[0].turns[0].samples))
    _side_by_side(right, ours, others, run.preset.peer_worlds)
    save(drawn, path)


def _scaling(panel: Axes, ours: list[Outcome], mujoco: float) -> None:
    """A line a law, course and number of threads."""
    laws = list(dict.fromkeys(outcome.contestant.label for outcome in ours))
    threads = sorted({outcome.contestant.threads for outcome in ours})
    for law, colour in zip(laws, COLOURS, strict=False):
        for count, marker in zip(threads, MARKERS, strict=False):
            chosen = [o for o in ours if (o.contestant.label, o.contestant.threads) == (law, count)]
            for course, style in STYLES.items():
                points = [
                    (outcome.contestant.worlds, microseconds(turns.samples))
                    for outcome in sorted(chosen, key=lambda outcome: outcome.contestant.worlds)
                    for turns in outcome.turns
                    if turns.course.name == course
                ]
                panel.plot(*zip(*points, strict=True), style, color=colour, marker=marker, markersize=4, linewidth=1.3)
    panel.axhline(mujoco, color="black", linestyle=":", linewidth=1)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("worlds")
    panel.set_ylabel("µs per world and 0.01 s")
    keys = [Line2D([], [], color=colour, label=law) for law, colour in zip(laws, COLOURS, strict=False)]
    keys += [Line2D([], [], color="grey", linestyle=style, label=name) for name, style in STYLES.items()]
    keys += [
        Line2D([], [], color="grey", linestyle="none", marker=marker, markersize=4, label=f"threads: {count}")
        for count, marker in zip(threads, MARKERS, strict=False)
    ]
    keys += [Line2D([], [], color="black", linestyle=":", label="MuJoCo mj_step, 1 thread")]
    panel.legend(handles=keys, frameon=False, fontsize=7, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _side_by_side(panel: Axes, ours: list[Outcome], others: list[Outcome], worlds: int) -> None:
    """A bar a course, ours at the peers' number of worlds."""
    beside = [outcome for outcome in ours if outcome.contestant.worlds == worlds]
    bars = [
        (outcome, turns) for outcome in [*others, *beside] for turns in outcome.turns if "bare" not in turns.course.name
    ]
    names = []
    for at, (outcome, turns) in enumerate(bars):
        values = [1e6 * sample.seconds for sample in turns.samples]
        middle = microseconds(turns.samples)
        colour = COLOURS[1] if outcome in beside else GREYS[1]
        spread = [[middle - min(values)], [max(values) - middle]]
        panel.barh(at, middle, color=colour, xerr=spread, error_kw={"linewidth": 1, "capsize": 2})
        threads = outcome.contestant.threads
        names.append(f"{outcome.contestant.label}, {turns.course.name}" + (f", {threads} thr." if threads else ""))
    panel.set_yticks(range(len(names)), names, fontsize=7)
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.set_xlabel("µs per world and 0.01 s: median, least and most")
    panel.grid(axis="x", alpha=0.3)
    panel.grid(axis="y", visible=False)
