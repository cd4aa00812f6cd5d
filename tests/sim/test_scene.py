"""The MuJoCo model of a robot on its floor."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from diffenvs.sim.load import load_model
from diffenvs.sim.scene import mujoco_model

ASSETS = Path(__file__).parents[2] / "diffenvs" / "assets"
BALL = """
<mujoco>
  <option timestep="0.1"/>
  <worldbody>
    <geom name="its_own_floor" type="plane" size="1 1 1"/>
    <body pos="0 0 0.1">
      <freejoint/>
      <geom size="0.1" mass="2" friction="0.3"/>
      <geom type="box" size="0.2 0.2 0.2" mass="0" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
</mujoco>
"""


def colliding(m: mujoco.MjModel) -> list[int]:
    return [g for g in range(m.ngeom) if m.geom_contype[g] or m.geom_conaffinity[g]]


def test_the_contacts_of_the_model_and_the_floor_collide_and_nothing_else():
    m = mujoco_model(load_model(BALL), timestep=0.002)
    assert sorted(m.geom_type[colliding(m)]) == [mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_SPHERE]
    assert m.geom("ground").id in colliding(m)
    assert m.opt.timestep == 0.002
    assert m.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC


def test_friction_is_that_of_the_model_unless_given():
    model = load_model(BALL)
    for given, expected in ((None, 0.3), (0.7, 0.7), (0.0, 0.0)):
        m = mujoco_model(model, timestep=0.002, friction=given)
        assert m.geom_friction[colliding(m), 0].tolist() == [expected, expected]


def test_without_ground_there_is_no_floor():
    m = mujoco_model(load_model(BALL), timestep=0.002, ground=False)
    assert not np.any(m.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)


def test_contacts_that_were_not_chosen_do_not_collide():
    m = mujoco_model(load_model(BALL, contacts=()), timestep=0.002)
    assert [m.geom(g).name for g in colliding(m)] == ["ground"]


def test_a_geom_of_several_contact_points_collides_as_one():
    model = load_model(BALL.replace('mass="0" contype="0"', 'mass="0" friction="0.3" contype="1"'))
    assert model.ncontact == 9
    m = mujoco_model(model, timestep=0.002)
    kinds = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_BOX
    assert sorted(m.geom_type[colliding(m)]) == [*kinds]


def test_a_dropped_ball_rests_on_the_floor():
    m = mujoco_model(load_model(BALL), timestep=0.002)
    data = mujoco.MjData(m)
    mujoco.mj_step(m, data, nstep=1000)
    assert abs(data.qpos[2] - 0.1) < 1e-3
    np.testing.assert_allclose(data.qfrc_constraint[2], 2.0 * 9.81, rtol=1e-3)


def test_a_standing_robot_does_not_creep():
    model = load_model(ASSETS / "anymal_d.xml")
    m = mujoco_model(model, timestep=0.005)
    data = mujoco.MjData(m)
    data.qpos[:], data.ctrl[:] = model.home, model.home[7:]
    mujoco.mj_step(m, data, nstep=1000)
    height = data.qpos[2]
    mujoco.mj_step(m, data, nstep=1000)
    assert abs(data.qpos[2] - height) < 3e-3
    assert model.home[2] - height < 0.05
    np.testing.assert_allclose(data.qfrc_constraint[2], model.link_mass.sum() * 9.81, rtol=1e-2)


@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_a_robot_keeps_its_mass_matrix_and_its_actuators(robot):
    model = load_model(ASSETS / f"{robot}.xml")
    ours, plain = mujoco_model(model, timestep=0.01), mujoco.MjModel.from_xml_string(model.xml)
    assert (ours.nq, ours.nv, ours.nu) == (model.nq, model.nv, model.nu)
    matrices = []
    for m in (ours, plain):
        data = mujoco.MjData(m)
        data.qpos[:] = model.home
        mujoco.mj_forward(m, data)
        matrices.append(np.zeros((m.nv, m.nv)))
        mujoco.mj_fullM(m, data, matrices[-1])
    np.testing.assert_array_equal(*matrices)
    np.testing.assert_array_equal(ours.actuator_gainprm, plain.actuator_gainprm)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timestep": 0.0}, "timestep must be positive, got 0.0"),
        ({"timestep": float("nan")}, "timestep must be positive, got nan"),
        ({"timestep": 0.01, "friction": -1.0}, "friction must not be negative, got -1.0"),
    ],
)
def test_bad_numbers_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        mujoco_model(load_model(BALL), **options)
