"""What pen and paper say about bodies that lie, stand, drop and tip on several points."""

import dataclasses
import math

import mujoco
import numpy as np
import pytest
import torch

from diffenvs.sim.contact import CONTACT, Hard, Smoothed, Soft
from diffenvs.sim.load import load_model
from tests.sim.bodies import CRAWLER, EVERYTHING, SHAPES, body
from tests.sim.points import G, run, simulation, tensor

# Soft friction is a damper that small bodies bear less of.
LAWS = {"hard": Hard(), "soft": Soft(friction_stiffness=300.0), "smoothed": Smoothed()}
STEP = {"hard": 0.01, "soft": 0.0005, "smoothed": 0.01}
# heights [m] of the body's origin at which each shape stands or lies, and the quaternion
STAND = {
    "sphere": (0.1, (1, 0, 0, 0)),
    "capsule": (0.05, (1, 0, 0, 0)),
    "box": (0.1, (1, 0, 0, 0)),
    "cylinder": (0.2, (1, 0, 0, 0)),
    "mesh": (0.0, (1, 0, 0, 0)),
}


def placed(height, quaternion=(1, 0, 0, 0), speed=0.0):
    """State of a free body, moving down."""
    return tensor([0.0, 0.0, height, *quaternion]), tensor([0.0, 0.0, -speed, 0.0, 0.0, 0.0])


def energy(m, qpos, qvel):
    """[J] of motion and of height, by MuJoCo."""
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(m, data)
    mujoco.mj_energyPos(m, data)
    mujoco.mj_energyVel(m, data)
    return data.energy.sum()


def test_a_lying_capsule_carries_its_weight_on_two_ends():
    """m g h in a step, in equal shares; the friction of the two ends cancels."""
    sim, parameters = simulation(body("capsule"), Hard(sweeps=50), 1, 0.01)
    # touching, whichever way the last digit is rounded
    start = placed(0.05 - 1e-9)
    qpos, qvel = run(sim, parameters, *start, 1)
    impulse, share = sim.contact_impulses()[0], 0.5 * 3.0 * G * 0.01
    torch.testing.assert_close(impulse[:, 2], tensor(share, share), rtol=0, atol=1e-6)
    torch.testing.assert_close(impulse.sum(0)[:2], tensor(0.0, 0.0), rtol=0, atol=1e-6)
    assert qvel.abs().max() < 1e-6
    torch.testing.assert_close(qpos, start[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", CONTACT)
def test_a_shape_on_a_rail_falls_and_stands_as_its_law_says(shape, law):
    """On a vertical rail, m = 3 kg on n points that are all as deep (d, at mid-step): every velocity and impulse of the
    second that follows the drop. With f = v - g h:
    hard:     v+ = 0 where d >= 0, else f
    soft:     v+ = f + n h (k d - k_d min(v, 0)) / m where d >= 0
    smoothed: every point solves m (f + v_others) + p = 0 where the others take part by s = sigmoid(kappa d), so that
              (1 + (n - 1) s) p = -m f and v+ = f + n s p / m, none of it where f > 0.
    """
    h, m, dropped = STEP[law], 3.0, 0.02
    # a rim of eight points, of which each moves as all do, wants many sweeps
    value = LAWS[law] if law == "soft" else dataclasses.replace(LAWS[law], sweeps=400)
    height, _ = STAND[shape]
    sim, parameters = simulation(body(shape, '<joint type="slide" axis="0 0 1"/>'), value, 1, h)
    # the joint's zero is at one metre
    z, v = tensor([height + dropped - 1.0]), tensor([0.0])
    touching = int((sim.feet(z, parameters)[0, :, 2] - parameters.contact_radius[0] < dropped + 1e-6).sum())
    gap, speed = dropped, 0.0
    # MuJoCo keeps the corners of a mesh in single precision
    tolerance = 1e-6 if shape == "mesh" else 1e-9
    for _ in range(round(1.0 / h)):
        z, v = run(sim, parameters, z, v, 1)
        depth, free = -(gap + 0.5 * h * speed), speed - G * h
        after = free
        if law == "hard":
            after = free if depth < 0.0 else max(free, 0.0)
        elif law == "soft" and depth >= 0.0:
            after = free + touching * h * (1.2e4 * depth - 30.0 * min(speed, 0.0)) / m
        elif law == "smoothed":
            s = 1.0 / (1.0 + math.exp(-300.0 * depth))
            after = free - touching * s * min(free, 0.0) / (1.0 + (touching - 1) * s)
        gap, speed = gap + 0.5 * h * (speed + after), after
        assert float(v) == pytest.approx(speed, abs=tolerance)
        assert float(sim.contact_impulses()[0, :, 2].sum()) == pytest.approx(m * (after - free), abs=10 * tolerance)
    assert float(z) == pytest.approx(height + gap - 1.0, abs=tolerance)
    assert gap < 0.0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", CONTACT)
def test_a_free_shape_stays_where_it_stands(shape, law):
    """For two seconds, with ten sweeps: upright, and no deeper than its law lets a single point sink.

    Ten sweeps are few for the eight points of a rim: a cylinder wobbles by a degree. With fifty it stands still.
    """
    h = STEP[law]
    height, quaternion = STAND[shape]
    sim, parameters = simulation(body(shape), LAWS[law], 1, h)
    qpos, qvel = run(sim, parameters, *placed(height - 1e-6, quaternion), round(2.0 / h))
    upright = torch.linalg.vector_norm(qpos[0, 3:] - tensor(quaternion))
    sinks = {"hard": 1e-3, "soft": 3.0 * G / 1.2e4, "smoothed": math.log(1.0 + 300.0 * G * h * 2.0) / 300.0}[law]
    print(f"{shape}, {law}: {height - float(qpos[0, 2]):.6f} m down, {upright:.6f} askew, {qvel.abs().max():.6f}")
    assert -1e-5 < height - float(qpos[0, 2]) < 1.2 * sinks
    assert upright < 0.02
    assert qvel.abs().max() < 0.02


def test_a_box_dropped_flat_stops_dead():
    """Hard contact is plastic: one step after it meets the ground it rests, as deep as it came to in that step."""
    h, speed, depth = 0.01, 1.0, 0.002
    sim, parameters = simulation(body("box"), Hard(sweeps=100), 1, h)
    qpos, qvel = placed(0.1 - depth, speed=speed)
    qvel = qvel.requires_grad_(True)
    after, speed_after = run(sim, parameters, qpos, qvel, 1)
    assert speed_after.abs().max() < 1e-6
    assert float(after[0, 2].detach()) == pytest.approx(0.1 - depth - 0.5 * h * speed, abs=1e-8)
    (by_speed,) = torch.autograd.grad(speed_after[0, 2], qvel)
    assert by_speed.abs().max() < 1e-6
    # ten sweeps leave a little of it, and the next steps the rest; nothing is thrown up
    sim, parameters = simulation(body("box"), Hard(), 1, h)
    qpos, qvel = run(sim, parameters, *placed(0.1 - depth, speed=speed), 1)
    assert qvel.abs().max() < 0.05 * speed
    for _ in range(100):
        qpos, qvel = run(sim, parameters, qpos, qvel, 1)
        assert float(qvel[0, 2]) < 0.01
    assert qvel.abs().max() < 1e-4


@pytest.mark.parametrize("law", CONTACT)
def test_a_box_on_its_edge_tips_to_the_side_that_it_leans_to(law):
    """A box of 0.4 x 0.2 m balances on an edge at atan2(0.2, 0.1) from flat. Short of it, it falls back onto its base;
    beyond it, onto its side."""
    balance = math.atan2(0.2, 0.1)
    for lean, height, cosine in ((-0.15, 0.1, 1.0), (0.15, 0.2, 0.0)):
        angle = balance + lean
        start = math.hypot(0.2, 0.1) * math.cos(lean)
        quaternion = (math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0)
        sim, parameters = simulation(body("box"), LAWS[law], 1, STEP[law])
        qpos, qvel = run(sim, parameters, *placed(start, quaternion), round(3.0 / STEP[law]))
        up = 1.0 - 2.0 * float(qpos[0, 4] ** 2 + qpos[0, 5] ** 2)
        assert abs(up - cosine) < 0.05
        assert float(qpos[0, 2]) == pytest.approx(height, abs=0.03)
        assert qvel.abs().max() < 0.05


@pytest.mark.parametrize("law", CONTACT)
def test_a_cylinder_rolls_over_its_points(law):
    """On its side it rests on four, r cos(pi / 8) high; pushed gently it stays, where a round one rolls away."""
    sim, parameters = simulation(body("cylinder"), LAWS[law], 1, STEP[law])
    quaternion = np.zeros(4)
    lying, turned = np.array([1.0, 1.0, 0.0, 0.0]) / math.sqrt(2.0), math.pi / 8
    mujoco.mju_mulQuat(quaternion, lying, np.array([math.cos(turned / 2), 0.0, 0.0, math.sin(turned / 2)]))
    height = 0.1 * math.cos(math.pi / 8)
    qpos, qvel = placed(height, quaternion)
    qvel[0, 0] = 0.05
    qpos, qvel = run(sim, parameters, qpos, qvel, round(2.0 / STEP[law]))
    assert float(qpos[0, 2]) == pytest.approx(height, abs=0.02)
    assert abs(float(qpos[0, 0])) < 0.03
    assert qvel.abs().max() < 0.05


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("shape", ["box", "cylinder", "mesh", "everything"])
def test_energy_is_never_gained(shape, law):
    """Dropped with a spin: the energy of motion and height never exceeds that at the start by more than what the free
    flight of this integrator adds, half a percent."""
    xml = EVERYTHING if shape == "everything" else body(shape)
    model, m = load_model(xml), mujoco.MjModel.from_xml_string(xml)
    sim, parameters = simulation(model, Soft(friction_stiffness=100.0) if law == "soft" else LAWS[law], 1, STEP[law])
    qpos, qvel = torch.tensor(model.qpos0[None].copy()), torch.zeros(1, model.nv, dtype=torch.float64)
    qpos[0, 2] = 0.6
    qvel[0, :6] = tensor(0.5, 0.3, 0.0, 1.0, -2.0, 1.5)
    start = energy(m, qpos[0].numpy(), qvel[0].numpy())
    highest = start
    for _ in range(round(1.5 / 0.01)):
        qpos, qvel = run(sim, parameters, qpos, qvel, round(0.01 / STEP[law]))
        highest = max(highest, energy(m, qpos[0].numpy(), qvel[0].numpy()))
    assert highest < 1.005 * start
    assert energy(m, qpos[0].numpy(), qvel[0].numpy()) < 0.7 * start


@pytest.mark.parametrize("law", CONTACT)
def test_a_fallen_robot_lies_still(law):
    """Dropped limp and askew, its base rests after three seconds, and all of it a second later.

    Under soft contact, whose friction is a damper, one that landed on its round trunk rolls a second longer.
    """
    model = load_model(CRAWLER)
    law_value = Soft(friction_stiffness=100.0, limit_stiffness=300.0, limit_damping=1.0) if law == "soft" else LAWS[law]
    at_rest = 4.0 if law == "soft" else 3.0
    sim, parameters = simulation(model, law_value, 3, STEP[law])
    qpos = torch.tensor(np.tile(model.qpos0, (3, 1)))
    qpos[:, 3:7] = tensor([1.0, 0.0, 0.0, 0.0], [0.9, 0.3, 0.2, 0.1], [0.3, 0.9, 0.1, -0.2])
    qpos[:, 3:7] /= qpos[:, 3:7].norm(dim=1, keepdim=True)
    qpos, qvel = run(sim, parameters, qpos, torch.zeros(3, model.nv, dtype=torch.float64), round(at_rest / STEP[law]))
    assert (qvel[:, :3].norm(dim=1) < 0.05).all()
    # one lands on its round trunk and rolls for a while
    qpos, qvel = run(sim, parameters, qpos, qvel, round(1.0 / STEP[law]))
    print(f"{law}: fastest {qvel[:, :6].abs().amax(1).tolist()} of the base, {qvel[:, 6:].abs().max():.3f} of a joint")
    assert (qvel.abs() < 0.05).all()
    assert (qpos[:, 2] < 0.5).all()
