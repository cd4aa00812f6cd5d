"""Motion without contact converges to MuJoCo's as the step shrinks, and so does its gradient (O7, B8, A17).

The positions of the midpoint step are of second order, but its velocity-dependent forces (Coriolis, damping, gains on
velocity) are taken at the velocity that the step begins with. A pendulum has none of these and converges as h^2; an
arm or a robot converges as h, and the extrapolation 2 x(h/2) - x(h), in which the term of order h cancels, as h^2.
The limit is MuJoCo's RK4 at a step so short that its own error is below 1e-8.
"""

import itertools

import mujoco
import numpy as np
import pytest
import torch

from diffenvs.sim.contact import Hard
from diffenvs.sim.load import load_model
from tests.sim.points import run, simulation
from tests.sim.worlds import ASSETS

LINK = '<geom type="capsule" size=".02" fromto="0 0 0 0 0 -{}" mass="{}" contype="0" conaffinity="0"/>'
PENDULUM = f"""<mujoco><worldbody><body name="arm"><joint axis="0 1 0"/>{LINK.format(0.5, 1.0)}</body></worldbody>
</mujoco>"""
ARM = f"""<mujoco><worldbody><body name="upper"><joint axis="0 1 0"/>{LINK.format(0.5, 1.0)}
  <body name="lower" pos="0 0 -.5"><joint axis="0 1 0"/>{LINK.format(0.4, 0.7)}</body></body></worldbody></mujoco>"""
# A leg that hangs: hip with two axes, knee with a spring and a damper.
LEG = f"""<mujoco><worldbody><body name="thigh"><joint axis="1 0 0"/><joint axis="0 1 0"/>{LINK.format(0.25, 2.0)}
  <body name="shank" pos="0 0 -.25"><joint axis="0 1 0" stiffness="2" springref="30" damping=".01"/>
  {LINK.format(0.25, 0.8)}</body></body></worldbody></mujoco>"""


def reference(xml, qpos, qvel, control, time, step):
    """State (nq + nv,) after ``time`` by MuJoCo's RK4, with neither contacts nor joint limits."""
    m = mujoco.MjModel.from_xml_string(xml)
    m.opt.timestep, m.opt.integrator = step, mujoco.mjtIntegrator.mjINT_RK4
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, control
    for _ in range(round(time / step)):
        mujoco.mj_step(m, data)
    return np.concatenate([data.qpos, data.qvel])


def ours(model, qpos, qvel, control, time, step):
    """State and its Jacobian by the initial state, at one step length."""
    sim, parameters = simulation(model, Hard(), 1, step)
    start = [torch.tensor(x[None]).requires_grad_(True) for x in (qpos, qvel)]
    end = torch.cat(run(sim, parameters, *start, round(time / step), torch.tensor(control[None])), 1)[0]
    rows = [torch.cat(torch.autograd.grad(y, start, retain_graph=True), 1)[0] for y in end]
    return end.detach().numpy(), torch.stack(rows).numpy()


@pytest.mark.parametrize(
    ("xml", "qpos", "qvel", "order"),
    [(PENDULUM, [1.0], [0.5], 2), (ARM, [0.8, -0.5], [1.0, -2.0], 1), (LEG, [0.3, 0.5, -0.9], [1.0, 0.0, 2.0], 1)],
)
def test_a_chain_has_the_limit_of_mujoco_in_value_and_gradient(xml, qpos, qvel, order):
    model, time, n = load_model(xml), 0.25, len(qpos)
    qpos, qvel, control = np.array(qpos), np.array(qvel), np.zeros(0)
    value = reference(xml, qpos, qvel, control, time, 5e-4)
    columns = []
    for direction in np.eye(2 * n) * 1e-4:
        q, v = direction[:n], direction[n:]
        ends = [reference(xml, qpos + s * q, qvel + s * v, control, time, 5e-4) for s in (1, -1)]
        columns.append((ends[0] - ends[1]) / 2e-4)
    slope = np.stack(columns, 1)
    errors, extrapolated, previous = [], [], None
    for step in (0.005, 0.0025, 0.00125):
        now = ours(model, qpos, qvel, control, time, step)
        errors.append([np.abs(a - b).max() for a, b in zip(now, (value, slope), strict=True)])
        if previous is not None:
            limit = [(2**order * a - b) / (2**order - 1) for a, b in zip(now, previous, strict=True)]
            extrapolated.append([np.abs(a - b).max() for a, b in zip(limit, (value, slope), strict=True)])
        previous = now
    measured = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    print(f"order in value and gradient {measured[-1]}, error at 1.25 ms {errors[-1]}, extrapolated {extrapolated[-1]}")
    np.testing.assert_allclose(measured[-1], order, atol=0.15)
    assert (np.array(extrapolated[-1]) < 0.1 * np.array(errors[-1])).all()
    # what is left is of the next order, or is the reference's own error
    assert (np.array(extrapolated[-1]) < np.maximum(0.35 * np.array(extrapolated[-2]), 1e-7)).all()


@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_a_flying_robot_has_the_limit_of_mujoco(robot):
    """Both robots tumbling under their gains, far above the ground."""
    xml, time = (ASSETS / f"{robot}.xml").read_text(), 0.2
    model = load_model(xml, contacts=())
    rng = np.random.default_rng(0)
    qpos, qvel = model.home + np.eye(model.nq)[2] * 5.0, rng.normal(size=model.nv)
    control = model.home[7:] + rng.uniform(-0.3, 0.3, model.nu)
    limit = reference(xml, qpos, qvel, control, time, 2e-4)
    values = []
    for step in (0.0025, 0.00125, 0.000625):
        sim, parameters = simulation(model, Hard(), 1, step)
        state = [torch.tensor(x[None]) for x in (qpos, qvel)]
        end = run(sim, parameters, *state, round(time / step), torch.tensor(control[None]))
        values.append(torch.cat(end, 1)[0].numpy())
    errors = [np.abs(v - limit).max() for v in values]
    order = np.log2(errors[-2] / errors[-1])
    extrapolated = [np.abs(2 * b - a - limit).max() for a, b in itertools.pairwise(values)]
    print(f"{robot}: order {order:.2f}, error at 0.625 ms {errors[-1]:.1e}, extrapolated {extrapolated[-1]:.1e}")
    assert order == pytest.approx(1.0, abs=0.1)
    assert np.log2(extrapolated[-2] / extrapolated[-1]) == pytest.approx(2.0, abs=0.3)
    assert extrapolated[-1] < 2e-4


@pytest.mark.parametrize("xml", [PENDULUM, ARM, LEG])
def test_a_swing_of_a_second_stays_with_mujoco(xml):
    """B8: started gently, at a step of 2.5 ms, the joints are within 1e-3 rad rms of MuJoCo over a second."""
    model, step = load_model(xml), 0.0025
    qpos, qvel, control = np.full(model.nq, 0.2), np.zeros(model.nv), np.zeros(0)
    sim, parameters = simulation(model, Hard(), 1, step)
    state = [torch.tensor(x[None]) for x in (qpos, qvel)]
    now, errors = np.concatenate([qpos, qvel]), []
    for _ in range(400):
        state = run(sim, parameters, *state, 1)
        now = reference(xml, now[: model.nq], now[model.nq :], control, step, step / 10)
        errors.append(state[0][0].numpy() - now[: model.nq])
    assert np.isfinite(errors).all()
    assert np.sqrt(np.square(errors).mean()) < 1e-3


@pytest.mark.parametrize("xml", [PENDULUM, ARM, LEG])
def test_hanging_at_rest_has_a_finite_gradient(xml):
    """A17: at q = 0 and qd = 0, where a guarded division would give NaN, the gradient is that of small steps."""
    model = load_model(xml)
    zeros = np.zeros(model.nq), np.zeros(model.nv), np.zeros(0)
    _, slope = ours(model, *zeros, 0.05, 0.01)
    assert np.isfinite(slope).all()
    columns = []
    for direction in np.eye(2 * model.nv) * 1e-5:
        q, v = direction[: model.nq], direction[model.nq :]
        ends = [ours(model, s * q, s * v, zeros[2], 0.05, 0.01)[0] for s in (1, -1)]
        columns.append((ends[0] - ends[1]) / 2e-5)
    np.testing.assert_allclose(slope, np.stack(columns, 1), rtol=1e-6, atol=1e-8)


def test_a_slow_joint_is_not_lost_in_float32():
    """A32: a joint that moves 1e-4 rad a step is tracked to 1e-6 rad, and its angle still depends on its torque."""
    motor = '<joint name="turn" type="{}" axis="0 0 1"/><geom type="box" size=".3 .3 .1" mass="5"/></body></worldbody>'
    actuator = '<actuator><motor joint="turn"/></actuator>'
    for kind in ("hinge", "ball"):
        text = motor.format(kind) + (actuator if kind == "hinge" else "")
        model = load_model(f"<mujoco><worldbody><body>{text}</mujoco>", contacts=())
        sim, parameters = simulation(model, Hard(), 1, 0.01, dtype=torch.float32)
        qpos = torch.tensor(model.qpos0[None], dtype=torch.float32)
        qvel = torch.zeros(1, model.nv)
        qvel[0, -1] = 0.01
        control = torch.zeros(1, model.nu, requires_grad=True)
        q, _ = run(sim, parameters, qpos, qvel, 100, control)
        angle = q[0, 0] if kind == "hinge" else 2.0 * torch.atan2(q[0, 3], q[0, 0])
        assert angle.item() == pytest.approx(0.01, abs=1e-6)
        if kind == "hinge":
            (by_torque,) = torch.autograd.grad(angle, control)
            inertia = 5.0 * (0.6**2 + 0.6**2) / 12.0
            assert by_torque.item() == pytest.approx(0.5 / inertia, rel=1e-4)
