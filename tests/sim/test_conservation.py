"""What Newton conserves: momentum and energy in flight, rotation without friction, and physics far from the origin.

The midpoint step takes its velocity-dependent forces at the velocity that the step begins with. Momentum and energy
of a tumbling robot are therefore kept to the first order of the step, and the tests measure that order and size; a
single body, a translation and a pendulum, which have no such forces, are kept to rounding or to the second order.
"""

import dataclasses

import mujoco
import numpy as np
import pytest
import torch

from diffenvs.sim.contact import CONTACT, Hard
from diffenvs.sim.load import load_model
from tests.sim.points import BALL, run, simulation, tensor
from tests.sim.worlds import ASSETS, simulator, states

ROBOTS = ["quadruped", "anymal_d"]
FLOATING_BOX = """<mujoco><option gravity="0 0 0"/><worldbody><body><freejoint/>
  <geom type="box" size=".3 .1 .05" mass="2" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
PENDULUM = """<mujoco><worldbody><body><joint axis="0 1 0"/>
  <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.5" mass="1" contype="0" conaffinity="0"/></body></worldbody>
  </mujoco>"""


def weightless(robot):
    """A robot that nothing acts upon, with the gains still in its drives."""
    model = load_model(ASSETS / f"{robot}.xml", contacts=(), limits=False)
    return dataclasses.replace(model, gravity=np.zeros(3))


def invariants(m, qpos, qvel):
    """Momentum [N s], angular momentum about the centre of mass [N m s] and energy [J], by MuJoCo."""
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(m, data)
    mujoco.mj_subtreeVel(m, data)
    mass_matrix = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, mass_matrix)
    mujoco.mj_energyPos(m, data)
    energy = 0.5 * qvel @ mass_matrix @ qvel + data.energy[0]
    return m.body_subtreemass[0] * data.subtree_linvel[0].copy(), data.subtree_angmom[0].copy(), energy


def drift(model, m, qpos, qvel, step, time, gains):
    """Relative change of momentum, angular momentum and energy over a flight."""
    sim, parameters = simulation(model, Hard(), 1, step)
    if not gains:
        off = torch.zeros_like(parameters.kp)
        parameters = parameters.replace(kp=off, kd=off)
    control = torch.tensor(model.home[None, 7:] + 0.5) if gains else None
    end = run(sim, parameters, torch.tensor(qpos[None]), torch.tensor(qvel[None]), round(time / step), control)
    before, after = invariants(m, qpos, qvel), invariants(m, *[x[0].numpy() for x in end])
    return np.array([np.linalg.norm(np.subtract(b, a)) / np.linalg.norm(a) for a, b in zip(before, after, strict=True)])


@pytest.mark.parametrize("robot", ROBOTS)
def test_momentum_and_energy_of_a_tumbling_robot(robot):
    """Without weight and drives: all three drift in proportion to the step, by less than 1 % in half a second."""
    model = weightless(robot)
    m = mujoco.MjModel.from_xml_string(model.xml)
    m.opt.gravity[:] = 0.0
    rng = np.random.default_rng(0)
    qpos, qvel = model.home + np.eye(model.nq)[2] * 5.0, rng.normal(size=model.nv)
    drifts = np.stack([drift(model, m, qpos, qvel, step, 0.5, gains=False) for step in (0.01, 0.005, 0.0025)])
    order = np.log2(drifts[-2] / drifts[-1])
    print(f"{robot}: drift at 10 ms of momentum, spin, energy {drifts[0]}, order {order}")
    np.testing.assert_allclose(order, 1.0, atol=0.1)
    assert (drifts[0] < 0.01).all()


@pytest.mark.parametrize("robot", ROBOTS)
def test_drives_are_internal_forces(robot):
    """With its drives at work a weightless robot keeps both momenta to the same order, while its energy changes."""
    model = weightless(robot)
    m = mujoco.MjModel.from_xml_string(model.xml)
    m.opt.gravity[:] = 0.0
    rng = np.random.default_rng(1)
    qpos, qvel = model.home + np.eye(model.nq)[2] * 5.0, rng.normal(size=model.nv)
    drifts = np.stack([drift(model, m, qpos, qvel, step, 0.25, gains=True) for step in (0.005, 0.0025, 0.00125)])
    np.testing.assert_allclose(np.log2(drifts[-2] / drifts[-1])[:2], 1.0, atol=0.25)
    assert (drifts[0, :2] < 0.02).all()
    assert drifts[:, 2].min() > 0.1


def test_a_single_body_keeps_its_momentum_to_rounding():
    """A10: no force, no change of linear momentum; its spin is kept to the first order of the step."""
    model = load_model(FLOATING_BOX)
    m = mujoco.MjModel.from_xml_string(FLOATING_BOX)
    qpos, qvel = np.array([0.0, 0.0, 9.0, 1.0, 0.0, 0.0, 0.0]), np.array([1.0, -2.0, 0.5, 3.0, 0.1, 2.0])
    drifts = np.stack([drift(model, m, qpos, qvel, step, 1.0, gains=False) for step in (0.01, 0.005)])
    assert drifts[:, 0].max() < 1e-14
    np.testing.assert_allclose(np.log2(drifts[0, 1:] / drifts[1, 1:]), 1.0, atol=0.1)


def test_energy_of_a_pendulum():
    """No velocity-dependent force: the step is symplectic, the energy error is of second order and does not grow."""
    model, m = load_model(PENDULUM), mujoco.MjModel.from_xml_string(PENDULUM)
    worst = []
    for step in (0.01, 0.005):
        sim, parameters = simulation(model, Hard(), 1, step)
        q, v = tensor([2.0]), tensor([0.0])
        first = invariants(m, q[0].numpy(), v[0].numpy())[2]
        halves = []
        for _ in range(2):
            errors = []
            for _ in range(round(2.0 / step)):
                q, v = run(sim, parameters, q, v, 1)
                errors.append(abs(invariants(m, q[0].numpy(), v[0].numpy())[2] - first))
            halves.append(max(errors))
        assert halves[1] == pytest.approx(halves[0], rel=0.05)
        worst.append(max(halves))
    assert np.log2(worst[0] / worst[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("law", CONTACT)
def test_a_frictionless_ball_picks_up_no_rotation(law):
    """A10: dropped at an angle on ice, a ball lands, goes on at its speed and turns no more than it did."""
    step = 0.0005 if law == "soft" else 0.01
    sim, parameters = simulation(BALL, CONTACT[law](), 2, step)
    parameters = parameters.replace(friction=torch.zeros(2, dtype=torch.float64))
    half = np.sqrt(0.5)
    qpos = tensor([0.0, 0.0, 0.15, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.15, half, 0.0, half, 0.0])
    qvel = tensor([2.0, -1.0, -1.0, 0.0, 0.0, 0.0], [2.0, -1.0, -1.0, 3.0, 1.0, -2.0]).requires_grad_(True)
    _, after = run(sim, parameters, qpos, qvel, round(0.3 / step))
    # it met the ground: in free fall it would be at -3.9 m/s
    assert after[:, 2].min() > -2.0
    torch.testing.assert_close(after[:, 3:], qvel[:, 3:], rtol=0, atol=1e-12)
    torch.testing.assert_close(after[:, :2], qvel[:, :2], rtol=0, atol=1e-12)
    # and nothing but its own spin has a say in its spin
    (by_qvel,) = torch.autograd.grad(after[:, 3:].sum(), qvel)
    expected = torch.cat([torch.zeros(2, 3), torch.ones(2, 3)], 1).double()
    torch.testing.assert_close(by_qvel, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("place", [0.0, 100.0])
def test_a_push_translates_a_flying_robot(robot, place):
    """A10: d(position after T) / d(initial velocity) = T times the identity, in float32, here and 100 m away."""
    steps, step = 50, 0.01
    model = load_model(ASSETS / f"{robot}.xml", contacts=(), limits=False)
    sim, parameters = simulation(model, Hard(), 1, step, dtype=torch.float32)
    qpos = torch.tensor(model.home[None], dtype=torch.float32)
    qpos[0, :2] += place
    qpos[0, 2] += 20.0
    qvel = torch.full((1, model.nv), 0.5).requires_grad_(True)
    after, _ = run(sim, parameters, qpos, qvel, steps, torch.tensor(model.home[None, 7:], dtype=torch.float32))
    by_qvel = torch.stack([torch.autograd.grad(after[0, k], qvel, retain_graph=True)[0][0, :3] for k in range(3)])
    torch.testing.assert_close(by_qvel, steps * step * torch.eye(3), rtol=0, atol=1e-4)


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ROBOTS)
def test_physics_is_the_same_100_m_away_in_float32(robot, law):
    """A10: poses are about the robot, not about the world's origin, so no digit of a foot or a force is lost."""
    worlds = 8
    sim = simulator(robot, CONTACT[law](), worlds, dtype=torch.float32, threads=1)
    qpos, qvel, control = states(sim.model, worlds, seed=4, dtype=torch.float32)
    qpos[:, :2] = 0.0
    results = []
    for place in (0.0, 100.0):
        start = qpos.clone()
        start[:, :2] += place
        leaf = control.clone().requires_grad_(True)
        motion = sim.simulate(start, qvel, leaf, sim.default_parameters())
        (gradient,) = torch.autograd.grad(motion.qvel.sum(), leaf)
        results.append((motion.qvel.detach(), motion.qpos.detach()[:, 2:], gradient))
    for here, there in zip(*results, strict=True):
        assert torch.equal(here, there)
