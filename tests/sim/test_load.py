"""The loader against MuJoCo itself: frames, inertias, contacts, actuators."""

import mujoco
import numpy as np
import pytest

from diffenvs.sim.load import load_model
from diffenvs.sim.model import Joint, Model

CHAIN = """
<mujoco model="chain">
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body name="post" pos="0.1 -0.2 0.3" euler="20 -30 50">
      <geom type="box" size="0.1 0.1 0.1"/>
      <body name="arm" pos="0.2 0.1 0.4" euler="10 70 -25">
        <joint name="slide" type="slide" axis="1 2 -1" pos="0.3 0 0.1" ref="0.05" damping="0.5"/>
        <joint name="yaw" type="hinge" axis="0.3 0 1" pos="-0.05 0.02 0.07" range="-60 80" armature="0.02"/>
        <joint name="pitch" type="hinge" axis="0 1 0.2" pos="0.04 -0.03 0.1" ref="30" stiffness="3"
               springref="12"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.1 0.2 0.3"/>
        <body name="plate" pos="0.1 0.05 0.2" euler="33 -12 70">
          <geom type="box" size="0.1 0.02 0.05"/>
          <body name="bracket" pos="0 0.1 0" euler="-70 5 12">
            <geom type="ellipsoid" size="0.02 0.03 0.08" pos="0.01 0 0.02" euler="11 22 33"/>
            <geom name="knob" type="sphere" contype="1" size="0.04" pos="0 0.02 0.1" friction="0.6"/>
            <body name="hand" pos="0.05 0 0.15" euler="0 45 10">
              <joint name="wrist" type="hinge" axis="1 0 0" pos="0 0.03 -0.02"/>
              <geom type="box" size="0.02 0.03 0.01" pos="0.05 0 0"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

BALLS = """
<mujoco model="balls">
  <option gravity="0 1 -3"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="top" pos="0 0 2" euler="40 10 0">
      <joint name="shoulder" type="ball" pos="0.02 0.05 0.3" damping="0.1"/>
      <geom type="box" size="0.05 0.1 0.2" pos="0 0 -0.1"/>
      <body name="low" pos="0 0.1 -0.5" euler="0 30 90">
        <joint name="push" type="slide" axis="0 0 1"/>
        <joint name="ball" type="ball" pos="0.1 0 0.05"/>
        <geom type="cylinder" size="0.04 0.2"/>
        <geom type="sphere" size="0.05" pos="0 0 -0.2" friction="0.6" contype="1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

FREE = """
<mujoco model="free">
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="cart" pos="1 2 3" euler="30 40 50">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.05" pos="0.1 0 0"/>
      <body name="cargo" pos="0 0 0.2" euler="0 0 45"><geom type="box" size="0.1 0.02 0.06"/></body>
      <body name="wheel" pos="0.2 0.15 -0.05" euler="90 0 0">
        <joint name="axle" axis="0 0 1"/>
        <geom type="cylinder" size="0.06 0.02"/>
      </body>
    </body>
    <body name="ball" pos="0 -1 1">
      <freejoint name="second"/>
      <geom name="bounce" type="sphere" conaffinity="1" size="0.1" friction="0.3" pos="0 0.01 0"/>
    </body>
  </worldbody>
</mujoco>
"""

TRICKY = {"chain": CHAIN, "balls": BALLS, "free": FREE}


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, a, b)
    return out


def matrix(q: np.ndarray) -> np.ndarray:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, q)
    return out.reshape(3, 3)


def link_frames(model: Model, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """World positions and rotation matrices of the links, from nothing but the arrays of a Model."""
    positions, quaternions = np.zeros((model.nlink, 3)), np.zeros((model.nlink, 4))
    for i in range(model.nlink):
        parent, start = model.link_parent[i], model.link_qpos[i]
        position, quaternion = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        if parent >= 0:
            position, quaternion = positions[parent], quaternions[parent]
        position = position + matrix(quaternion) @ model.link_pos[i]
        quaternion = product(quaternion, model.link_quat[i])
        match Joint(model.link_joint[i]):
            case Joint.FREE:
                position, quaternion = qpos[start : start + 3], qpos[start + 3 : start + 7]
            case Joint.BALL:
                quaternion = product(quaternion, qpos[start : start + 4])
            case Joint.SLIDE:
                travel = qpos[start] - model.qpos0[start]
                position = position + matrix(quaternion) @ model.link_axis[i] * travel
            case Joint.HINGE:
                half = 0.5 * (qpos[start] - model.qpos0[start])
                turn = np.concatenate([[np.cos(half)], np.sin(half) * model.link_axis[i]])
                quaternion = product(quaternion, turn)
        positions[i], quaternions[i] = position, quaternion
    return positions, np.stack([matrix(q) for q in quaternions])


def inertia_matrix(six: np.ndarray) -> np.ndarray:
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def random_qpos(m: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    """Far from qpos0 in every joint, with unit quaternions."""
    qpos = m.qpos0.copy()
    mujoco.mj_integratePos(m, qpos, rng.normal(size=m.nv), 1.5)
    return qpos


def mass_matrix_by_energy(model: Model, m: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Sum over links of J^T I J, Jacobians by MuJoCo at the link's body, inertias from the Model."""
    data = mujoco.MjData(m)
    data.qpos[:] = qpos
    mujoco.mj_forward(m, data)
    positions, rotations = link_frames(model, qpos)
    total = np.diag(model.dof_armature)
    for i in np.flatnonzero(model.link_mass):
        com = positions[i] + rotations[i] @ model.link_com[i]
        linear, angular = np.zeros((3, m.nv)), np.zeros((3, m.nv))
        mujoco.mj_jac(m, data, linear, angular, com, model.link_body[i])
        tensor = rotations[i] @ inertia_matrix(model.link_inertia[i]) @ rotations[i].T
        total = total + model.link_mass[i] * linear.T @ linear + angular.T @ tensor @ angular
    return total


@pytest.fixture(params=TRICKY)
def tricky(request: pytest.FixtureRequest) -> tuple[Model, mujoco.MjModel]:
    return load_model(TRICKY[request.param]), mujoco.MjModel.from_xml_string(TRICKY[request.param])


def test_frames_are_those_of_mujoco(tricky):
    model, m = tricky
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    last = {body: link for link, body in enumerate(model.link_body)}
    for _ in range(10):
        data.qpos[:] = random_qpos(m, rng)
        mujoco.mj_kinematics(m, data)
        positions, rotations = link_frames(model, data.qpos)
        turning = np.isin(m.jnt_type, [Joint.BALL, Joint.HINGE])
        np.testing.assert_allclose(positions[turning], data.xanchor[turning], atol=1e-12)
        for body, link in last.items():
            np.testing.assert_allclose(rotations[link], data.xmat[body].reshape(3, 3), atol=1e-12)
            anchor = np.zeros(3) if m.jnt_type[link] == Joint.FREE else m.jnt_pos[link]
            origin = positions[link] - rotations[link] @ anchor
            np.testing.assert_allclose(origin, data.xpos[body], atol=1e-12)


def test_mass_matrix_from_the_inertias_is_that_of_mujoco(tricky):
    model, m = tricky
    data, rng = mujoco.MjData(m), np.random.default_rng(1)
    for _ in range(5):
        data.qpos[:] = random_qpos(m, rng)
        mujoco.mj_forward(m, data)
        expected = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, data, expected)
        np.testing.assert_allclose(mass_matrix_by_energy(model, m, data.qpos), expected, rtol=1e-10, atol=1e-12)


def test_contact_spheres_are_where_mujoco_has_them(tricky):
    model, m = tricky
    data, rng = mujoco.MjData(m), np.random.default_rng(2)
    data.qpos[:] = random_qpos(m, rng)
    mujoco.mj_kinematics(m, data)
    positions, rotations = link_frames(model, data.qpos)
    geoms = np.flatnonzero(m.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE)
    assert model.ncontact == len(geoms) == 1
    link = model.contact_link[0]
    centre = positions[link] + rotations[link] @ model.contact_pos[0]
    np.testing.assert_allclose(centre, data.geom_xpos[geoms[0]], atol=1e-12)
    assert model.contact_radius[0] == m.geom_size[geoms[0], 0]
    assert model.friction == m.geom_friction[geoms[0], 0]


def test_a_body_with_several_joints_is_a_chain_and_a_welded_one_is_lumped():
    model = load_model(CHAIN)
    assert model.link_name == ("arm:slide", "arm:yaw", "arm", "hand")
    assert model.link_parent.tolist() == [-1, 0, 1, 2]
    assert model.link_joint.tolist() == [Joint.SLIDE, Joint.HINGE, Joint.HINGE, Joint.HINGE]
    m = mujoco.MjModel.from_xml_string(CHAIN)
    lumped = sum(m.body(name).mass[0] for name in ("arm", "plate", "bracket"))
    np.testing.assert_allclose(model.link_mass, [0.0, 0.0, lumped, m.body("hand").mass[0]], rtol=1e-14)
    assert model.contact_name == ("knob",)
    assert model.contact_link.tolist() == [2]


def test_properties_of_the_degrees_of_freedom():
    model = load_model(CHAIN)
    assert model.dof_damping.tolist() == [0.5, 0.0, 0.0, 0.0]
    assert model.dof_armature.tolist() == [0.0, 0.02, 0.0, 0.0]
    assert model.dof_stiffness.tolist() == [0.0, 0.0, 3.0, 0.0]
    np.testing.assert_allclose(model.dof_range[1], np.deg2rad([-60.0, 80.0]))
    assert np.isinf(model.dof_range[[0, 2, 3]]).all()
    np.testing.assert_allclose(model.qpos0, [0.05, 0.0, np.deg2rad(30.0), 0.0])
    np.testing.assert_allclose(model.qpos_spring[2], np.deg2rad(12.0))
    assert model.home.tolist() == model.qpos0.tolist()
    assert model.dof_parent.tolist() == [-1, 0, 1, 2]
    assert load_model(BALLS).gravity.tolist() == [0.0, 1.0, -3.0]
    assert load_model(BALLS).dof_link.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_a_model_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        load_model(CHAIN).link_mass[0] = 1.0


ACTUATED = """
<mujoco>
  <worldbody>
    <body><joint name="a" axis="0 1 0" ref="10"/><geom type="box" size="0.1 0.1 0.1"/>
      <body pos="0 0 -1">
        <joint name="b" type="slide" actuatorfrcrange="-4 4"/><geom type="box" size="0.1 0.1 0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>{}</actuator>
  <custom><numeric name="drive_speed" data="7.5"/></custom>
</mujoco>
"""


@pytest.mark.parametrize(
    "actuator",
    [
        '<position joint="a" kp="20" kv="1.5" forcerange="-6 6"/>',
        '<position joint="a" kp="20" kv="1.5" gear="3"/>',
        '<position joint="a" kp="5" gear="-2" forcerange="-1 1"/>',
        '<position joint="b" kp="200"/>',
        '<motor joint="a" gear="100" ctrlrange="-0.3 0.3"/>',
        '<motor joint="b"/>',
        '<velocity joint="a" kv="2"/>',
        '<general joint="a" gainprm="3" biastype="affine" biasprm="0 -5 -0.5"/>',
        '<general joint="a" gaintype="affine" gainprm="3 0 0"/>',
    ],
)
def test_an_actuator_gives_the_force_that_mujoco_gives(actuator):
    xml = ACTUATED.format(actuator)
    model, m = load_model(xml), mujoco.MjModel.from_xml_string(xml)
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    dof = model.actuator_dof[0]
    clipped = 0
    for _ in range(20):
        data.qpos[:], data.qvel[:], data.ctrl[:] = rng.normal(size=2), rng.normal(size=2), 10.0 * rng.normal()
        mujoco.mj_forward(m, data)
        q, qd, u = data.qpos[dof], data.qvel[dof], data.ctrl[0]
        force = model.actuator_gain[0] * u + model.actuator_kp[0] * (u - q) - model.actuator_kd[0] * qd
        limit = model.actuator_limit[0]
        clipped += abs(force) > limit
        np.testing.assert_allclose(np.clip(force, -limit, limit), data.qfrc_actuator[dof], rtol=1e-12, atol=1e-12)
    assert model.dof_speed[dof] == 7.5
    assert model.dof_effort[dof] == limit
    assert (clipped > 0) == np.isfinite(limit)


@pytest.mark.parametrize(
    ("argument", "error", "words"),
    [
        (3, TypeError, "expected a path or MJCF text, got int"),
        ("nowhere.xml", ValueError, "there is no file 'nowhere.xml'"),
        (
            "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
            ValueError,
            "MuJoCo cannot read the MJCF",
        ),
        ("<mujoco", ValueError, "MuJoCo cannot read the MJCF"),
    ],
)
def test_bad_input_is_one_sentence(argument, error, words):
    with pytest.raises(error, match=words) as caught:
        load_model(argument)
    assert "\n" not in str(caught.value)


def test_contacts_are_chosen_by_name():
    assert load_model(FREE, contacts=()).ncontact == 0
    assert load_model(FREE, contacts=["bounce"]).contact_radius.tolist() == [0.1]
    # whether it collides in MuJoCo or not
    assert load_model(FREE, contacts=["geom2", "geom1"]).contact_geom == ("geom2",) * 16 + ("geom1",) * 8


FLOORED = FREE.replace("<worldbody>", '<worldbody><geom name="floor" type="plane" size="0 0 1"/>')


@pytest.mark.parametrize(
    ("contacts", "error", "words"),
    [
        (["foot"], ValueError, r"contacts: 'foot' is not one of the geoms on moving bodies \(geom1, .*, bounce\)"),
        (["floor"], ValueError, r"contacts: 'floor' is not one of the geoms on moving bodies"),
        (["bounce", "bounce"], ValueError, "contacts: 'bounce' is given twice"),
        ("bounce", TypeError, "contacts: expected a sequence of names, got 'bounce'"),
        ([3], TypeError, r"contacts: expected a sequence of names, got \[3\]"),
    ],
)
def test_wrong_contacts_are_refused(contacts, error, words):
    with pytest.raises(error, match=words):
        load_model(FLOORED, contacts=contacts)


def test_contacts_of_different_friction_are_refused():
    xml = FREE.replace(
        '<geom name="bounce"', '<geom name="pad" size="0.1" friction="0.2" contype="1"/><geom name="bounce"'
    )
    with pytest.raises(ValueError, match=r"one coefficient of friction, got 0.2 \(pad\); 0.3 \(bounce\)"):
        load_model(xml)
    assert load_model(xml, contacts=["pad"]).friction == 0.2


def test_limits_are_chosen_by_name():
    xml = CHAIN.replace('name="wrist"', 'name="wrist" range="-10 20"')
    assert load_model(xml).limit_name == ("yaw", "wrist")
    assert load_model(xml).limit_dof.tolist() == [1, 3]
    assert load_model(xml, limits=False).limit_dof.tolist() == []
    assert load_model(xml, limits=["wrist"]).limit_dof.tolist() == [3]
    # the range is a fact about the joint, whether it stops there or not
    assert np.isfinite(load_model(xml, limits=False).dof_range[1]).all()
    assert load_model(BALLS).nlimit == 0


@pytest.mark.parametrize(
    ("limits", "error", "words"),
    [
        (["pitch"], ValueError, r"limits: 'pitch' is not one of the joints with a range \(yaw\)"),
        (["yaw", "yaw"], ValueError, "limits: 'yaw' is given twice"),
        ("yaw", TypeError, "limits: expected a sequence of names, got 'yaw'"),
        (None, TypeError, "limits: expected a sequence of names, got None"),
        (1, TypeError, "limits: expected a sequence of names, got 1"),
    ],
)
def test_wrong_limits_are_refused(limits, error, words):
    with pytest.raises(error, match=words):
        load_model(CHAIN, limits=limits)


def test_disabled_gravity_limits_and_contacts_are_read():
    flags = '<option><flag gravity="disable" limit="disable" contact="disable"/></option><worldbody>'
    model = load_model(CHAIN.replace("<worldbody>", flags))
    assert model.gravity.tolist() == [0.0, 0.0, 0.0]
    assert np.isinf(model.dof_range).all()
    assert model.nlimit == 0
    assert model.ncontact == 0
