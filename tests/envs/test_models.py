"""The models of the tasks from DiffRL and of the falling mass against MuJoCo: mass matrix, bias, contact points."""

import mujoco
import numpy as np
import pytest

from diffenvs.registry import find, locate
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.load import load_model

TASKS = [f"Diff{name}-v0" for name in ("FallingMass", "Cartpole", "Hopper", "Cheetah", "Ant", "Humanoid")]
END = {"": 0.0, "-z": -1.0, "+z": 1.0}


@pytest.mark.parametrize("env_id", TASKS)
def test_the_model_is_mujocos(env_id):
    """At 20 random states."""
    model = load_model(locate(find(env_id).task.asset))
    m = mujoco.MjModel.from_xml_string(model.xml)
    assert model.link_mass.sum() == pytest.approx(m.body_mass.sum(), rel=1e-12)
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    qpos = np.tile(model.home, (20, 1))
    for row in qpos:
        mujoco.mj_integratePos(m, row, rng.normal(size=m.nv), 1.0)
    qvel, control = 3.0 * rng.normal(size=(20, m.nv)), rng.uniform(-1.0, 1.0, (20, m.nu))
    ours = equations_of_motion(model, qpos, qvel, control)
    for i in range(20):
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos[i], qvel[i], control[i]
        mujoco.mj_forward(m, data)
        mass_matrix = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, data, mass_matrix)
        np.testing.assert_allclose(ours.mass_matrix[i], mass_matrix, rtol=0, atol=1e-10 * np.abs(mass_matrix).max())
        bias = data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator
        np.testing.assert_allclose(ours.bias[i], bias, rtol=0, atol=1e-10 * np.abs(bias).max())
        for c, name in enumerate(model.contact_name):
            geom = data.geom(name.partition(":")[0])
            along = END[name.partition(":")[2]] * m.geom_size[geom.id][1]
            centre = geom.xpos + along * geom.xmat.reshape(3, 3)[:, 2]
            assert ours.depth[i, c] == pytest.approx(m.geom_size[geom.id][0] - centre[2], abs=1e-10)
