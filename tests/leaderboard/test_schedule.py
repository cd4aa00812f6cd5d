"""Processes over cores: order, parallelism, what is skipped, what fails, how they stop."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leaderboard.schedule import Active, Cores, Job, Pace, Step, available_cores, finish_time, leashed, stop
from tests.leaderboard.noted import Noted, wait_for

ROOT = Path(__file__).parent.parent.parent


def python(source):
    """A command that runs the source."""
    return ("python", "-c", source)


def touching(folder, job, label, seconds=1.0, body=""):
    """A step that is done when its file is there; its process waits for nothing else."""
    product = folder / f"{job}-{label}"
    return Step(
        label=label,
        command=lambda: python(f"{body}\nopen({str(product)!r}, 'w').close()"),
        done=lambda: float(product.exists()),
        seconds=seconds,
        log=folder / "logs" / f"{job}.log",
    )


def test_longest_first_steps_in_order_and_no_more_processes_than_cores(tmp_path):
    jobs = [
        Job(name, tuple(touching(tmp_path, name, label, seconds) for label in ("train", "test")))
        for name, seconds in (("short", 1.0), ("long", 9.0), ("middle", 4.0))
    ]
    noted = Noted()
    assert Cores(2, tmp_path).run(jobs, noted) == ()
    assert list(dict.fromkeys(noted.of("started"))) == ["long", "middle", "short"]
    assert noted.most == 2
    for job in jobs:
        own = [event for event in noted.events if event[1] == job.name]
        assert own == [(kind, job.name, label) for label in ("train", "test") for kind in ("started", "finished")]
    # the expected time falls to nothing as work is done
    assert noted.left[0] > 0.0
    assert min(noted.left) == 0.0


def test_two_cores_work_at_the_same_time(tmp_path):
    # each waits for the other's file: one core would never end
    def waiting(own, other):
        body = f"import os, time\nopen({str(tmp_path / own)!r}, 'w').close()\n"
        return body + f"while not os.path.exists({str(tmp_path / other)!r}): time.sleep(0.01)"

    jobs = [
        Job(name, (touching(tmp_path, name, "train", body=waiting(f"{name}-up", f"{other}-up")),))
        for name, other in (("a", "b"), ("b", "a"))
    ]
    assert Cores(2, tmp_path).run(jobs, Noted()) == ()


def test_what_is_done_is_not_run_again(tmp_path):
    done = Job("done", (touching(tmp_path, "done", "train"),))
    half = Job("half", (touching(tmp_path, "half", "train"), touching(tmp_path, "half", "test")))
    for product in ("done-train", "half-train"):
        (tmp_path / product).touch()
    noted = Noted()
    assert Cores(1, tmp_path).run([done, half], noted) == ()
    assert noted.events == [("found", "done"), ("started", "half", "test"), ("finished", "half", "test")]


def test_a_failure_stops_its_job_and_no_other(tmp_path):
    bad = Step("train", lambda: python("raise SystemExit('the reason')"), lambda: 0.0, 5.0, tmp_path / "bad.log")
    lazy = Step("train", lambda: python("pass"), lambda: 0.0, 4.0, tmp_path / "lazy.log")
    jobs = [
        Job("bad", (bad, touching(tmp_path, "bad", "test"))),
        Job("lazy", (lazy,)),
        Job("good", (touching(tmp_path, "good", "train"),)),
    ]
    noted = Noted()
    failures = Cores(1, tmp_path).run(jobs, noted)
    assert [(failure.job, failure.reason) for failure in failures] == [
        ("bad", "exit code 1: the reason"),
        ("lazy", "ended without finishing"),
    ]
    assert "the reason" in failures[0].log.read_text()
    assert noted.of("finished") == ["good"]
    assert not (tmp_path / "bad-test").exists()


SLOW = """
import os, signal, sys, time
def save(*_):
    open({saved!r}, 'w').close()
    sys.exit(130)
signal.signal(signal.SIGINT, save)
open({up!r}, 'w').write(str(os.getpid()))
time.sleep(60)
"""


def slow(folder):
    """A step that would take a minute, and saves when it is told to stop."""
    source = SLOW.format(saved=str(folder / "saved"), up=str(folder / "up"))
    return Step("train", lambda: python(source), lambda: 0.0, 60.0, folder / "slow.log")


def alive(pid):
    """Whether the process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_lets_the_children_save(tmp_path):
    class Patient(Noted):
        def tick(self, active, waiting, left):
            if (tmp_path / "up").exists():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cores(1, tmp_path).run([Job("slow", (slow(tmp_path),))], Patient())
    assert (tmp_path / "saved").exists()
    assert not alive((tmp_path / "up").read_text())


def test_a_child_that_will_not_stop_is_ended(tmp_path):
    ready = tmp_path / "ready"
    source = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
    process = subprocess.Popen([sys.executable, "-c", f"{source} open({str(ready)!r}, 'w').close(); time.sleep(60)"])
    wait_for(ready.exists)
    stop([process], patience=0.2)
    assert process.returncode == -signal.SIGKILL


DRIVER = """
import sys
from pathlib import Path
from leaderboard.schedule import Cores, Job
from tests.leaderboard.noted import Noted
from tests.leaderboard.test_schedule import slow
folder = Path(sys.argv[1])
Cores(1, folder).run([Job("slow", (slow(folder),))], Noted())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's death is Linux's")
def test_children_of_a_killed_leaderboard_save_and_end(tmp_path):
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)], cwd=ROOT)
    wait_for(lambda: (tmp_path / "up").exists() and (tmp_path / "up").read_text())
    child = (tmp_path / "up").read_text()
    driver.kill()
    driver.wait()
    wait_for((tmp_path / "saved").exists)
    wait_for(lambda: not alive(child))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's death is Linux's")
def test_a_leash_without_its_holder_starts_nothing():
    program, *_, source = leashed(python("print('started')"))
    command = [program, "-P", str(ROOT / "leaderboard" / "leash.py"), "1", sys.executable, "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "started" not in done.stdout
    assert "the parent ended" in done.stderr


DEAF = """
import signal, subprocess
from leaderboard.schedule import leashed
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does to `command &`
hears = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
subprocess.run(leashed(("python", "-c", hears)), check=True)
"""


def test_a_leashed_command_hears_sigint_though_its_parent_is_deaf():
    done = subprocess.run([sys.executable, "-c", DEAF], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_finish_time():
    assert finish_time([], [], 2) == 0.0
    # one core: everything in a row
    assert finish_time([3.0], [4.0, 5.0], 1) == 12.0
    # two cores: 5 | 3 + 4, then 2 on the first to be free: max(5 + 2, 7)
    assert finish_time([5.0, 3.0], [4.0, 2.0], 2) == 7.0
    # a free core takes the waiting job at once
    assert finish_time([5.0], [4.0], 2) == 5.0


def test_pace_is_measured_over_expected_and_a_resumed_step_counts_from_where_it_was(tmp_path):
    assert Pace().ratio([]) == 1.0
    # 30 s at face value beside 60 s that were expected to be 20 s
    assert Pace(measured=60.0, expected=20.0).ratio([]) == pytest.approx(90.0 / 50.0)
    assert Pace(measured=3e6, expected=1e6).ratio([]) == pytest.approx(3.0, rel=1e-3)
    # 20 s for the fraction .5 to .75 of a step expected to take 40 s: 20 s over 10 s, and the 30 s
    step = Step("train", tuple, lambda: 0.75, 40.0, tmp_path / "log")
    began = time.monotonic() - 20.0
    active = Active(Job("a", (step,)), [step], process=None, output=None, began=began, fraction=0.5)
    assert Pace().ratio([active]) == pytest.approx(50.0 / 40.0, rel=1e-3)


def test_cores_are_those_that_may_be_used():
    assert 1 <= available_cores() <= os.cpu_count()
