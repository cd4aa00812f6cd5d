"""What pen and paper say about one step, a flight, an impact, a slide, a load and a slope: value and gradient.

The oracles are O1 to O6 of the user reports, with the constants of this integrator. It is the Moreau midpoint step,
    v+ = v + M^-1 (J^T p - h b(q + h/2 v, v)),   q+ = q + h/2 (v + v+),
whose positions are trapezoids: a constant acceleration a gives x_N = x_0 + T v_0 + T^2 a / 2 with T = N h exactly,
where semi-implicit Euler has N (N + 1) h^2 / 2 in the place of T^2 / 2.
"""

import math

import pytest
import torch

from diffenvs.sim.contact import CONTACT, Hard, Smoothed, Soft
from diffenvs.sim.load import load_model
from tests.sim.points import BALL, POINT, G, box, point_simulator, run, simulation, tensor, tilted

# A step at which the law is at home.
STEP = {"hard": 0.01, "soft": 0.0005, "smoothed": 0.01}
EXACT = {"rtol": 1e-10, "atol": 1e-11}


def jacobian(outputs, inputs):
    """Rows of d outputs / d inputs, for one world."""
    rows = []
    for value in outputs.flatten():
        rows.append(torch.autograd.grad(value, inputs, retain_graph=True, allow_unused=True))
    return [torch.stack([r[k].flatten() for r in rows]) for k in range(len(inputs))]


@pytest.mark.parametrize("law", CONTACT)
def test_free_flight(law):
    """A24, O1: x = x0 + T v0 + T^2/2 (F/m + g), v = v0 + T (F/m + g), with every derivative, to rounding."""
    steps, m = 50, 2.0
    time = steps * STEP[law]
    sim, parameters = point_simulator(POINT, CONTACT[law](), 1, STEP[law])
    x0 = tensor([1.0, -2.0, 500.0]).requires_grad_(True)
    v0 = tensor([0.3, 0.1, -0.4]).requires_grad_(True)
    force = tensor([3.0, -5.0, 7.0]).requires_grad_(True)
    mass = parameters.mass.clone().requires_grad_(True)
    x, v = run(sim, parameters.replace(mass=mass), x0, v0, steps, force)
    acceleration = force / m + tensor([0.0, 0.0, -G])
    torch.testing.assert_close(x, x0 + time * v0 + 0.5 * time**2 * acceleration, **EXACT)
    torch.testing.assert_close(v, v0 + time * acceleration, **EXACT)
    eye = torch.eye(3, dtype=torch.float64)
    by_x, by_v, by_force, by_mass = jacobian(x, [x0, v0, force, mass])
    torch.testing.assert_close(by_x, eye, **EXACT)
    torch.testing.assert_close(by_v, time * eye, **EXACT)
    torch.testing.assert_close(by_force, 0.5 * time**2 / m * eye, **EXACT)
    torch.testing.assert_close(by_mass[:, -1], (-0.5 * time**2 / m**2 * force)[0], **EXACT)
    by_v, by_force, by_mass = jacobian(v, [v0, force, mass])
    torch.testing.assert_close(by_v, eye, **EXACT)
    torch.testing.assert_close(by_force, time / m * eye, **EXACT)
    torch.testing.assert_close(by_mass[:, -1], (-time / m**2 * force)[0], **EXACT)


def test_plastic_impact():
    """A19, O2 at restitution 0: v+ = 0 whatever v-, and dv+/dv- = 0.

    In the step of the impact the mass still travels h/2 (v- + 0), so dz+/dv- = h/2, and dz+/dz = 1: what is left of
    the overshoot is where it was. Everything after that step is rest.
    """
    h = STEP["hard"]
    sim, parameters = point_simulator(POINT, Hard(), 3, h)
    z = tensor([0.0, 0.0, 0.002], [0.0, 0.0, 0.0], [0.0, 0.0, -0.003]).requires_grad_(True)
    v = tensor([0.0, 0.0, -0.5], [0.0, 0.0, -2.0], [0.0, 0.0, -14.0]).requires_grad_(True)
    for steps in (1, 5):
        after, speed = run(sim, parameters, z, v, steps)
        torch.testing.assert_close(speed, torch.zeros_like(speed), rtol=0, atol=1e-12)
        by_z, by_v = torch.autograd.grad(speed.sum(), [z, v], retain_graph=True)
        assert by_z.abs().max() < 1e-12
        assert by_v.abs().max() < 1e-12
        torch.testing.assert_close(after[:, 2], z[:, 2] + 0.5 * h * v[:, 2], **EXACT)
        by_z, by_v = torch.autograd.grad(after[:, 2].sum(), [z, v])
        torch.testing.assert_close(by_z[:, 2], torch.ones(3, dtype=torch.float64), **EXACT)
        torch.testing.assert_close(by_v[:, 2], torch.full((3,), 0.5 * h, dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("h", [0.0001, 0.00005])
def test_elastic_bounce_of_a_spring(h):
    """A25, O2 at restitution 1: a mass on an undamped spring leaves as fast as it came, pi sqrt(m/k) later.

    Without gravity the gap after T is v (T - pi sqrt(m/k)) - h: slope -1 in the gap, T - pi sqrt(m/k) in the speed.
    Where within a step the ground is met and left is a saw-tooth on that line: a metre of gap more or less in the
    first or last step of contact changes the speed by up to (k/m) h, and the height by that times what is left of T.
    So the gradient is off by up to (k/m) h T at one height, and by nothing over many: it vanishes with the step.
    """
    k, m, speed, time = 1.2e5, 2.0, 1.5, 0.04
    gap = torch.linspace(0.001, 0.001 + 20 * speed * h, 401, dtype=torch.float64)
    sim, parameters = point_simulator(POINT.replace("-9.81", "0"), Soft(stiffness=k, damping=1e-9), len(gap), h)
    z, v = (torch.zeros(len(gap), 3, dtype=torch.float64) for _ in range(2))
    z[:, 2], v[:, 2] = gap, -speed
    z.requires_grad_(True)
    v.requires_grad_(True)
    height = run(sim, parameters, z, v, round(time / h))[0][:, 2]
    flight = time - math.pi * math.sqrt(m / k)
    assert (height.detach() - (speed * flight - gap)).abs().max() < 0.02 * speed * h
    centred = gap - gap.mean()
    assert float((centred * height.detach()).sum() / (centred**2).sum()) == pytest.approx(-1.0, abs=1e-3)
    by_z, by_v = torch.autograd.grad(height.sum(), [z, v])
    assert (by_z[:, 2] + 1.0).abs().max() < k / m * h * flight
    assert float(by_z[:, 2].mean()) == pytest.approx(-1.0, abs=0.02)
    assert (-by_v[:, 2] - flight).abs().max() < 0.02 * flight


@pytest.mark.parametrize("law", CONTACT)
def test_sliding_block(law):
    """B10, A34, O3: v = v0 - mu (g t + change of v_z) while it slides, exactly, under every law.

    Friction is mu times the normal impulse, and the normal impulses are m (g t + change of v_z). Hard contact has
    v_z = 0 and gives mu g t; soft contact bounces and smoothed contact sinks, both known from v_z.
    """
    mu, v0, h = 0.5, 3.0, STEP[law]
    steps = round(0.4 / h)
    sim, parameters = point_simulator(POINT, CONTACT[law](), 1, h)
    friction = tensor(mu).requires_grad_(True)
    mass = parameters.mass.clone().requires_grad_(True)
    parameters = parameters.replace(friction=friction, mass=mass)
    _, v = run(sim, parameters, tensor([0.0, 0.0, 0.0]), tensor([v0, 0.0, 0.0]), steps)
    time, sinking = steps * h, v[0, 2]
    if law == "hard":
        assert abs(sinking.item()) < 1e-12
    torch.testing.assert_close(v[0, 0], v0 - mu * (G * time + sinking), **EXACT)
    by_friction, by_mass = torch.autograd.grad(v[0, 0], [friction, mass], retain_graph=True)
    torch.testing.assert_close(by_friction[0], -(G * time + sinking), **EXACT)
    (sinking_by_mass,) = torch.autograd.grad(sinking, [mass])
    # the mass is that of the last link; those above it are links of no mass, and no masses of the block
    torch.testing.assert_close(by_mass[0, -1], -mu * sinking_by_mass[0, -1], **EXACT)


@pytest.mark.parametrize("law", CONTACT)
def test_stopping_distance(law):
    """O3: v0^2 / (2 mu g), and its derivatives by mu and v0, to one step.

    Hard, from a load carried at once: N whole sliding steps, then one in which the rest v_N < mu g h is taken, with
    h/2 v_N travelled. So D = T v0 - T^2/2 mu g + h/2 (v0 - T mu g) with T = N h, N = floor(v0 / (mu g h)); the last
    term makes dD/dmu = -g h^2 N (N + 1) / 2 and dD/dv0 = (N + 1/2) h.
    Soft friction is viscous below v* = mu m g / k_f: from there on the block creeps v* m / k_f in place of v*^2 /
    (2 mu g), which adds mu g m^2 / (2 k_f^2), 5 um here.
    """
    mu, v0, h, m = 0.5, 1.0, STEP[law], 2.0
    sim, parameters = point_simulator(POINT, CONTACT[law](), 1, h)
    # soft and smoothed contact carry the load at a depth
    depth = {"hard": 0.0, "soft": m * G / 1.2e4, "smoothed": 0.08}[law]
    friction = tensor(mu).requires_grad_(True)
    start = tensor([v0, 0.0, 0.0]).requires_grad_(True)
    x, v = run(sim, parameters.replace(friction=friction), tensor([0.0, 0.0, -depth]), start, round(0.4 / h))
    assert abs(v[0, 0].item()) < 1e-12
    by_friction, by_speed = torch.autograd.grad(x[0, 0], [friction, start])
    n = math.floor(v0 / (mu * G * h))
    if law == "soft":
        creep = mu * G * m**2 / (2 * 900.0**2)
        expected = v0**2 / (2 * mu * G) + creep, -(v0**2) / (2 * mu**2 * G) + creep / mu, v0 / (mu * G)
        tolerance = {"rtol": 1e-3, "atol": 0.0}
    else:
        expected = (
            n * h * v0 - 0.5 * (n * h) ** 2 * mu * G + 0.5 * h * (v0 - n * h * mu * G),
            -0.5 * G * h**2 * n * (n + 1),
            (n + 0.5) * h,
        )
        # at 8 cm sigmoid(kappa d) is 1 to 4e-11
        tolerance = {"rtol": 1e-8, "atol": 0.0}
    got = torch.stack([x[0, 0].detach(), by_friction[0], by_speed[0, 0]])
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), **tolerance)
    continuous = torch.tensor([v0**2 / (2 * mu * G), -(v0**2) / (2 * mu**2 * G), v0 / (mu * G)], dtype=torch.float64)
    torch.testing.assert_close(got, continuous, rtol=0.03, atol=0.0)


def test_static_load_on_springs():
    """B3, B7, O5: on n feet of stiffness k a mass m settles at depth m g / (n k); d depth/dm = g / (n k)."""
    k, m, feet = 1.2e4, 3.0, 4
    slide = '<joint type="slide" axis="0 0 1" damping="400"/>'
    depths = {}
    for stiffness in (0.99 * k, k, 1.01 * k):
        sim, parameters = simulation(box(mass=m, joints=slide), Soft(stiffness=stiffness), 1, STEP["soft"])
        mass = parameters.mass.clone().requires_grad_(True)
        z, v = run(sim, parameters.replace(mass=mass), tensor([0.1]), tensor([0.0]), 800)
        assert abs(v.item()) < 1e-11
        depths[stiffness] = 0.1 - z.item()
        (by_mass,) = torch.autograd.grad(-z[0, 0], mass)
        assert depths[stiffness] == pytest.approx(m * G / (feet * stiffness), rel=1e-9)
        assert float(by_mass[0, 0]) == pytest.approx(G / (feet * stiffness), rel=1e-9)
        # Newton: the feet carry the weight, in equal shares
        carried = sim.contact_impulses()[0, :, 2] / STEP["soft"]
        torch.testing.assert_close(carried, torch.full_like(carried, m * G / feet), rtol=1e-9, atol=0)
    by_stiffness = (depths[1.01 * k] - depths[0.99 * k]) / (0.02 * k)
    assert by_stiffness == pytest.approx(-m * G / (feet * k**2), rel=1e-3)


@pytest.mark.parametrize("radius", [0.01, 0.03, 0.1])
def test_a_ball_rests_its_radius_above_the_ground(radius):
    """B3: the radius counts: the centre settles at radius - m g / k on springs, at the radius when hard."""
    ball = BALL.replace('size="0.1"', f'size="{radius}"').replace(
        "<freejoint/>", '<joint type="slide" axis="0 0 1" damping="200"/>'
    )
    sim, parameters = simulation(ball, Soft(), 1, STEP["soft"])
    z, _ = run(sim, parameters, tensor([radius]), tensor([0.0]), 1000)
    assert float(z) == pytest.approx(radius - G / 1.2e4, rel=1e-9)
    sim, parameters = simulation(ball, Hard(), 1, STEP["hard"])
    leaf = parameters.contact_radius.clone().requires_grad_(True)
    z, _ = run(sim, parameters.replace(contact_radius=leaf), tensor([radius]), tensor([0.0]), 100)
    assert float(z.detach()) == pytest.approx(radius, abs=1e-12)


@pytest.mark.parametrize("law", CONTACT)
def test_slope_below_the_friction_angle(law):
    """B2, O6: on 20 degrees at mu 0.5 (26.6 degrees) hard contact holds; soft and smoothed creep as documented.

    Soft friction is viscous, k_f v = m g sin a. Smoothed contact takes sigma(d) of the impulse that would stop the
    foot, so both velocities obey v+ = (1 - sigma) (v + h g): they stay parallel to gravity. The foot creeps down
    the slope by tan a times what it sinks, and (1 - sigma) / sigma = exp(-kappa d) makes that
    ln(1 + kappa g h t cos a) / kappa.
    """
    angle, mu, m, h = math.radians(20.0), 0.5, 2.0, STEP[law]
    steps = round(1.0 / h)
    sim, parameters = simulation(tilted(load_model(POINT), angle), CONTACT[law](), 1, h)
    parameters = parameters.replace(
        contact_radius=torch.zeros(1, 1, dtype=torch.float64), friction=torch.tensor([mu], dtype=torch.float64)
    )
    down, into = G * math.sin(angle), G * math.cos(angle)
    depth = m * into / 1.2e4 if law == "soft" else 0.0
    x, v = run(sim, parameters, tensor([0.0, 0.0, -depth]), tensor([0.0, 0.0, 0.0]), steps)
    if law == "hard":
        torch.testing.assert_close(x, torch.zeros_like(x), rtol=0, atol=1e-12)
        torch.testing.assert_close(v, torch.zeros_like(v), rtol=0, atol=1e-12)
    elif law == "soft":
        assert float(v[0, 0]) == pytest.approx(m * down / 900.0, rel=1e-9)
    else:
        assert float(x[0, 0]) == pytest.approx(-math.tan(angle) * float(x[0, 2]), rel=1e-10)
        assert -float(x[0, 2]) == pytest.approx(math.log(1.0 + 300.0 * into * h * 1.0) / 300.0, rel=0.01)


@pytest.mark.parametrize("law", CONTACT)
def test_slope_above_the_friction_angle(law):
    """O6, the other side: on 40 degrees at mu 0.5 the block slides with g (sin a - mu cos a) - mu (change of v_z)/t."""
    angle, mu, h = math.radians(40.0), 0.5, STEP[law]
    steps = round(0.4 / h)
    sim, parameters = simulation(tilted(load_model(POINT), angle), CONTACT[law](), 1, h)
    parameters = parameters.replace(
        contact_radius=torch.zeros(1, 1, dtype=torch.float64), friction=torch.tensor([mu], dtype=torch.float64)
    )
    # soft friction is viscous at first: start fast enough to slide
    _, v = run(sim, parameters, tensor([0.0, 0.0, 0.0]), tensor([1.0, 0.0, 0.0]), steps)
    time = steps * h
    expected = 1.0 + G * math.sin(angle) * time - mu * (G * math.cos(angle) * time + float(v[0, 2]))
    assert float(v[0, 0]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("mass", [0.1, 1.0, 30.0])
def test_creep_of_a_loaded_foot(mass):
    """Smoothed contact lets a lone mass of any weight sink by d(t) = ln(1 + kappa g h t) / kappa."""
    kappa, h = 300.0, 0.01
    xml = POINT.replace('mass="2"', f'mass="{mass}"')
    sim, parameters = point_simulator(xml, Smoothed(kappa=kappa), 1, h)
    x, v = tensor([0.0, 0.0, 0.0]), tensor([0.0, 0.0, 0.0])
    for second in range(1, 4):
        x, v = run(sim, parameters, x, v, round(1.0 / h))
        expected = math.log(1.0 + kappa * G * h * second) / kappa
        assert -float(x[0, 2]) == pytest.approx(expected, rel=0.01)
        # its time derivative
        assert -float(v[0, 2]) == pytest.approx(G * h / (1.0 + kappa * G * h * second), rel=0.03)
