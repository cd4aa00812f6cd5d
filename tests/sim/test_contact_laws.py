"""The contact laws as values, and what each does to a block, a robot and a falling mass."""

import math

import mujoco
import pytest
import torch

from diffenvs.sim.contact import CONTACT, Hard, Smoothed, Soft, resolve
from tests.sim.points import BLOCK, MASS, G, point_simulator, run
from tests.sim.worlds import simulator


def test_names_and_values_resolve():
    assert [resolve(name) for name in CONTACT] == [Hard(), Soft(), Smoothed()]
    assert resolve(Smoothed(kappa=50.0)).kappa == 50.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: resolve("sticky"), "contact is 'sticky', expected one of 'hard', 'soft', 'smoothed'"),
        (lambda: resolve(3), "contact is 3"),
        (lambda: Smoothed(kappa=0.0), "Smoothed: kappa is 0.0"),
        (lambda: Smoothed(kappa=float("nan")), "Smoothed: kappa is nan"),
        (lambda: Smoothed(kappa="300"), "Smoothed: kappa is '300'"),
        (lambda: Hard(sweeps=0), "Hard: sweeps is 0"),
        (lambda: Hard(sweeps=2.5), "Hard: sweeps is 2.5"),
        (lambda: Soft(stiffness=-1.0), "Soft: stiffness is -1.0"),
    ],
)
def test_bad_values_are_one_sentence(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def falling(law):
    """Schwarke et al. 2025, Fig. 3: ten steps of 0.01 s from heights around the touch, at -1 m/s."""
    z0 = torch.arange(0.08, 0.2195, 0.0005, dtype=torch.float64)[:, None].requires_grad_(True)
    sim, parameters = point_simulator(MASS, law, len(z0))
    z, v = run(sim, parameters, z0, -torch.ones_like(z0), 10)
    slope_v = torch.autograd.grad(v.sum(), z0, retain_graph=True)[0]
    slope_z = torch.autograd.grad(z.sum(), z0)[0]
    return tuple(x.detach()[:, 0] for x in (z0, z, v, slope_z, slope_v))


def test_falling_mass_smoothed_has_the_papers_landmarks():
    z0, z, v, slope_z, slope_v = falling(Smoothed(kappa=125.0))
    steepest = int(slope_v.argmin())
    assert slope_v[steepest] == pytest.approx(-54.5, rel=0.01)
    assert float(z0[steepest]) == pytest.approx(0.1405, abs=5e-4)
    assert float(v[0]) == pytest.approx(-0.04, abs=0.004)
    assert float(v[-1]) == pytest.approx(-1.981, abs=0.001)
    assert float(z[0]) == pytest.approx(-0.010, abs=0.001)
    assert float(slope_z.min()) == pytest.approx(-0.013, abs=0.002)
    assert float(slope_z[-1]) == pytest.approx(1.0, abs=0.001)


def test_falling_mass_hard_is_a_jump_that_its_gradient_does_not_see():
    z0, z, v, slope_z, slope_v = falling(Hard())
    landed = z0 < 0.139
    # plastic impact: what lands stops at once, what does not falls freely
    torch.testing.assert_close(v[landed], torch.zeros_like(v[landed]), rtol=0, atol=1e-12)
    torch.testing.assert_close(v[z0 > 0.1405], torch.full_like(v[z0 > 0.1405], -1.0 - 0.1 * G), rtol=1e-12, atol=0)
    assert z[landed].min() > -0.0195
    assert torch.equal(slope_v, torch.zeros_like(slope_v))
    torch.testing.assert_close(slope_z, torch.ones_like(slope_z), rtol=0, atol=1e-12)


def test_smoothed_tends_to_hard():
    z0 = torch.tensor([[0.09], [0.1], [0.2]], dtype=torch.float64)
    sim, parameters = point_simulator(MASS, Hard(), 3)
    limit = run(sim, parameters, z0, -torch.ones_like(z0), 10)[1]
    errors = []
    for kappa in (1e3, 1e4, 1e5):
        sim, parameters = point_simulator(MASS, Smoothed(kappa=kappa), 3)
        errors.append(float((run(sim, parameters, z0, -torch.ones_like(z0), 10)[1] - limit).abs().max()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-3


@pytest.mark.parametrize("law", CONTACT)
def test_sliding_block(law):
    # Coulomb: v = v0 - mu g t while it slides, whatever the mass; dv/dmu = -g t
    mu, v0, h, steps = 0.5, 3.0, 0.0005 if law == "soft" else 0.001, 200
    sim, parameters = point_simulator(BLOCK, CONTACT[law](), 1, timestep=h)
    load = 2.0 * G
    # soft and smoothed carry a load at a depth: start in that equilibrium, or the first steps carry less
    depth = {"soft": load / 1.2e4, "hard": 1e-9, "smoothed": 0.05}[law]
    friction = torch.tensor([mu], dtype=torch.float64, requires_grad=True)
    qpos = torch.tensor([[0.0, -depth]], dtype=torch.float64)
    qvel = torch.tensor([[v0, 0.0]], dtype=torch.float64)
    _, v = run(sim, parameters.replace(friction=friction), qpos, qvel, steps)
    (slope,) = torch.autograd.grad(v[0, 0], friction)
    t = steps * h
    assert float(v[0, 0].detach()) == pytest.approx(v0 - mu * G * t, rel=1e-3)
    assert float(slope) == pytest.approx(-G * t, rel=1e-2)


def test_soft_static_load():
    # a spring in balance: m g = k d
    sim, parameters = point_simulator(MASS, Soft(), 1, timestep=0.0005)
    z, _ = run(sim, parameters, torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64), 20000)
    # one-sided damping (approach only) makes the last oscillation decay slowly
    assert float(z[0, 0]) == pytest.approx(-G / 1.2e4, rel=0.02)


def test_smoothed_creep_of_a_loaded_point():
    # p = sigmoid(kappa d) m (g h + ...) lets a lone mass sink by d(t) = ln(1 + kappa g h t) / kappa
    kappa, h, t = 300.0, 0.01, 1.0
    sim, parameters = point_simulator(MASS, Smoothed(kappa=kappa), 1)
    z, _ = run(sim, parameters, torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64), 100)
    assert -float(z[0, 0]) == pytest.approx(math.log(1.0 + kappa * G * h * t) / kappa, rel=0.1)


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_a_standing_robot_is_carried(robot, law):
    # Newton: the ground's impulse is m g t plus the change of momentum (soft friction creeps, so robots sink slowly)
    sim = simulator(robot, CONTACT[law](), 1)
    model, parameters = sim.model, sim.default_parameters()
    reference = mujoco.MjModel.from_xml_string(model.xml)
    weight = float(model.link_mass.sum()) * G
    qpos = torch.tensor(model.home)[None].clone()
    qvel = torch.zeros(1, model.nv, dtype=torch.float64)
    control = qpos[:, 7:].clone()
    step = sim.timestep * sim.substeps
    carried, start = 0.0, 0.0
    for i in range(round(2.0 / step)):
        if i == round(1.0 / step):
            carried, start = 0.0, vertical_momentum(reference, qpos, qvel)
        motion = sim.simulate(qpos, qvel, control, parameters)
        qpos, qvel = motion.qpos, motion.qvel
        carried += float(sim.contact_impulses()[0, :, 2].sum())
    change = vertical_momentum(reference, qpos, qvel) - start
    assert abs(change) < 0.1 * weight
    assert carried - change == pytest.approx(weight, rel=0.01)


def vertical_momentum(reference, qpos, qvel):
    """Of the whole robot [N s], by MuJoCo."""
    data = mujoco.MjData(reference)
    data.qpos[:], data.qvel[:] = qpos[0].numpy(), qvel[0].numpy()
    mujoco.mj_forward(reference, data)
    mujoco.mj_subtreeVel(reference, data)
    return float(data.subtree_linvel[0, 2] * reference.body_subtreemass[0])
