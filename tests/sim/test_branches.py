"""The side of every kink, against cases worked out by hand."""

import numpy as np
import pytest

from diffenvs.sim.branches import Branches
from diffenvs.sim.contact import CONTACT, Hard
from diffenvs.sim.load import load_model
from diffenvs.sim.precision import FLOAT64
from diffenvs.sim.program import Program
from diffenvs.sim.tables import parameter_defaults
from tests.sim.bodies import STOPS

# a ball of 1 kg on a free joint, and a flywheel on it that a motor of at most 2 N m turns
BALL = """
<mujoco model="ball">
  <worldbody>
    <body name="ball" pos="0 0 1">
      <freejoint/>
      <geom name="ball" type="sphere" size="0.1" mass="1"/>
      <body name="wheel">
        <joint name="spin" type="hinge" axis="0 0 1"/>
        <geom type="box" size="0.1 0.1 0.1" mass="0.1" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="spin" joint="spin" ctrllimited="false" forcelimited="true" forcerange="-2 2"/></actuator>
</mujoco>
"""
# height [m] of the ball's centre, forward and upward speed [m/s], torque asked for [N m]
CASES = {
    "in the air": (0.5, 0.0, 0.0, 1.0),
    "at rest on the ground": (0.099, 0.0, 0.0, 1.0),
    "sliding": (0.099, 3.0, 0.0, 3.0),
    "pressed down": (0.099, 0.0, -0.1, -3.0),
}


def sides(law) -> dict[str, dict[str, np.ndarray]]:
    """What is read in every case, by kind."""
    model = load_model(BALL)
    program = Program(model, law, worlds=len(CASES), substeps=1, timestep=1e-4, precision=FLOAT64, in_one_part=True)
    for name, value in parameter_defaults(model).items():
        array = getattr(program.inputs, name)
        if array.size:
            array.assign(np.broadcast_to(value, (len(CASES), *np.shape(value))))
    qpos, qvel = np.tile(model.qpos0, (len(CASES), 1)), np.zeros((len(CASES), model.nv))
    for world, (height, forward, upward, _) in enumerate(CASES.values()):
        qpos[world, 2], qvel[world, 0], qvel[world, 2] = height, forward, upward
    program.inputs.qpos.assign(qpos)
    program.inputs.qvel.assign(qvel)
    program.inputs.control.assign(np.array([[torque] for *_, torque in CASES.values()]))
    program.forward()
    branches = Branches(program)
    assert np.allclose(branches.depth()[:, 0], 0.1 - qpos[:, 2], atol=1e-4)
    found = branches.read()
    return {case: {kind: side[world] for kind, side in found.items()} for world, case in enumerate(CASES)}


@pytest.mark.parametrize("law", CONTACT)
def test_contact_and_friction(law):
    found = sides(CONTACT[law]())
    assert [bool(found[case]["slip"].any()) for case in CASES] == [False, False, True, False]
    on_ground = found["at rest on the ground"]["touch"]
    assert on_ground.any()
    assert (found["sliding"]["touch"] == on_ground).all()
    if law != "smoothed":
        # the smoothed law presses from a distance, and has no kink where the foot touches
        assert not found["in the air"]["touch"].any()


def test_the_damper_of_a_law_of_force_lets_go():
    found = sides(CONTACT["soft"]())
    assert found["pressed down"]["turn"].all()
    assert not found["at rest on the ground"]["turn"].any()
    assert not any(case["turn"].any() for case in sides(Hard()).values())


def test_actuators_beyond_their_limits():
    found = sides(Hard())
    assert [case["limit"].tolist() for case in found.values()] == [
        [False, False],
        [False, False],
        [True, False],
        [False, True],
    ]


def test_several_substeps_are_refused():
    program = Program(load_model(BALL), Hard(), worlds=1, substeps=2, timestep=1e-3, precision=FLOAT64)
    with pytest.raises(ValueError, match="takes 2 at once"):
        Branches(program)


@pytest.mark.parametrize("law", CONTACT)
def test_joints_at_their_limits(law):
    """Within the range, beyond its low and its high end; contacts are not slipping for that."""
    model = load_model(STOPS)
    positions = {"within": 0.3, "low": -0.51, "high": 0.71}
    program = Program(model, CONTACT[law](), worlds=3, substeps=1, timestep=1e-4, precision=FLOAT64, in_one_part=True)
    for name, value in parameter_defaults(model).items():
        array = getattr(program.inputs, name)
        if array.size:
            array.assign(np.broadcast_to(value, (3, *np.shape(value))))
    program.inputs.qpos.assign(np.array([[0.0, angle] for angle in positions.values()]))
    # towards the limit
    program.inputs.qvel.assign(np.array([[0.0, 0.1], [0.0, -0.1], [0.0, 0.1]]))
    program.forward()
    branches = Branches(program)
    found = branches.read()
    assert branches.depth().shape == (3, 0)
    assert found["slip"].shape == (3, 0)
    within, low, high = found["touch"]
    # a solver's guess takes the end into account; a force is there or not
    assert (low != high).any() == (law != "soft")
    if law != "smoothed":
        assert not within.any()
        assert low.any()
    assert found["turn"][:, 1].tolist() == [False, law == "soft", law == "soft"]
