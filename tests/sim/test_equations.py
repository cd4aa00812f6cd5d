"""Mass matrix, bias forces and contact Jacobians against MuJoCo, to rounding."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import diffenvs
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.load import load_model

ASSETS = Path(diffenvs.__file__).parent / "assets"

TREES = {
    "planar chain with several joints a body": """
      <body pos="0 0 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
        <joint type="hinge" axis="0 1 0" pos="0 0 .1" damping="2" stiffness="3" springref=".2"/>
        <geom type="capsule" size=".05 .2" contype="0" conaffinity="0"/>
        <body pos="0 0 -.4" euler="10 20 30"><joint type="hinge" axis="1 1 0" pos=".02 0 .2" armature=".3"/>
          <geom type="box" size=".1 .05 .2" pos=".03 0 0" euler="30 0 0" contype="0" conaffinity="0"/>
          <geom name="s1" type="sphere" size=".06" pos="0 0 -.3"/></body></body>""",
    "ball, weld and floating root": """
      <body pos="0 0 2" euler="0 30 0"><freejoint/><geom type="box" size=".2 .1 .05" contype="0" conaffinity="0"/>
        <body pos=".3 0 0" euler="0 0 45"><joint type="ball" pos="-.1 0 0" damping=".5"/>
          <geom type="capsule" size=".04 .2" euler="0 80 0" contype="0" conaffinity="0"/>
          <body pos="0 .1 0" euler="0 0 20"><geom type="box" size=".05 .1 .02" contype="0" conaffinity="0"/>
            <body pos="0 0 -.2"><joint type="hinge" axis="0 0 1" ref=".4"/>
              <geom name="s2" type="sphere" size=".07" pos=".05 0 0"/></body></body></body></body>""",
    "two roots": """
      <body pos="0 0 1"><freejoint/><geom name="s3" type="sphere" size=".1"/></body>
      <body pos="3 0 1"><freejoint/><geom type="box" size=".1 .2 .3" contype="0" conaffinity="0"/>
        <body pos="0 0 .4"><joint type="slide" axis="0 1 1"/><geom name="s4" type="sphere" size=".1"/></body></body>""",
}


def model_of(name):
    if name in TREES:
        return load_model(f"<mujoco model='tree'><worldbody>{TREES[name]}</worldbody></mujoco>")
    return load_model(ASSETS / f"{name}.xml")


def random_states(reference, n, seed):
    rng = np.random.default_rng(seed)
    qpos = np.empty((n, reference.nq))
    for row in qpos:
        row[:] = reference.qpos0
        # mj_integratePos keeps quaternions on their sphere
        mujoco.mj_integratePos(reference, row, rng.normal(size=reference.nv), 1.0)
    return qpos, 3.0 * rng.normal(size=(n, reference.nv)), rng.uniform(-1, 1, (n, reference.nu))


@pytest.mark.parametrize("name", ["quadruped", "anymal_d", *TREES])
def test_mass_matrix_bias_and_jacobian_are_mujocos(name):
    model = model_of(name)
    reference = mujoco.MjModel.from_xml_string(model.xml)
    data = mujoco.MjData(reference)
    qpos, qvel, control = random_states(reference, 100, seed=1)
    ours = equations_of_motion(model, qpos, qvel, control)
    for i in range(len(qpos)):
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos[i], qvel[i], control[i]
        mujoco.mj_forward(reference, data)
        mass_matrix = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(reference, data, mass_matrix)
        bias = data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator
        scale = np.abs(mass_matrix).max()
        np.testing.assert_allclose(ours.mass_matrix[i], mass_matrix, rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(ours.bias[i], bias, rtol=0, atol=1e-10 * np.abs(bias).max())
        for c, contact in enumerate(model.contact_name):
            geom = data.geom(contact)
            point = geom.xpos - np.array([0.0, 0.0, model.contact_radius[c]])
            jacobian = np.zeros((3, model.nv))
            mujoco.mj_jac(reference, data, jacobian, None, point, int(reference.geom_bodyid[geom.id]))
            np.testing.assert_allclose(ours.jacobian[i, c], jacobian, rtol=0, atol=1e-10 * (1 + np.abs(jacobian).max()))
            np.testing.assert_allclose(ours.depth[i, c], -point[2], rtol=0, atol=1e-10 * (1 + abs(point[2])))


def test_the_equations_outlive_the_simulation_that_gave_them():
    model = model_of("quadruped")
    qpos, qvel, control = random_states(mujoco.MjModel.from_xml_string(model.xml), 2, seed=1)
    for name, array in vars(equations_of_motion(model, qpos, qvel, control)).items():
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert array.flags.owndata, f"{name} is a view of memory that belongs to the simulation"


def test_the_comparison_can_fail():
    model = model_of("quadruped")
    reference = mujoco.MjModel.from_xml_string(model.xml)
    qpos, qvel, control = random_states(reference, 2, seed=1)
    before = equations_of_motion(model, qpos, qvel, control)
    after = equations_of_motion(model, qpos + 1e-6, qvel, control)
    assert np.abs(before.mass_matrix - after.mass_matrix).max() > 1e-9
