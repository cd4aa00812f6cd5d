"""What pen and paper say about bodies that lie, stand, drop and tip on several points."""

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
    """m g h in a step, in equal shares; the friction is none."""
    sim, parameters = simulation(body("capsule"), Hard(), 1, 0.01)
    qpos, qvel = run(sim, parameters, *placed(0.05), 1)
    impulse = sim.contact_impulses()[0]
    expected = tensor([0.0, 0.0, 0.5 * 3.0 * G * 0.01]).expand(2, 3)
    torch.testing.assert_close(impulse, expected, rtol=0, atol=1e-9)
    assert qvel.abs().max() < 1e-9
    torch.testing.assert_close(qpos, placed(0.05)[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", CONTACT)
def test_every_shape_stands_as_deep_as_its_law_says(shape, law):
    """After a second at rest: nothing under hard contact; m g / (n k) on n springs; ln(1 + kappa g h t) / kappa, whatever
    the number of points. The contacts carry the weight."""
    h = STEP[law]
    height, quaternion = STAND[shape]
    sim, parameters = simulation(body(shape), LAWS[law], 1, h)
    touching = int(
        (sim.feet(placed(height, quaternion)[0], parameters)[0, :, 2] - parameters.contact_radius < 1e-6).sum()
    )
    qpos, qvel = run(sim, parameters, *placed(height, quaternion), round(1.0 / h) - 1)
    total = torch.zeros(3, dtype=torch.float64)
    before = qvel[0, 2]
    qpos, qvel = run(sim, parameters, qpos, qvel, 1)
    total = sim.contact_impulses()[0].sum(0)
    sunk = height - float(qpos[0, 2])
    if law == "hard":
        assert abs(sunk) < 1e-3
    elif law == "soft":
        # the damper has let it swing less and less
        assert sunk == pytest.approx(3.0 * G / (touching * 1.2e4), rel=0.2)
    else:
        assert sunk == pytest.approx(math.log(1.0 + 300.0 * G * h * 1.0) / 300.0, rel=0.05)
    assert float(total[2]) == pytest.approx(3.0 * (G * h + float(qvel[0, 2] - before)), rel=1e-9)
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
    """On its side it rests on four, r cos(pi / 8) high; pushed gently it rocks and stays, where a round one rolls away."""
    quaternion = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
    sim, parameters = simulation(body("cylinder"), LAWS[law], 1, STEP[law])
    turn = math.pi / 8
    spin = (math.cos(turn / 2), 0.0, 0.0, math.sin(turn / 2))
    quaternion = np.zeros(4)
    mujoco.mju_mulQuat(quaternion, np.array([math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0]), np.array(spin))
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
    sim, parameters = simulation(model, LAWS[law], 1, STEP[law])
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
    """Dropped limp and askew, it comes to rest within three seconds."""
    model = load_model(CRAWLER)
    law_value = Soft(friction_stiffness=100.0, limit_stiffness=300.0, limit_damping=1.0) if law == "soft" else LAWS[law]
    sim, parameters = simulation(model, law_value, 3, STEP[law])
    qpos = torch.tensor(np.tile(model.qpos0, (3, 1)))
    qpos[:, 3:7] = tensor([1.0, 0.0, 0.0, 0.0], [0.9, 0.3, 0.2, 0.1], [0.3, 0.9, 0.1, -0.2])
    qpos[:, 3:7] /= qpos[:, 3:7].norm(dim=1, keepdim=True)
    qpos, qvel = run(sim, parameters, qpos, torch.zeros(3, model.nv, dtype=torch.float64), round(3.0 / STEP[law]))
    print(f"{law}: fastest {qvel[:, :6].abs().amax(1).tolist()} of the base, {qvel[:, 6:].abs().max():.3f} of a joint")
    assert (qvel[:, :3].norm(dim=1) < 0.05).all()
    assert (qpos[:, 2] < 0.5).all()
