"""How stiff soft contact may be at its step: what is refused blows up, what is let through does not (B13, A29)."""

import dataclasses
import math
import re

import pytest
import torch

import diffenvs
from diffenvs.sim.contact import Soft
from diffenvs.sim.load import load_model
from diffenvs.sim.mobility import lightest
from diffenvs.sim.precision import FLOAT64
from tests.sim.points import BALL, POINT, point_simulator, run, simulation
from tests.sim.worlds import ASSETS, simulator, states

ROBOTS = ["quadruped", "anymal_d"]
H = 0.0005
# of a foot of 2 kg
LIMITS = {"stiffness": 2.0 * 2.0 / H**2, "damping": 2.0 * 2.0 / H, "friction_stiffness": 2.0 * 2.0 / H}
# the other forces all but off
ALONE = Soft(stiffness=1e-3, damping=1e-9, friction_stiffness=1e-9)


@pytest.mark.parametrize("name", LIMITS)
def test_a_law_too_stiff_for_its_step_is_refused(name):
    """B13: with the value, the limit and the robot; and the limit is on the mass of the foot and the step."""
    for factor in (0.99, 1.01):
        law = dataclasses.replace(ALONE, **{name: factor * LIMITS[name]})
        if factor < 1.0:
            simulation(POINT, law, 1, H)
            continue
        with pytest.raises(ValueError, match=rf"Soft: {name} is .*, expected below .* 0.0005 s .*'point'.* 2 kg"):
            simulation(POINT, law, 1, H)
        # a tenth of the step bears it, and so does a tenfold mass
        simulation(POINT, law, 1, 0.1 * H)
        simulation(POINT.replace('mass="2"', 'mass="20"'), law, 1, H)


@pytest.mark.parametrize("robot", ["DiffQuadruped-v0", "DiffAnymal-v0"])
def test_an_environment_refuses_it(robot):
    """B13: at construction, before there is a world to blow up; a step short enough for it is accepted."""
    law = Soft(stiffness=1000.0 * Soft().stiffness)
    with pytest.raises(ValueError, match=re.escape(f"Soft: stiffness is {law.stiffness:g} N/m, expected below")):
        diffenvs.DiffVecEnv(robot, 1, contact=law)
    diffenvs.DiffVecEnv(robot, 1, contact=dataclasses.replace(law, timestep=law.timestep / 30.0))


def test_the_lightest_feet():
    """A point mass is its mass; a ball rolls: at its lowest point 1 / (1/m + r^2 / I) = 2/7 m; no foot, no limit.

    What moves along the vertical only does not slide, and has no limit there.
    """
    rail = BALL.replace("<freejoint/>", '<joint type="slide" axis="0 0 1"/>')
    for xml, expected in ((POINT, (2.0, 2.0)), (BALL, (2.0 / 7.0, 2.0 / 7.0)), (rail, (1.0, math.inf))):
        assert lightest(load_model(xml), Soft(), FLOAT64)[:2] == pytest.approx(expected, rel=1e-3)
    assert lightest(load_model(BALL, contacts=()), Soft(), FLOAT64)[:2] == (math.inf, math.inf)


def largest_gain(law):
    """Energy after a foot's worst landing as a multiple of that before, over many heights, without gravity."""
    worlds = 400
    sim, parameters = point_simulator(POINT.replace("-9.81", "0"), law, worlds, H)
    qpos, qvel = torch.zeros(2, worlds, 3, dtype=torch.float64)
    qpos[:, 2], qvel[:, 2] = torch.linspace(1e-6, H, worlds), -1.0
    _, after = run(sim, parameters, qpos, qvel, 400)
    return float(after[:, 2].abs().max() ** 2)


def test_a_landing_below_the_limit_gains_little_and_above_it_much(monkeypatch):
    """A foot leaves its first step of contact with up to (a - 1) times its speed: the limit is where that is 1."""
    spring = dataclasses.replace(ALONE, stiffness=0.99 * LIMITS["stiffness"])
    inside = largest_gain(spring)
    monkeypatch.setattr(Soft, "require_stable", lambda *_: None)
    outside = largest_gain(dataclasses.replace(spring, stiffness=1.9 * LIMITS["stiffness"]))
    print(f"energy of a landing: {inside:.2f} below the limit, {outside:.1e} beyond it")
    assert inside < 1.1
    assert outside == pytest.approx((1.9 * 2.0 - 1.0) ** 2, rel=0.01)


@pytest.mark.parametrize("robot", ROBOTS)
def test_a_robot_bears_what_is_allowed(robot):
    """B13: every constant at nine tenths of its limit: a second of landing and standing, finite, nobody thrown up."""
    model = load_model(ASSETS / f"{robot}.xml")
    limit, sliding = (0.9 * 2.0 * mass / H for mass in lightest(model, Soft(), FLOAT64)[:2])
    for law in (
        Soft(stiffness=limit / H - 30.0 / H),
        Soft(damping=0.9 * limit),
        Soft(friction_stiffness=sliding),
    ):
        sim = simulator(robot, law, 4, threads=1)
        qpos, qvel, control = states(model, 4, seed=3)
        parameters = sim.default_parameters()
        gap = (sim.feet(qpos, parameters)[..., 2] - parameters.contact_radius).amin(1)
        qpos[:, 2] += 0.02 - gap
        before = qpos[:, 2] + (0.1 + qvel[:, 2].clamp(min=0.0) ** 2) / (2.0 * 9.81)
        highest = qpos[:, 2]
        for _ in range(round(0.6 / (sim.timestep * sim.substeps))):
            motion = sim.simulate(qpos, qvel, control, parameters)
            qpos, qvel = motion.qpos, motion.qvel
            highest = torch.maximum(highest, qpos[:, 2])
        assert bool(motion.finite.all())
        assert (highest < before + 0.15).all()
