"""Gradients with contacts of every geometry and limits of both kinds at work: against differences, lanes, float32."""

import numpy as np
import pytest
import torch

from diffenvs import bridge
from diffenvs.sim.contact import CONTACT, Hard, Smoothed, Soft
from diffenvs.sim.lanes import with_lanes
from diffenvs.sim.load import load_model
from diffenvs.sim.precision import FLOAT32, FLOAT64
from tests.sim.bodies import EVERYTHING, SHAPES, body
from tests.sim.differences import directional_error
from tests.sim.points import simulation
from tests.sim.worlds import loss_weights, rollout_loss

# EVERYTHING is light for the friction of soft contact
LAWS = {"hard": Hard(), "soft": Soft(friction_stiffness=100.0), "smoothed": Smoothed()}
STEP = {"hard": 0.01, "soft": 0.0005, "smoothed": 0.01}
PARAMETERS = ("friction", "mass", "com", "inertia", "link_pos", "damping", "armature", "contact_pos", "contact_radius")


def states(model, worlds, seed):
    """Bodies at any angle, in and just above the ground; joints within and beyond their range."""
    rng = np.random.default_rng(seed)
    qpos = np.tile(model.qpos0, (worlds, 1))
    qpos[:, 3:7] = rng.normal(size=(worlds, 4))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    qpos[:, 7:] = rng.uniform(-0.7, 0.7, (worlds, model.nq - 7))
    qvel, control = rng.normal(size=(worlds, model.nv)), rng.normal(size=(worlds, model.nu))
    return [torch.tensor(x) for x in (qpos, qvel, control)]


def lowered(sim, parameters, qpos, depth=0.03):
    """With the lowest point so deep in the ground."""
    lowest = (sim.feet(qpos, parameters)[..., 2] - parameters.contact_radius).amin(1)
    qpos = qpos.clone()
    qpos[:, 2] -= lowest + depth
    return qpos


def setting(xml, law, worlds, seed=0):
    """Simulator, parameters and states in contact."""
    sim, parameters = simulation(load_model(xml), LAWS[law], worlds, STEP[law])
    qpos, qvel, control = states(sim.model, worlds, seed)
    return sim, parameters, [lowered(sim, parameters, qpos), qvel, control]


@pytest.mark.parametrize("law", CONTACT)
def test_every_input_and_parameter_of_three_steps(law):
    """With every geometry and both kinds of limit, to 1e-6 of the gradient in a random direction."""
    worlds = 32
    sim, parameters, start = setting(EVERYTHING, law, worlds)
    weights = loss_weights(sim.model)
    values = dict(zip(("qpos", "qvel", "control"), start, strict=True))
    values |= {name: getattr(parameters, name) for name in PARAMETERS}

    def loss(given):
        moved = parameters.replace(**{name: given[name] for name in PARAMETERS})
        return rollout_loss(sim, given["qpos"], given["qvel"], [given["control"]] * 3, moved, weights)

    leaves = {name: value.clone().requires_grad_(True) for name, value in values.items()}
    total = loss(leaves)
    touching, limits = sim.contact_impulses()[..., 2], sim.limit_impulses()
    of_geom = np.array(sim.model.contact_geom)
    for geom in dict.fromkeys(sim.model.contact_geom):
        assert bool((touching[:, torch.tensor(of_geom == geom)] > 1e-6).any()), f"{geom} never touches"
    assert bool((limits > 1e-6).any(0).all())
    gradients = dict(zip(leaves, torch.autograd.grad(total.sum(), list(leaves.values())), strict=True))
    for name, gradient in gradients.items():
        error = directional_error(
            lambda value, name=name: loss({**values, name: value}), values[name], gradient, directions=3, seed=1
        )
        print(f"{law}, {name}: {error.max():.1e}")
        assert float(error.max()) < 1e-6, name


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", CONTACT)
def test_a_shape_in_contact(law, shape):
    """Each geometry by itself, by state, friction and the place of its points."""
    sim, parameters, (qpos, qvel, control) = setting(body(shape), law, 12, seed=3)
    weights = loss_weights(sim.model)
    values = {"qpos": qpos, "qvel": qvel, "friction": parameters.friction, "contact_pos": parameters.contact_pos}

    def loss(given):
        moved = parameters.replace(friction=given["friction"], contact_pos=given["contact_pos"])
        return rollout_loss(sim, given["qpos"], given["qvel"], [control] * 2, moved, weights)

    leaves = {name: value.clone().requires_grad_(True) for name, value in values.items()}
    total = loss(leaves)
    assert bool((sim.contact_impulses()[..., 2].amax(1) > 1e-6).any())
    gradients = dict(zip(leaves, torch.autograd.grad(total.sum(), list(leaves.values())), strict=True))
    for name, gradient in gradients.items():
        error = directional_error(
            lambda value, name=name: loss({**values, name: value}), values[name], gradient, directions=2, seed=2
        )
        assert float(error.max()) < 1e-6, name


def in_precision(monkeypatch, precision, law, worlds=13):
    """Loss of four steps and its gradients, per world, computed in a precision."""
    monkeypatch.setattr(bridge, "precision_for", lambda name, device: precision)
    dtype = torch.float64 if precision.name == "float64" else torch.float32
    sim, parameters = simulation(load_model(EVERYTHING), LAWS[law], worlds, STEP[law], dtype=dtype)
    qpos, qvel, control = (x.float().to(dtype) for x in states(sim.model, worlds, 5))
    qpos = lowered(sim, parameters, qpos).float().to(dtype)
    leaves = [x.clone().requires_grad_(True) for x in (qpos, qvel, control, parameters.friction, parameters.mass)]
    parameters = parameters.replace(friction=leaves[3], mass=leaves[4])
    weights = [w.to(dtype) for w in loss_weights(sim.model)]
    loss = rollout_loss(sim, leaves[0], leaves[1], [leaves[2]] * 4, parameters, weights)
    assert (sim.contact_impulses()[..., 2] > 0.0).any()
    assert (sim.limit_impulses() > 0.0).any()
    return [loss.detach(), *torch.autograd.grad(loss.sum(), leaves)]


@pytest.mark.parametrize("law", CONTACT)
def test_lanes_and_single_worlds_agree(monkeypatch, law):
    """Both builds are as far from float64 as float32 is; worlds do not know how many they are."""
    exact = in_precision(monkeypatch, FLOAT64, law)
    single = in_precision(monkeypatch, FLOAT32, law)
    side_by_side = in_precision(monkeypatch, with_lanes(FLOAT32, 16), law)
    for truth, one, many in zip(exact, single, side_by_side, strict=True):
        error, usual = (float((x.double() - truth).norm() / truth.norm()) for x in (many, one))
        print(f"{law}: float32 is off by {usual:.1e}, in lanes by {error:.1e}")
        assert usual < 1e-3
        assert error < max(5.0 * usual, 1e-6)
