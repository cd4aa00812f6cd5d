"""Contact laws judged by physics: Coulomb's cone, energy, slip, tunnelling, heading, the limit of smoothed contact."""

import itertools
import math

import mujoco
import numpy as np
import pytest
import torch

from diffenvs.sim.contact import CONTACT, Hard, Smoothed, Soft
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.load import load_model
from tests.sim.points import BALL, MASS, POINT, G, point_simulator, run, simulation, tensor
from tests.sim.worlds import ASSETS, states

ROBOTS = ["quadruped", "anymal_d"]
FRICTION = (0.2, 0.5, 0.8, 1.25)
SLIPS = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 3.0, 6.0)


def step_of(law, robot="quadruped"):
    """Simulation step [s]."""
    return 0.0005 if law == "soft" else {"quadruped": 0.01, "anymal_d": 0.005}[robot]


def near_the_ground(robot, law, worlds, seed, speed=1.0):
    """One simulation step of robots whose feet are mostly in the ground: the simulator, parameters and a state."""
    model = load_model(ASSETS / f"{robot}.xml")
    sim, parameters = simulation(model, law, worlds, step_of(law.name, robot))
    qpos, qvel, control = states(model, worlds, seed)
    qpos[:, 2] -= 0.02
    return sim, parameters, qpos, speed * qvel, control


@pytest.mark.parametrize("law", CONTACT)
def test_friction_of_a_sliding_point(law):
    """B1: |p_t| <= mu p_n at every slip and friction; all of the cone where it slides; straight against the slip."""
    grid = [(mu, slip, angle) for mu in FRICTION for slip in SLIPS for angle in (0.0, 2.0)]
    mu, slip, angle = torch.tensor(grid, dtype=torch.float64).T
    direction = torch.stack([angle.cos(), angle.sin()], 1)
    h = step_of(law)
    sim, parameters = point_simulator(POINT, CONTACT[law](), len(grid), h)
    depth = {"hard": 0.0, "soft": 2.0 * G / 1.2e4, "smoothed": 0.01}[law]
    qpos = torch.zeros(len(grid), 3, dtype=torch.float64)
    qpos[:, 2] = -depth
    qvel = torch.cat([slip[:, None] * direction, torch.zeros(len(grid), 1)], 1)
    _, after = run(sim, parameters.replace(friction=mu), qpos, qvel, 1)
    impulse = sim.contact_impulses()[:, 0]
    normal, tangential = impulse[:, 2], impulse[:, :2].norm(dim=1)
    assert (normal > 0.0).all()
    assert (tangential <= mu * normal * (1.0 + 1e-12)).all()
    # it slides where friction cannot stop it within the step; soft: where viscous friction would be above mu f_n
    threshold = mu * normal / (900.0 * h) if law == "soft" else mu * normal / 2.0
    sliding = slip > 1.01 * threshold
    assert 10 < int(sliding.sum()) < len(grid)
    torch.testing.assert_close(tangential[sliding], (mu * normal)[sliding], rtol=1e-12, atol=0)
    assert (tangential < mu * normal * (1.0 - 1e-9))[slip < 0.99 * threshold].all()
    torch.testing.assert_close(impulse[:, :2], -tangential[:, None] * direction, rtol=1e-9, atol=1e-15)
    # friction brakes, and does not push back
    assert ((after[:, :2] * direction).sum(1) >= -1e-12).all()


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ROBOTS)
def test_no_foot_leaves_the_cone(robot, law):
    """B1: nor does any foot of a robot, thrown about at up to some 6 m/s, at any friction; and no foot is pulled."""
    worlds = 400
    for speed in (0.1, 1.0, 4.0):
        sim, parameters, qpos, qvel, control = near_the_ground(robot, CONTACT[law](), worlds, 11, speed)
        mu = torch.tensor(FRICTION, dtype=torch.float64).repeat(worlds // len(FRICTION))
        sim.simulate(qpos, qvel, control, parameters.replace(friction=mu))
        impulse = sim.contact_impulses()
        normal, tangential = impulse[..., 2], impulse[..., :2].norm(dim=-1)
        assert (normal >= 0.0).all()
        assert (normal > 1e-6).double().mean() > 0.2
        assert (tangential <= mu[:, None] * normal * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ROBOTS)
def test_contact_never_adds_energy(robot, law):
    """The work of the contact impulses is never positive, but for what soft contact's springs give back.

    The work is 1/2 v+ M v+ - 1/2 v_f M v_f at mid-step, v_f the velocity after the same step without contact; it is
    p times the mean of both contact velocities. Hard and smoothed: never above zero, over 1,000 states each. Soft:
    never above the fall of 1/2 k d^2, summed over the feet.
    """
    worlds = 500
    for seed, speed in ((3, 1.0), (4, 10.0)):
        sim, parameters, qpos, qvel, control = near_the_ground(robot, CONTACT[law](), worlds, seed, speed)
        bare, free = simulation(
            load_model(ASSETS / f"{robot}.xml", contacts=(), limits=False), Hard(), worlds, sim.timestep
        )
        motion = sim.simulate(qpos, qvel, control, parameters)
        impulse = sim.contact_impulses().numpy()
        after, unhindered = motion.qvel.numpy(), bare.simulate(qpos, qvel, control, free).qvel.numpy()
        middle = qpos.numpy().copy()
        m = mujoco.MjModel.from_xml_string(sim.model.xml)
        for one, velocity in zip(middle, qvel.numpy(), strict=True):
            mujoco.mj_integratePos(m, one, velocity, 0.5 * sim.timestep)
        at = equations_of_motion(sim.model, middle, qvel.numpy(), control.numpy())
        energy = [0.5 * np.einsum("ni,nij,nj->n", v, at.mass_matrix, v) for v in (after, unhindered)]
        mean = 0.5 * np.einsum("ncij,nj->nci", at.jacobian, after + unhindered)
        work = energy[0] - energy[1]
        np.testing.assert_allclose(work, (impulse * mean).sum((1, 2)), rtol=0, atol=1e-12 * energy[1].max())
        released = 0.0
        if law == "soft":
            heights = sim.feet(qpos, parameters), motion.feet
            depths = [(parameters.contact_radius - x[..., 2]).clamp(min=0.0).numpy() for x in heights]
            released = 0.5 * 1.2e4 * (depths[0] ** 2 - depths[1] ** 2).sum(1)
        assert (impulse[..., 2] > 0.0).any(1).mean() > 0.5
        assert (work - released).max() < 1e-13 * energy[1].max()
        # and it takes energy out where feet strike
        assert np.median(work) < 0.0


def test_a_ball_on_springs_never_bounces_higher():
    """Soft contact: every apex of a bouncing ball is below the one before it."""
    sim, parameters = simulation(BALL, Soft(), 1, 0.0005)
    q, v = tensor([0.0, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0]), torch.zeros(1, 6, dtype=torch.float64)
    apexes, rising = [], False
    for _ in range(3000):
        q, v = run(sim, parameters, q, v, 1)
        if rising and v[0, 2] <= 0.0:
            apexes.append(float(q[0, 2]))
        rising = bool(v[0, 2] > 0.0)
    assert len(apexes) > 3
    assert apexes[0] < 0.2
    assert all(b < a for a, b in itertools.pairwise(apexes))


@pytest.mark.parametrize("law", CONTACT)
def test_normal_impulse_does_not_depend_on_slip(law):
    """For a point mass, whose G is isotropic: the same normal impulse at rest and at 6 m/s, for any friction."""
    grid = [(mu, slip) for mu in FRICTION for slip in (0.0, *SLIPS)]
    sim, parameters = point_simulator(POINT, CONTACT[law](), len(grid), step_of(law))
    mu, slip = torch.tensor(grid, dtype=torch.float64).T
    qpos, qvel = torch.zeros(2, len(grid), 3, dtype=torch.float64)
    qpos[:, 2], qvel[:, 0], qvel[:, 2] = -0.004, slip, -0.7
    run(sim, parameters.replace(friction=mu), qpos, qvel, 1)
    normal = sim.contact_impulses()[:, 0, 2]
    assert normal.min() > 0.0
    torch.testing.assert_close(normal, normal[:1].expand_as(normal), rtol=1e-12, atol=0)


@pytest.mark.parametrize("law", CONTACT)
def test_no_tunnelling_at_14_m_per_s(law):
    """A mass that lands at 14 m/s and 6 m/s along the ground stays: its depth is that of one step, or of its spring.

    Hard: it is stopped in the step whose middle is below the ground, so no deeper than v h. Smoothed: sigma is one
    half at the surface, so some 1/kappa more. Soft: v sqrt(m/k) at most, and out again.
    """
    v, m, h = 14.0, 2.0, step_of(law)
    heights = torch.linspace(0.0, 0.3, 61, dtype=torch.float64)
    sim, parameters = point_simulator(POINT, CONTACT[law](), len(heights), h)
    qpos, qvel = torch.zeros(2, len(heights), 3, dtype=torch.float64)
    qpos[:, 2], qvel[:, 0], qvel[:, 2] = heights, 6.0, -v
    lowest = qpos[:, 2]
    for _ in range(round(0.2 / h)):
        qpos, qvel = run(sim, parameters, qpos, qvel, 1)
        lowest = torch.minimum(lowest, qpos[:, 2])
    impact = math.sqrt(v**2 + 2.0 * G * 0.3)
    deepest = {"hard": impact * h, "smoothed": impact * h + 3.0 / 300.0, "soft": impact * math.sqrt(m / 1.2e4) + 1e-3}
    print(f"{law}: deepest {-float(lowest.min()):.3f} m")
    assert -lowest.min() < deepest[law]
    assert qvel[:, 2].min() > -0.05


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ROBOTS)
def test_no_foot_tunnels(robot, law):
    """A robot dropped at 14 m/s: its feet are caught as the point is, by the time its base comes down on them.

    Unhindered they would be 0.2 m down after 20 ms, and 4 m after the 0.3 s that springs need for their turn, which
    comes no later than at v sqrt(m / (4 k)), the depth of a rigid robot.
    """
    worlds = 20
    sim, parameters, qpos, _, control = near_the_ground(robot, CONTACT[law](), worlds, 2)
    qpos[:, 2] += 0.1
    qvel = torch.zeros(worlds, sim.model.nv, dtype=torch.float64)
    qvel[:, 2] = -14.0
    lowest = 0.0
    for _ in range(round((0.3 if law == "soft" else 0.02) / sim.timestep)):
        motion = sim.simulate(qpos, qvel, control, parameters)
        qpos, qvel = motion.qpos, motion.qvel
        lowest = min(lowest, float((motion.feet[..., 2] - parameters.contact_radius).min()))
    assert bool(motion.finite.all())
    whole = 14.0 * math.sqrt(sim.model.link_mass.sum() / (4 * 1.2e4))
    assert lowest > (-whole if law == "soft" else -14.0 * sim.timestep - 0.02)


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ROBOTS)
def test_heading_does_not_matter(robot, law):
    """Turn the robot about the vertical, and its motion turns with it: contact has no preferred direction."""
    sim, parameters, qpos, qvel, control = near_the_ground(robot, CONTACT[law](), 50, 6)
    expected = sim.simulate(qpos, qvel, control, parameters)
    yaw = 0.7
    turn = tensor([math.cos(yaw), -math.sin(yaw), 0.0], [math.sin(yaw), math.cos(yaw), 0.0], [0.0, 0.0, 1.0])
    c, s = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    w, x, y, z = qpos[:, 3:7].unbind(1)
    turned_q, turned_v = qpos.clone(), qvel.clone()
    turned_q[:, :3] = qpos[:, :3] @ turn.T
    turned_q[:, 3:7] = torch.stack([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w], 1)
    turned_v[:, :3] = qvel[:, :3] @ turn.T
    motion = sim.simulate(turned_q, turned_v, control, parameters)
    torch.testing.assert_close(motion.qvel[:, :3], expected.qvel[:, :3] @ turn.T, rtol=0, atol=1e-9)
    torch.testing.assert_close(motion.qvel[:, 3:], expected.qvel[:, 3:], rtol=0, atol=1e-9)
    torch.testing.assert_close(motion.feet, expected.feet @ turn.T, rtol=0, atol=1e-9)


def test_smoothed_tends_to_hard_in_proportion_to_one_over_kappa():
    """Over a millimetre grid of heights, the falling mass of Schwarke et al. 2025, Fig. 3: order one in 1/kappa."""
    z0 = torch.arange(0.08, 0.2195, 0.0002, dtype=torch.float64)[:, None]

    def fall(law):
        sim, parameters = point_simulator(MASS, law, len(z0))
        return torch.cat(run(sim, parameters, z0, -torch.ones_like(z0), 10), 1)

    limit = fall(Hard())
    kappas = (1000.0, 2000.0, 4000.0, 8000.0)
    errors = torch.stack([(fall(Smoothed(kappa=k)) - limit).abs().mean(0) for k in kappas])
    orders = torch.log2(errors[:-1] / errors[1:])
    print(f"mean error in height and velocity at kappa 1000: {errors[0].tolist()}, orders {orders.tolist()}")
    torch.testing.assert_close(orders, torch.ones_like(orders), rtol=0, atol=0.1)


@pytest.mark.parametrize("kappa", [1e-2, 1.0, 300.0, 1e5, 1e9])
def test_every_sharpness_gives_a_finite_gradient(kappa):
    """A29: from a force felt at 100 m to one that no float resolves, forward and backward stay finite."""
    for dtype in (torch.float32, torch.float64):
        sim, parameters = simulation(POINT, Smoothed(kappa=kappa), 5, 0.01, dtype=dtype)
        qpos = torch.zeros(5, 3, dtype=dtype)
        qpos[:, 2] = torch.tensor([-2.0, -1e-4, 0.001, 1e-4, 50.0])
        qpos.requires_grad_(True)
        qvel = torch.full((5, 3), -1.0, dtype=dtype).requires_grad_(True)
        q, v = run(sim, parameters, qpos, qvel, 5)
        assert torch.isfinite(torch.cat([q, v], 1)).all()
        for gradient in torch.autograd.grad((q + v).sum(), [qpos, qvel]):
            assert torch.isfinite(gradient).all()
        assert sim.nonfinite_gradients == 0


@pytest.mark.parametrize(
    "law",
    [
        Soft(stiffness=12.0),
        Soft(stiffness=1.2e7, timestep=1e-5),
        Soft(damping=1e-6),
        Soft(damping=3e3),
        Soft(friction_stiffness=1e-6),
        Soft(friction_stiffness=3.9e3),
    ],
)
def test_every_stiffness_gives_a_finite_gradient(law):
    """A29: three decades either way of what soft contact offers, within the range in which its step is stable."""
    sim, parameters = simulation(POINT, law, 3, law.timestep)
    qpos, qvel = torch.zeros(2, 3, 3, dtype=torch.float64)
    qpos[:, 2], qvel[:, 0], qvel[:, 2] = tensor([-1e-3, 0.0, 1e-4])[0], tensor([0.0, 1e-9, 1.0])[0], -1.0
    qpos.requires_grad_(True)
    qvel.requires_grad_(True)
    q, v = run(sim, parameters, qpos, qvel, 200)
    assert torch.isfinite(torch.cat([q, v], 1)).all()
    assert v.abs().max() < 10.0
    for gradient in torch.autograd.grad((q + v).sum(), [qpos, qvel]):
        assert torch.isfinite(gradient).all()
