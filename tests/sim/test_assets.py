"""The robots against the published numbers, and against third-party descriptions where those are at hand."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from diffenvs.sim.load import load_model
from diffenvs.sim.model import Joint

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "diffenvs" / "assets"
THIRD_PARTY = ROOT.parent / "shared" / "models"
ROBOTS = ["quadruped", "anymal_d"]
LEGS = ["LF", "RF", "LH", "RH"]


def compiled(robot: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(ASSETS / f"{robot}.xml"))


def third_party(path: str) -> str:
    file = THIRD_PARTY / path
    if not file.is_file():
        pytest.skip(f"the third-party robot descriptions are not beside this checkout ({file.name})")
    return file.read_text()


def mass_matrix(m: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix without armature, and bias force."""
    m.dof_armature[:] = 0.0
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(m, data)
    dense = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, dense)
    return dense, data.qfrc_bias.copy()


def assert_same_dynamics(ours: mujoco.MjModel, other: mujoco.MjModel, tolerance: float) -> None:
    assert (ours.nq, ours.nv) == (other.nq, other.nv)
    names = [[m.joint(j).name for j in range(1, m.njnt)] for m in (ours, other)]
    assert names[0] == names[1]
    rng = np.random.default_rng(0)
    for _ in range(20):
        qpos, qvel = ours.qpos0.copy(), rng.normal(size=ours.nv)
        mujoco.mj_integratePos(ours, qpos, rng.normal(size=ours.nv), 1.0)
        for mine, theirs in zip(mass_matrix(ours, qpos, qvel), mass_matrix(other, qpos, qvel), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0.0, atol=tolerance * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("robot", "total", "base"),
    [("quadruped", 6.222 + 12 * 2.04, 6.222), ("anymal_d", 57.02787, 26.57885 + 3.18886 + 2.084)],
)
def test_masses(robot, total, base):
    model = load_model(ASSETS / f"{robot}.xml")
    np.testing.assert_allclose(model.link_mass.sum(), total, rtol=1e-9)
    np.testing.assert_allclose(model.link_mass[0], base, rtol=1e-9)
    np.testing.assert_allclose(model.link_mass.sum(), compiled(robot).body_mass.sum(), rtol=1e-12)


@pytest.mark.parametrize("robot", ROBOTS)
def test_twelve_drives_in_the_order_of_the_joints(robot):
    model = load_model(ASSETS / f"{robot}.xml")
    assert model.actuator_name == tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE"))
    assert model.actuator_dof.tolist() == list(range(6, 18))
    assert model.link_joint.tolist() == [Joint.FREE] + [Joint.HINGE] * 12
    assert model.link_parent.tolist() == [-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11]
    assert (model.actuator_gain == 0.0).all()


@pytest.mark.parametrize(
    ("robot", "kp", "kd", "limit", "armature", "speed", "timestep"),
    [("quadruped", 20.0, 1.0, 20.0, 0.01, 20.0, 0.01), ("anymal_d", 85.0, 0.6, 80.0, 0.1, 8.5, 0.005)],
)
def test_gains_and_limits_of_the_tasks(robot, kp, kd, limit, armature, speed, timestep):
    """Schwarke et al. 2025, Tables 3, 6, 9, sections 4.1 and 4.3; the quadruped's armature is our choice."""
    model = load_model(ASSETS / f"{robot}.xml")
    assert set(model.actuator_kp) == {kp}
    assert set(model.actuator_kd) == {kd}
    assert set(model.actuator_limit) == set(model.dof_effort[6:]) == {limit}
    assert model.dof_armature.tolist() == [0.0] * 6 + [armature] * 12
    assert set(model.dof_speed[6:]) == {speed}
    assert model.friction == 0.8
    assert compiled(robot).opt.timestep == timestep


@pytest.mark.parametrize(
    ("robot", "joints", "height", "radius"),
    [
        ("quadruped", [0.2, 0.1, -0.6, -0.2, -0.1, 0.6, -0.2, 0.1, -0.6, 0.2, -0.1, 0.6], 0.4689, 0.02),
        ("anymal_d", [0, 0.4, -0.8, 0, 0.4, -0.8, 0, -0.4, 0.8, 0, -0.4, 0.8], 0.5885, 0.031455),
    ],
)
def test_at_home_the_four_feet_just_touch_the_floor(robot, joints, height, radius):
    model, m = load_model(ASSETS / f"{robot}.xml"), compiled(robot)
    np.testing.assert_allclose(model.home, [0, 0, model.home[2], 1, 0, 0, 0, *joints])
    np.testing.assert_allclose(m.key_ctrl[0], joints)
    assert abs(model.home[2] - height) < 1e-4
    assert model.contact_name == tuple(f"{leg}_foot" for leg in LEGS)
    assert model.contact_link.tolist() == [3, 6, 9, 12]
    assert set(model.contact_radius) == {radius}
    data = mujoco.MjData(m)
    data.qpos[:] = model.home
    mujoco.mj_kinematics(m, data)
    feet = np.stack([data.geom(name).xpos for name in model.contact_name])
    np.testing.assert_allclose(feet[:, 2] - radius, 0.0, atol=1e-8)
    # A stance that carries: one foot in each quarter, left and right alike.
    np.testing.assert_allclose(feet[:, 0] * [1, 1, -1, -1], feet[0, 0], atol=1e-9)
    np.testing.assert_allclose(feet[:, 1] * [1, -1, 1, -1], feet[0, 1], atol=1e-9)
    assert feet[0, 0] > 0.2
    assert feet[0, 1] > 0.2


def test_joint_ranges_of_anymal():
    model = load_model(ASSETS / "anymal_d.xml")
    outward, inward, turns = 0.785398, 0.610865, 9.42478
    left, right = (
        [[-outward, inward], [-turns, turns], [-turns, turns]],
        [[-inward, outward], [-turns, turns], [-turns, turns]],
    )
    np.testing.assert_allclose(model.dof_range[6:], [*left, *right, *left, *right])
    assert np.isinf(load_model(ASSETS / "quadruped.xml").dof_range).all()


@pytest.mark.parametrize("robot", ROBOTS)
def test_what_is_only_seen_has_no_part_in_the_physics(robot):
    m = compiled(robot)
    seen = m.geom_group == 2
    assert seen.sum() > 12
    assert not (m.geom_contype[seen] | m.geom_conaffinity[seen]).any()
    feet = ~seen
    assert feet.sum() == 4
    assert (m.geom_contype[feet] == 0).all()


def test_the_quadruped_is_the_one_of_the_newton_examples():
    # The hind hips are yawed by 3.1415 there, by pi here.
    urdf = third_party("robots/newton_quadruped.urdf").replace('rpy="0 0 3.1415"', f'rpy="0 0 {np.pi!r}"')
    spec = mujoco.MjSpec.from_string(urdf)
    spec.compiler.fusestatic = False
    for geom in spec.geoms:
        geom.mass = 0.0
    spec.body("base").add_freejoint()
    assert_same_dynamics(compiled("quadruped"), spec.compile(), 1e-10)


def test_anymal_is_the_one_of_anybotics_with_its_payload_locked():
    spec = mujoco.MjSpec.from_string(third_party("anymal/anymal_d_simple_description_aligned.xml"))
    for name in ("inspection_payload_mount_to_pan", "inspection_payload_pan_to_tilt"):
        spec.delete(spec.joint(name))
    other = spec.compile()
    ours = compiled("anymal_d")
    assert_same_dynamics(ours, other, 1e-12)
    np.testing.assert_allclose(ours.jnt_range, other.jnt_range)
