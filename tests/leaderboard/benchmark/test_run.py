"""A run end to end at its smallest, and what it says of those who cannot take part."""

import json
import sys
from dataclasses import replace

import pytest

from leaderboard.benchmark import report
from leaderboard.benchmark.iteration import Training
from leaderboard.benchmark.mjx import TRAINED, Mjx
from leaderboard.benchmark.newton import Newton
from leaderboard.benchmark.outcome import enter
from leaderboard.benchmark.peers import PEERS, Peer, choose
from leaderboard.benchmark.presets import PRESETS, find
from leaderboard.benchmark.run import FIGURE, RECORD, TABLE, benchmark, conduct
from leaderboard.benchmark.scene import quadruped
from leaderboard.benchmark.timing import Clocks
from tests.leaderboard.benchmark.made_up import STANDING, MadeUp, Time


def silent(line):
    pass


def outcome_of(contestant):
    time = Time()
    reference = time.course("mujoco", [1.0])
    return enter(contestant, reference, quadruped(), repetitions=1, least_seconds=0.0, clocks=Clocks())


def test_smoke_writes_table_figure_and_record(tmp_path):
    said = []
    run = benchmark("smoke", None, tmp_path / "out", said.append)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted((TABLE, FIGURE, RECORD))
    assert (tmp_path / "out" / FIGURE).read_bytes().startswith(b"\x89PNG")
    record = json.loads((tmp_path / "out" / RECORD).read_text())
    assert {"cpu", "cores", "flags", "load_average"} <= set(record["machine"])
    assert {"mujoco", "jax", "newton", "warp-lang"} <= set(record["versions"])
    assert not run.failed
    assert [result["status"] for result in record["results"]] == ["timed"] * 3
    for result in record["results"]:
        assert result["evidence"]["contacts"] == [4, 4]
        for course in result["courses"]:
            time = course["us_per_control_step"]
            assert 0.0 < time["min"] <= time["median"] <= time["max"]
            assert len(time["all"]) == 2
            assert course["ratio"] > 0.0
    page = (tmp_path / "out" / TABLE).read_text()
    for words in ("| hard | forward + backward |", "mj_step loop", "mujoco.rollout", "| mjx | - | left out |"):
        assert words in page
    assert len(said) == 3


def test_who_cannot_take_part_is_named_and_the_others_go_on(tmp_path):
    entrants = (
        MadeUp(label="absent", absent="jax: No module named 'jax'"),
        MadeUp(label="fallen", evidence=replace(STANDING, height=0.3)),
        MadeUp(label="broken", error=RuntimeError("two\nlines")),
        MadeUp(label="well"),
    )
    peer = Peer("made-up", "", lambda preset: entrants)
    run = conduct(find("smoke"), (peer,), quadruped(), silent, Clocks())
    assert [o.status for o in run.outcomes] == ["timed", "missing", "invalid", "failed", "timed"]
    assert run.failed
    page = report.markdown(run)
    assert "| absent | 1 | missing | jax: No module named 'jax' |" in page
    assert "| fallen | 1 | invalid | with 1 simulation steps in 0.01 s: the base sinks to 0.30" in page
    assert "| broken | 1 | failed | RuntimeError: two lines |" in page
    assert all(outcome.record()["courses"] for outcome in run.outcomes if outcome.status == "timed")


@pytest.mark.parametrize(
    ("contestant", "package"),
    [(Mjx(1, TRAINED), "jax"), (Newton("SolverFeatherstone", 1, (20,)), "newton")],
    ids=["mjx", "newton"],
)
def test_a_simulator_that_is_not_installed_is_missing(monkeypatch, contestant, package):
    monkeypatch.setitem(sys.modules, package, None)  # what Python makes of a package that is not there
    outcome = outcome_of(contestant)
    assert outcome.status == "missing"
    assert package in outcome.reason
    assert outcome.turns == ()


def test_a_course_that_breaks_while_it_is_timed_is_named():
    def breaks():
        raise FloatingPointError("in the third run")

    outcome = outcome_of(MadeUp(run=breaks))
    assert (outcome.status, outcome.reason) == ("failed", "FloatingPointError: in the third run")


def test_an_iteration_is_split():
    preset = replace(
        find("smoke"), repetitions=1, trainings=(Training("DiffQuadruped-v0", horizon=2, threads=1, num_envs=4),)
    )
    run = conduct(preset, choose(["ours"]), quadruped(), silent, Clocks())
    (split,) = run.splits
    seconds = split.medians
    assert set(seconds) == {"rollout", "backward", "critic", "iteration"}
    assert seconds["iteration"] == pytest.approx(seconds["rollout"] + seconds["backward"] + seconds["critic"])
    assert "| DiffQuadruped-v0 | smoothed | 4 x 2 | 1 |" in report.markdown(run)


@pytest.mark.parametrize(
    ("preset", "peers", "out", "said"),
    [
        ("slow", None, "out", "there is no preset 'slow' of the benchmark; there are smoke, quick, full"),
        ("smoke", ("brax",), "out", "there is no peer 'brax' to benchmark; there are ours, mujoco, mjx"),
        ("smoke", None, "file/out", "expected a folder that can be written"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_timed(tmp_path, preset, peers, out, said):
    (tmp_path / "file").write_text("")
    with pytest.raises((ValueError, OSError), match=said):
        benchmark(preset, peers, tmp_path / out, silent)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_presets_speak_of_peers_there_are():
    for preset in PRESETS:
        assert [peer.name for peer in choose(preset.peers)] == list(preset.peers)
    assert [peer.name for peer in choose([peer.name for peer in reversed(PEERS)])] == [peer.name for peer in PEERS]
