"""Who may be timed: robots that stand on four feet; and every contact law, and MuJoCo, are among them."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from diffenvs.sim.contact import CONTACT
from leaderboard.benchmark.finite_differences import Differences
from leaderboard.benchmark.mujoco_c import Rolled, Stepped
from leaderboard.benchmark.ours import Ours
from leaderboard.benchmark.scene import quadruped
from leaderboard.benchmark.standing import Invalid, faults, require_standing
from tests.leaderboard.benchmark.made_up import STANDING


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"load": 0.8}, "the feet carry 0.80 m g, expected 1 within 0.05"),
        ({"load": float("nan")}, "the feet carry non-finite m g"),
        ({"contacts": (3, 4)}, "3 to 4 feet touch in the timed window, expected 4"),
        ({"contacts": (4, 8)}, "4 to 8 feet touch"),
        ({"height": 0.5}, "the base sinks to 0.50 of its height"),
        ({"height": float("nan")}, "the base sinks to non-finite"),
        ({"finite": False}, "not finite"),
    ],
)
def test_each_fault_is_named_and_refused(change, said):
    evidence = replace(STANDING, **change)
    assert len(faults(evidence)) == 1
    with pytest.raises(Invalid, match=said):
        require_standing(evidence)


def test_a_standing_robot_has_no_fault():
    assert faults(STANDING) == ()
    assert require_standing(STANDING) is STANDING


@pytest.mark.parametrize(
    "contestant",
    [*(Ours(law, 2, 1) for law in CONTACT), Stepped(2), Rolled(2, 2), Differences()],
    ids=lambda contestant: contestant.label,
)
def test_who_is_timed_stands(contestant):
    scene = quadruped()
    prepared = contestant.prepare(scene)
    assert faults(prepared.evidence) == ()
    for course in prepared.courses:
        course.run()
        assert course.control_steps == contestant.worlds * 32


def test_the_scene_is_refused_where_the_robot_falls():
    # without gravity nobody presses on the ground
    scene = quadruped()
    afloat = replace(scene, model=replace(scene.model, gravity=np.zeros(3)))
    with pytest.raises(Invalid, match="the feet carry"):
        Ours("hard", 1, 1).prepare(afloat)


def test_worlds_are_told_different_things_around_the_home_pose():
    scene = quadruped()
    targets = scene.targets(4, 50)
    assert targets.shape == (4, 50, 12)
    assert np.abs(targets - scene.home_targets).max() <= scene.swing * np.abs(scene.home_targets).max() + 1e-12
    assert not np.allclose(targets[0], targets[1])
    assert scene.weight == pytest.approx(mujoco.mj_getTotalmass(scene.mujoco_model()) * 9.81)
    assert scene.mujoco_model().opt.timestep == scene.timestep == 0.01
