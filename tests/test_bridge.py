"""The seam between torch and Warp."""

import pytest
import torch

from diffenvs.bridge import Simulator
from diffenvs.sim.contact import CONTACT, Smoothed
from tests.sim.worlds import loss_weights, rollout_loss, simulator, states

WORLDS = 6


@pytest.fixture(scope="module")
def scene():
    sim = simulator("quadruped", Smoothed(), WORLDS)
    qpos, qvel, control = states(sim.model, WORLDS, seed=0)
    return sim, qpos, qvel, control, sim.default_parameters(), loss_weights(sim.model)


def gradient_of(sim, qpos, qvel, control, parameters, weights, steps=4):
    leaf = control.clone().requires_grad_(True)
    loss = rollout_loss(sim, qpos, qvel, [leaf] * steps, parameters, weights).sum()
    return leaf, loss


def test_backward_twice_gives_the_same(scene):
    leaf, loss = gradient_of(*scene)
    first = torch.autograd.grad(loss, leaf, retain_graph=True)[0]
    second = torch.autograd.grad(loss, leaf)[0]
    assert torch.equal(first, second)


def test_a_reused_output_gradient_is_left_alone(scene):
    sim, qpos, qvel, control, parameters, _ = scene
    leaf = control.clone().requires_grad_(True)
    out = sim.simulate(qpos, qvel, leaf, parameters).qvel
    seed = torch.ones_like(out)
    grads = [torch.autograd.grad(out, leaf, seed, retain_graph=True)[0] for _ in range(5)]
    assert all(torch.equal(g, grads[0]) for g in grads)
    assert torch.equal(seed, torch.ones_like(out))


def test_backward_after_other_work_on_the_simulator(scene):
    sim, qpos, qvel, control, parameters, weights = scene
    leaf, loss = gradient_of(*scene)
    at_once = torch.autograd.grad(loss, leaf, retain_graph=True)[0]
    other = parameters.replace(friction=parameters.friction * 0.3)
    rollout_loss(sim, qpos, qvel + 1.0, [control * 0.5] * 8, other, weights)
    assert torch.equal(torch.autograd.grad(loss, leaf)[0], at_once)


def test_an_edit_between_forward_and_backward_is_caught(scene):
    sim, qpos, qvel, control, parameters, weights = scene
    edited = qvel.clone()
    leaf = control.clone().requires_grad_(True)
    loss = rollout_loss(sim, qpos, edited, [leaf], parameters, weights).sum()
    edited += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_an_edited_parameter_is_read_again(scene):
    sim, qpos, qvel, control, parameters, _ = scene
    friction = parameters.friction.clone()
    mine = parameters.replace(friction=friction)
    with torch.no_grad():
        before = sim.simulate(qpos, qvel, control, mine).qvel
        friction.zero_()
        after = sim.simulate(qpos, qvel, control, mine).qvel
    assert not torch.equal(before, after)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_same_values_without_a_graph(scene, mode):
    sim, qpos, qvel, control, parameters, _ = scene
    with_graph = sim.simulate(qpos, qvel, control.clone().requires_grad_(True), parameters)
    with mode():
        without = sim.simulate(qpos, qvel, control, parameters)
    assert torch.equal(with_graph.qpos.detach(), without.qpos)
    assert torch.equal(with_graph.feet.detach(), without.feet)


@pytest.mark.parametrize("law", CONTACT)
def test_a_world_depends_neither_on_the_others_nor_on_the_threads(law):
    results = []
    for worlds, threads in ((3, 1), (7, 1), (7, 2)):
        sim = simulator("quadruped", CONTACT[law](), worlds, threads=threads)
        qpos, qvel, control = (x[:worlds] for x in states(sim.model, 7, seed=1))
        leaf = control.clone().requires_grad_(True)
        loss = rollout_loss(sim, qpos, qvel, [leaf] * 3, sim.default_parameters(), loss_weights(sim.model))
        (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        results.append((loss.detach()[:3], gradient[:3]))
    for loss, gradient in results[1:]:
        assert torch.equal(loss, results[0][0])
        assert torch.equal(gradient, results[0][1])


@pytest.mark.parametrize("law", CONTACT)
def test_a_nonfinite_world_stays_alone(law):
    sim = simulator("quadruped", CONTACT[law](), WORLDS)
    qpos, qvel, control = states(sim.model, WORLDS, seed=1)
    weights, parameters = loss_weights(sim.model), sim.default_parameters()
    clean = control.clone().requires_grad_(True)
    reference = rollout_loss(sim, qpos, qvel, [clean] * 2, parameters, weights)
    (expected,) = torch.autograd.grad(reference.sum(), clean)
    qvel[2, 4] = float("nan")
    leaf = control.clone().requires_grad_(True)
    motion = sim.simulate(qpos, qvel, leaf, parameters)
    assert motion.finite.tolist() == [True, True, False, True, True, True]
    loss = rollout_loss(sim, qpos, qvel, [leaf] * 2, parameters, weights)
    others = torch.tensor([0, 1, 3, 4, 5])
    assert torch.equal(loss[others].detach(), reference[others].detach())
    counted = sim.nonfinite_gradients
    (gradient,) = torch.autograd.grad(loss.sum(), leaf)
    assert torch.equal(gradient[others], expected[others])
    assert torch.equal(gradient[2], torch.zeros_like(gradient[2]))
    assert sim.nonfinite_gradients > counted


@pytest.mark.parametrize("law", CONTACT)
def test_float32_agrees_with_float64(law):
    results = {}
    for dtype in (torch.float32, torch.float64):
        sim = simulator("quadruped", CONTACT[law](), WORLDS, dtype=dtype)
        qpos, qvel, control = states(sim.model, WORLDS, seed=2, dtype=dtype)
        leaf = control.clone().requires_grad_(True)
        weights = [w.to(dtype) for w in loss_weights(sim.model)]
        loss = rollout_loss(sim, qpos, qvel, [leaf] * 2, sim.default_parameters(), weights)
        results[dtype] = torch.autograd.grad(loss.sum(), leaf)[0].double()
    wide, narrow = results[torch.float64], results[torch.float32]
    error = (wide - narrow).norm(dim=1) / wide.norm(dim=1)
    assert error.median() < 1e-4
    assert error.max() < 1e-2


def test_bad_arguments_are_one_sentence(scene):
    sim, qpos, qvel, control, parameters, _ = scene
    with pytest.raises(ValueError, match=r"qvel has shape \(6, 17\).*expected \(6, 18\)"):
        sim.simulate(qpos, qvel[:, :-1], control, parameters)
    with pytest.raises(ValueError, match="control has shape .*float32"):
        sim.simulate(qpos, qvel, control.float(), parameters)
    with pytest.raises(ValueError, match="parameter 'colour' is unknown"):
        parameters.replace(colour=qpos)
    with pytest.raises(ValueError, match=r"parameter 'mass' has shape \(3,\)"):
        parameters.replace(mass=torch.zeros(3))
    build = {"control_timestep": 0.01, "timestep": 0.01}
    for options, message in (
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"dtype": torch.float16}, "dtype is torch.float16"),
        ({"threads": 0}, "threads is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Simulator(sim.model, Smoothed(), 2, **build, **options)
    with pytest.raises(ValueError, match="num_worlds is 0"):
        Simulator(sim.model, Smoothed(), 0, **build)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no CUDA GPU is available"):
            Simulator(sim.model, Smoothed(), 2, device="cuda", **build)
