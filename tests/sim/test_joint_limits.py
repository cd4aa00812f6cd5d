"""Joints at the ends of their range: pen and paper, and MuJoCo's own distance to them."""

import math

import mujoco
import numpy as np
import pytest
import torch

import diffenvs
from diffenvs.sim.contact import CONTACT, Hard, Smoothed, Soft
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.load import load_model
from diffenvs.sim.mobility import lightest
from diffenvs.sim.precision import FLOAT64
from tests.sim.bodies import EVERYTHING, STOPS
from tests.sim.points import G, run, simulation, tensor

STEP = {"hard": 0.01, "soft": 0.0005, "smoothed": 0.01}
PENDULUM = """<mujoco model="pendulum"><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
  <body pos="0 0 2"><joint name="swing" axis="0 1 0" range="-.5 .7"/>
  <geom type="capsule" fromto="0 0 0 0 0 -1" size=".02" mass="1" contype="0" conaffinity="0"/></body></worldbody>
  </mujoco>"""
# What falls onto, or is turned against, each of the four stops of STOPS: the joint, its position there, the force that
# presses [N | N m], and the inertia that is pressed [kg | kg m^2]. The wheel rides on the lift.
PRESSED = {
    "lift low": (0, -0.2, 0.0, 3.0),
    "lift high": (0, 0.3, 60.0, 3.0),
    "wheel low": (1, -0.5, -0.3, 0.08),
    "wheel high": (1, 0.7, 0.3, 0.08),
}


@pytest.mark.parametrize(("start", "speed", "stop"), [(0.699, 2.0, 0.7), (-0.499, -2.0, -0.5), (0.71, 3.0, 0.7)])
def test_a_pendulum_stops_dead_at_its_limit(start, speed, stop):
    """Hard: v+ = 0 in the step in which mid-step is beyond the limit, whatever v-, and then it swings back freely."""
    h = 0.01
    sim, parameters = simulation(PENDULUM, Hard(), 1, h)
    qpos, qvel = tensor([start]), tensor([speed]).requires_grad_(True)
    after, still = run(sim, parameters, qpos, qvel, 1)
    assert float(still.detach()) == pytest.approx(0.0, abs=1e-12)
    (by_speed,) = torch.autograd.grad(still.sum(), qvel, retain_graph=True)
    assert abs(float(by_speed)) < 1e-12
    # the step of the impact travels h/2 (v- + 0)
    assert float(after.detach()) == pytest.approx(start + 0.5 * h * speed, abs=1e-12)
    (by_speed,) = torch.autograd.grad(after.sum(), qvel)
    assert float(by_speed) == pytest.approx(0.5 * h, abs=1e-12)
    assert float(sim.limit_impulses()) > 0.0
    # gravity takes it away from the limit, which does not hold it back
    _, back = run(sim, parameters, after.detach(), still.detach(), 1)
    assert float(sim.limit_impulses()) == 0.0
    assert float(back) * stop < 0.0
    free, parameters = simulation(load_model(PENDULUM, limits=False), Hard(), 1, h)
    torch.testing.assert_close(back, run(free, parameters, after.detach(), still.detach(), 1)[1], rtol=0, atol=1e-12)


def test_a_joint_that_is_not_limited_turns_past_its_range():
    for limits, beyond in ((True, False), (False, True), (["swing"], False), ([], True)):
        sim, parameters = simulation(load_model(PENDULUM, limits=limits), Hard(), 1, 0.01)
        qpos, _ = run(sim, parameters, tensor([0.5]), tensor([5.0]), 15)
        assert (float(qpos) > 0.8) == beyond


@pytest.mark.parametrize("where", PRESSED)
@pytest.mark.parametrize("law", CONTACT)
def test_static_load_on_a_limit(law, where):
    """Pressed by a force F onto an inertia I: hard holds with the impulse F h; soft sags by F / limit_stiffness;
    smoothed gives way by ln(1 + kappa a h t) / kappa, a = F / I, as it does under a foot."""
    joint, stop, force, inertia = PRESSED[where]
    h = STEP[law]
    value = Soft(limit_damping=100.0) if law == "soft" else CONTACT[law]()
    sim, parameters = simulation(STOPS, value, 1, h)
    qpos, qvel, control = tensor([0.05, 0.1]), tensor([0.0, 0.0]), tensor([3.0 * G, 0.0])
    qpos[0, joint], control[0, joint] = stop, force
    towards = -1.0 if where.endswith("low") else 1.0
    load = towards * force if joint else abs(force - 3.0 * G)
    # touching, whichever way the last digit is rounded
    qpos[0, joint] += 1e-9 * towards
    for second in range(1, 4):
        qpos, qvel = run(sim, parameters, qpos, qvel, round(1.0 / h), control)
        sunk, speed = towards * (float(qpos[0, joint]) - stop), towards * float(qvel[0, joint])
        impulse = float(sim.limit_impulses()[0, joint])
        if law == "hard":
            assert sunk == pytest.approx(1e-9, abs=1e-11)
            assert impulse == pytest.approx(load * h, rel=1e-9)
        elif law == "soft":
            assert sunk == pytest.approx(load / 1000.0, rel=1e-3)
            assert impulse == pytest.approx(load * h, rel=1e-3)
        else:
            rate = 300.0 * load / inertia * h
            assert sunk == pytest.approx(math.log(1.0 + rate * second) / 300.0, rel=0.01)
            assert speed == pytest.approx(load / inertia * h / (1.0 + rate * second), rel=0.03)
            assert impulse == pytest.approx(load * h, rel=0.01)
    # the other joint, in the middle of its range, is left alone
    assert float(qvel[0, 1 - joint]) == pytest.approx(0.0, abs=1e-9)
    assert float(sim.limit_impulses()[0, 1 - joint]) == pytest.approx(0.0, abs=1e-12)


def test_distance_and_direction_are_those_of_mujoco():
    """At random positions beyond and within every range: MuJoCo's constraints are those of the limits that are met."""
    model, m = load_model(EVERYTHING), mujoco.MjModel.from_xml_string(EVERYTHING)
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    seen = set()
    assert model.limit_name == ("shoulder", "reach", "lift")
    for _ in range(50):
        data.qpos[:] = model.qpos0
        data.qpos[2] = 5.0
        data.qpos[7:] = rng.uniform(-0.9, 0.9, 4)
        mujoco.mj_forward(m, data)
        at = equations_of_motion(model, data.qpos[None], np.zeros((1, m.nv)), np.zeros((1, m.nu)))
        rows = np.flatnonzero(data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
        theirs = {int(data.efc_id[row]): (data.efc_pos[row], data.efc_J.reshape(-1, m.nv)[row]) for row in rows}
        for i, dof in enumerate(model.limit_dof):
            joint = int(m.dof_jntid[dof])
            if joint not in theirs:
                assert at.limit_depth[0, i] < 0.0
                continue
            distance, jacobian = theirs[joint]
            assert at.limit_depth[0, i] == pytest.approx(-distance, abs=1e-12)
            np.testing.assert_allclose(at.limit_jacobian[0, i], jacobian, atol=0)
            seen.add((i, jacobian[dof]))
    # both ends of all three
    assert len(seen) == 6


LEG = """<mujoco model="leg"><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
  <body pos="0 0 .5"><joint type="slide" axis="0 0 1"/>
    <geom type="sphere" size=".05" mass="2" contype="0" conaffinity="0"/>
    <body><joint name="knee" axis="0 1 0" range="0 1"/>
      <inertial pos=".3 0 -.4" mass=".5" diaginertia=".001 .001 .001"/>
      <geom type="sphere" pos=".3 0 -.4" size=".1" condim="1"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("law", ["hard", "soft"])
def test_a_limit_and_a_contact_at_once(law):
    """A trunk of 2 kg on a rail stands on a leg that wants to fold, r = 0.3 m to its side; its knee is at the end of
    its range. Without friction the ground carries (m_trunk + m_foot) g and the limit m_trunk g r."""
    h = STEP[law]
    value = Hard(sweeps=300) if law == "hard" else Soft(limit_damping=5.0, damping=100.0, limit_stiffness=2000.0)
    sim, parameters = simulation(LEG, value, 1, h)
    qpos, qvel = run(
        sim, parameters, tensor([-1e-9, -1e-9]), tensor([0.0, 0.0]), round(4.0 / h) if law == "soft" else 1
    )
    contact, limit = float(sim.contact_impulses()[0, 0, 2]), float(sim.limit_impulses()[0, 0])
    assert contact == pytest.approx(2.5 * G * h, rel=1e-6)
    # soft springs give way a little: the foot swings under the trunk by what the knee sags
    assert limit == pytest.approx(2.0 * G * 0.3 * h, rel=0.02 if law == "soft" else 1e-6)
    assert qvel.abs().max() < 1e-6
    if law == "soft":
        assert -float(qpos[0, 1]) == pytest.approx(limit / h / 2000.0, rel=1e-4)


@pytest.mark.parametrize("name", ["limit_stiffness", "limit_damping"])
def test_limits_too_stiff_for_the_step_are_refused(name):
    """Those of STOPS move as lightly as the wheel, 0.08 kg m^2."""
    h, model = 0.0005, load_model(STOPS)
    assert lightest(model, Soft(), FLOAT64)[2] == pytest.approx(0.08, rel=1e-9)
    alone = {"limit_stiffness": 1e-3, "limit_damping": 1e-9}
    bound = 2.0 * 0.08 / h / (h if name == "limit_stiffness" else 1.0)
    simulation(model, Soft(**{**alone, name: 0.99 * bound}), 1, h)
    words = rf"Soft: {name} is .*, expected below .* 0.0005 s for the limited joints of 'stops'.* 0.08 kg m\^2"
    with pytest.raises(ValueError, match=words):
        simulation(model, Soft(**{**alone, name: 1.01 * bound}), 1, h)
    simulation(load_model(STOPS, limits=False), Soft(**{**alone, name: 1.01 * bound}), 1, h)
    assert lightest(load_model(STOPS, limits=False), Soft(), FLOAT64)[2] == math.inf


@pytest.mark.parametrize("name", ["limit_stiffness", "limit_damping"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, "1"])
def test_wrong_constants_are_refused(name, value):
    with pytest.raises(ValueError, match=f"Soft: {name} is"):
        Soft(**{name: value})


@pytest.mark.parametrize("law", CONTACT)
def test_a_model_without_contacts_or_limits(law):
    """A cart that meets no ground, with and without a stop."""
    cart = """<mujoco model="cart"><worldbody><body><joint type="slide" axis="1 0 0" range="-1 1"/>
      <geom type="box" size=".1 .1 .1" mass="1" contype="0" conaffinity="0"/><body><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 .5" size=".02" mass=".1" contype="0" conaffinity="0"/></body></body>
      </worldbody></mujoco>"""
    for limits in (True, False):
        sim, parameters = simulation(load_model(cart, limits=limits), CONTACT[law](), 2, STEP[law])
        start = tensor([0.0, 0.1], [0.9, 3.0]).requires_grad_(True)
        qpos, qvel = run(sim, parameters, start, tensor([5.0, 0.0], [5.0, 0.0]), round(0.5 / STEP[law]))
        assert sim.contact_impulses().shape == (2, 0, 3)
        assert sim.limit_impulses().shape == (2, int(limits))
        assert (qpos[:, 0] < 1.2).all() == limits
        (gradient,) = torch.autograd.grad(qpos.sum() + qvel.sum(), start)
        assert bool(torch.isfinite(gradient).all())


def test_the_robots_of_the_paper_have_none():
    for row in ("DiffQuadruped-v0", "DiffAnymal-v0"):
        env = diffenvs.DiffVecEnv(row, 1)
        assert env.model.nlimit == 0
        assert env.model.contact_name == env.model.contact_geom
        env.close()
    assert np.isfinite(env.model.dof_range[6:]).all()


def test_smoothed_limits_have_no_kink():
    """The force on a joint near its limit grows smoothly: the slope of the speed after a step is that of differences on
    either side of the limit."""
    sim, parameters = simulation(PENDULUM, Smoothed(), 9, 0.01)
    start = torch.linspace(0.67, 0.71, 9, dtype=torch.float64)[:, None].requires_grad_(True)
    speed = torch.ones_like(start)
    (slope,) = torch.autograd.grad(run(sim, parameters, start, speed, 1)[1].sum(), start)
    with torch.no_grad():
        above, below = (run(sim, parameters, start + step, speed, 1)[1] for step in (1e-6, -1e-6))
    torch.testing.assert_close(slope, (above - below) / 2e-6, rtol=1e-6, atol=1e-6)
    assert (slope < -1.0).any()
