"""The SHAC and PPO tables, with made-up records: every number is where the paper's is."""

import pytest

from leaderboard.protocol import runs
from leaderboard.sample_efficiency import PUBLISHED, SAMPLE_EFFICIENCY, tabulate
from tests.leaderboard.made_up import made_up, rows


def record(agent, seed=0, first=None, **changes):
    """A training of that agent; first: return -> (samples, seconds) at which it showed first."""
    of_one, count = {"shac": (2048, 400), "ppo": (49152, 1000)}[agent]
    reached = {
        target: {"iteration": 1, "samples": samples, "seconds": seconds}
        for target, (samples, seconds) in (first or {}).items()
    }
    changes = {"iterations": count, "samples": count * of_one, "reached": reached} | changes
    return made_up(agent, seed, "smoothed", **changes)


SHAC = {"1000": (0.1e6, 8.0), "1500": (0.4e6, 32.0), "1800": (0.5e6, 40.0), "1900": (0.6e6, 48.0)}
PPO = {"1000": (4.0e6, 80.0), "1500": (6.0e6, 120.0), "1800": (20.0e6, 400.0)}


def test_samples_and_seconds_stand_beside_the_paper():
    first = tabulate([record("shac", first=SHAC), record("ppo", first=PPO)])[0]
    table = {(row["return"], row["agent"]): row for row in rows(first)}
    assert list(table) == [(str(r), agent) for r in (1000, 1500, 1800, 1900) for agent in ("shac", "ppo")]
    assert table["1800", "shac"] == {
        "return": "1800",
        "agent": "shac",
        "samples": "0.5 M",
        "paper: samples": "0.82 M",
        "seconds on one core": "40 s",
    }
    assert (table["1000", "ppo"]["samples"], table["1000", "ppo"]["paper: samples"]) == ("4 M", "5 M")
    assert (table["1900", "ppo"]["samples"], table["1900", "ppo"]["paper: samples"]) == ("never", "-")
    # 20 M / 0.5 M and 400 s / 40 s; the paper's 19.5 M / 0.82 M
    assert first.notes[1] == (
        "To 1800 PPO takes 40 times the samples of SHAC (paper: 23.8 times) and 10 times the seconds."
    )
    assert len(first.notes) == 2


def test_seeds_give_medians_and_how_many_got_there():
    slow = SHAC | {"1500": (0.8e6, 64.0), "1800": (0.9e6, 72.0)}
    records = [record("shac", 0, SHAC), record("shac", 1, slow), record("shac", 2, {"1000": (0.1e6, 8.0)})]
    first = tabulate([*records, record("ppo", 0, PPO)])[0]
    table = {(row["return"], row["agent"]): row for row in rows(first)}
    # 0.5 M and 0.9 M
    assert table["1800", "shac"]["samples"] == "0.7 M (2 of 3)"
    assert table["1800", "shac"]["seconds on one core"] == "56 s (2 of 3)"
    assert "seeds 0, 1, 2 (shac) and 0 (ppo)" in first.notes[0]
    # 1000 is the highest return that every seed reached
    assert first.notes[1].startswith("To 1000 PPO takes 40 times")


def test_one_agent_alone_is_not_compared():
    assert len(tabulate([record("ppo", first=PPO)])[0].notes) == 1
    assert len(tabulate([record("shac"), record("ppo")])[0].notes) == 1


def test_what_an_iteration_costs():
    parts = {"iteration": 1.25, "rollout": 0.4}
    ppo = record("ppo", seconds_per_iteration=parts, wall_seconds=1250.0)
    table = {row["agent"]: row for row in rows(tabulate([record("shac"), ppo])[1])}
    assert table["ppo"] == {
        "agent": "ppo",
        "iterations": "1000",
        "samples per iteration": "49152",
        "paper": "49152",
        "seconds per iteration": "1.250 s",
        "paper: GPU": "0.183 s",
        "samples": "49.2 M",
        "training": "1250 s",
    }
    assert (table["shac"]["samples per iteration"], table["shac"]["paper: GPU"]) == ("2048", "0.330 s")


def test_how_they_walk_at_the_end():
    last = tabulate([record("shac", seed) for seed in (0, 1)])[2]
    assert rows(last) == [
        {"agent": "shac", "return": "1955 ± 7", "episode s": "9.54 ± 0.03", "speed in m/s": "0.98 ± 0.00"}
        | {"falls": "6 of 200"}
    ]
    assert last.notes[0].startswith("Seeds 0, 1, 100 episodes for each number")


def test_non_finite_worlds_are_told():
    notes = tabulate([record("shac", nonfinite=2), record("ppo", nonfinite=1)])[0].notes
    assert notes[-1] == "Worlds that went non-finite, each restarted: 3."


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_the_figure_is_drawn(tmp_path, seeds):
    columns = made_up("shac", 0, "smoothed").curve
    curve = columns | {"seconds": [0.2 * i for i in columns["iteration"]]}
    records = [record(agent, seed, curve=curve) for seed in seeds for agent in PUBLISHED]
    SAMPLE_EFFICIENCY.draw(records, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_presets_are_the_scales_they_claim():
    def scale(name):
        return {run.name: run.iterations for run in runs(SAMPLE_EFFICIENCY, SAMPLE_EFFICIENCY.preset(name))}

    assert scale("quick") == {"shac-0": 400, "ppo-0": 1000}
    assert scale("paper") == {f"{agent}-{seed}": 1000 for seed in range(5) for agent in ("shac", "ppo")}
    assert not SAMPLE_EFFICIENCY.preset("smoke").kept
    ppo = next(run for run in runs(SAMPLE_EFFICIENCY, SAMPLE_EFFICIENCY.preset("quick")) if run.entry.name == "ppo")
    assert ppo.command.startswith("python -m agents ppo DiffQuadruped-v0 --contact smoothed --seed 0 --iterations 1000")
    # each agent with its own number of worlds
    assert "--num-envs" not in ppo.command


def test_the_papers_numbers():
    """Table 2 and Figure 4 of the paper, typed a second time."""
    assert {name: (row.iteration_seconds, row.iteration_samples) for name, row in PUBLISHED.items()} == {
        "shac": (0.330, 2048),
        "ppo": (0.183, 49152),
    }
    assert [PUBLISHED["shac"].samples[target] / 1e6 for target in (1000, 1500, 1800)] == [0.135, 0.58, 0.82]
    assert [PUBLISHED["ppo"].samples[target] / 1e6 for target in (1000, 1500, 1800)] == [5.0, 5.4, 19.5]
