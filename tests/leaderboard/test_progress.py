"""What a person sees: lines a stage without a terminal, one moving line on one."""

import io
import time
from pathlib import Path

import pytest

from leaderboard.progress import Progress, duration
from leaderboard.schedule import Active, Failure, Job, Step


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def job(done=0.25):
    """A job of one step."""
    return Job("soft-0", (Step("training", tuple, lambda: done, 240.0, Path("soft-0.log"), lambda: "return 900"),))


def active(work):
    """That job on a core."""
    return Active(work, list(work.steps), process=None, output=None, began=time.monotonic(), fraction=0.0)


def test_without_a_terminal_a_line_a_stage():
    out, work = io.StringIO(), job(0.0)
    progress = Progress(3, out)
    progress.found(work)
    progress.started(work, work.steps[0])
    progress.started(job(0.5), job(0.5).steps[0])
    progress.tick([active(work)], [], lambda: pytest.fail("nobody reads the time left"))
    progress.finished(work, work.steps[0], 241.2)
    progress.failed(Failure("soft-0", "training", "exit code 1: no", Path("runs/soft-0.log")))
    assert out.getvalue().splitlines() == [
        "soft-0: finished before",
        "soft-0: training",
        "soft-0: training, resumed at 50 %",
        "soft-0: training done in 4 min 01 s, return 900",
        "soft-0: training failed (exit code 1: no), see runs/soft-0.log",
    ]


def test_on_a_terminal_one_line_is_rewritten(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out, work = Terminal(), job()
    progress = Progress(3, out)
    progress.tick([active(work)], [job()], lambda: 180.0)
    assert out.getvalue() == "\rabout 3 min 00 s left · 1 of 3 runs done · soft-0 25 % return 900"
    progress.tick([active(work)], [job()], lambda: pytest.fail("too soon"))
    progress.finished(work, work.steps[0], 10.0)
    last = out.getvalue().rpartition("\r")[2]
    assert last == "soft-0: training done in 10 s, return 900\n"


def test_a_line_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    out = Terminal()
    Progress(3, out).tick([active(job())] * 3, [], lambda: 1.0)
    assert len(out.getvalue().lstrip("\r")) == 29


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (370, "6 min 10 s"), (7500, "2 h 05 min")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text
