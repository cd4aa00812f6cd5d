"""The seam between torch and Warp."""

import dataclasses
import gc
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


def test_simulators_in_four_threads_at_once():
    """Each records its launches while the others allocate, record and run theirs."""

    def work(seed):
        sim = simulator("quadruped", Smoothed(), 20, dtype=torch.float32, threads=1)
        qpos, qvel, control = (x.float() for x in states(sim.model, 20, seed=seed))
        leaf = control.requires_grad_(True)
        for _ in range(3):
            motion = sim.simulate(qpos, qvel, leaf, sim.default_parameters())
            (gradient,) = torch.autograd.grad(motion.qvel.square().sum(), leaf)
        return motion.qvel.detach(), gradient

    expected = [work(seed) for seed in range(4)]
    for _ in range(5):
        with ThreadPoolExecutor(4) as pool:
            for before, now in zip(expected, pool.map(work, range(4)), strict=True):
                assert torch.equal(now[0], before[0])
                assert torch.equal(now[1], before[1])


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


@pytest.mark.parametrize("law", CONTACT)
def test_gradcheck_of_a_control_step(law):
    """A6: torch's own check, every input against every output, in float64."""
    sim = simulator("quadruped", CONTACT[law](), 1, threads=1)
    inputs = [x.requires_grad_(True) for x in states(sim.model, 1, seed=4)]
    parameters = sim.default_parameters()

    def step(qpos, qvel, control):
        motion = sim.simulate(qpos, qvel, control, parameters)
        return motion.qpos, motion.qvel, motion.feet

    assert torch.autograd.gradcheck(step, inputs, eps=1e-6, atol=1e-6, rtol=1e-5)


def test_a_leaf_accumulates_each_backward_once(scene):
    """A7: .grad is what autograd.grad gives; a second backward, of the same graph or of a fresh one, adds it once."""
    leaf, loss = gradient_of(*scene)
    expected = torch.autograd.grad(loss, leaf, retain_graph=True)[0]
    for times in (1, 2):
        loss.backward(retain_graph=True)
        assert torch.equal(leaf.grad, times * expected)
    sim, qpos, qvel, _, parameters, weights = scene
    rollout_loss(sim, qpos, qvel, [leaf] * 4, parameters, weights).sum().backward()
    assert torch.equal(leaf.grad, 2 * expected + expected)


def test_gradients_and_inputs_of_any_layout(scene):
    """A6: transposed, sliced and expanded tensors, as outputs' gradients and as inputs."""
    sim, qpos, qvel, control, parameters, _ = scene
    leaf = control.clone().requires_grad_(True)
    out = sim.simulate(qpos, qvel, leaf, parameters).qvel
    values = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(0))
    expected = torch.autograd.grad(out, leaf, values, retain_graph=True)[0]
    wide = torch.empty(out.shape[0], 2 * out.shape[1], dtype=out.dtype)
    wide[:, ::2] = values
    for seed in (values.T.contiguous().T, wide[:, ::2]):
        assert not seed.is_contiguous()
        assert torch.equal(torch.autograd.grad(out, leaf, seed, retain_graph=True)[0], expected)
    one = torch.autograd.grad(out, leaf, torch.ones_like(out), retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(out, leaf, torch.ones(1, dtype=out.dtype).expand_as(out))[0], one)
    strided = [x.T.contiguous().T for x in (qpos, qvel, control)]
    assert torch.equal(sim.simulate(*strided, parameters).qvel, out.detach())


def test_two_rollouts_alive_at_once(scene):
    """A5: interleaved step by step, each keeps the gradient that it has alone, whichever is asked first."""
    sim, qpos, qvel, control, parameters, weights = scene
    slippery = parameters.replace(friction=0.2 * parameters.friction)
    cases = [(qpos, qvel, control, parameters), (qpos, -qvel, 0.5 * control, slippery)]
    alone = []
    for q, v, u, p in cases:
        leaf, loss = gradient_of(sim, q, v, u, p, weights)
        alone.append(torch.autograd.grad(loss, leaf)[0])
    leaves = [u.clone().requires_grad_(True) for _, _, u, _ in cases]
    now, losses = [(q, v) for q, v, _, _ in cases], [0.0, 0.0]
    for _ in range(4):
        for k, (_, _, _, p) in enumerate(cases):
            motion = sim.simulate(*now[k], leaves[k], p)
            now[k] = motion.qpos, motion.qvel
            step = (weights[0] * motion.qpos).sum(-1) + (weights[1] * motion.qvel).sum(-1)
            losses[k] = losses[k] + step + (weights[2] * motion.feet).sum((-1, -2))
    for k in (1, 0):
        assert torch.equal(torch.autograd.grad(losses[k].sum(), leaves[k])[0], alone[k])


def test_an_exception_in_mid_rollout_leaves_no_trace(scene, monkeypatch):
    """A refused call, and one that fails with its inputs half copied, change neither values nor gradients."""
    sim, qpos, qvel, control, parameters, weights = scene
    leaf, loss = gradient_of(*scene)
    expected = loss.detach().clone(), torch.autograd.grad(loss, leaf)[0]
    short = dataclasses.replace(parameters, mass=parameters.mass[:, :-1], friction=parameters.friction * 0.1)
    leaf = control.clone().requires_grad_(True)
    total = 0.0
    q, v = qpos, qvel

    def fail():
        raise OSError("out of luck")

    for _ in range(4):
        with pytest.raises(ValueError, match="qvel has shape"):
            sim.simulate(q, v[:, :-1], leaf, parameters)
        with pytest.raises(ValueError, match="parameter 'mass' has shape"):
            sim.simulate(q, v, leaf, short)
        monkeypatch.setattr(sim.program, "forward", fail)
        with pytest.raises(OSError, match="out of luck"):
            sim.simulate(2.0 * q, -v, leaf, parameters.replace(friction=parameters.friction * 0.1))
        monkeypatch.undo()
        motion = sim.simulate(q, v, leaf, parameters)
        q, v = motion.qpos, motion.qvel
        total = total + (weights[0] * q).sum(-1) + (weights[1] * v).sum(-1) + (weights[2] * motion.feet).sum((-1, -2))
    assert torch.equal(total.sum().detach(), expected[0])
    assert torch.equal(torch.autograd.grad(total.sum(), leaf)[0], expected[1])


def test_an_edited_parameter_is_caught_in_the_backward_pass(scene):
    """A5: friction changed in place after the forward pass: an error, not the gradient of another world."""
    sim, qpos, qvel, control, parameters, weights = scene
    friction = parameters.friction.clone()
    leaf = control.clone().requires_grad_(True)
    loss = rollout_loss(sim, qpos, qvel, [leaf], parameters.replace(friction=friction), weights).sum()
    friction *= 0.5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def resident_bytes():
    """Memory of this process [B]; None where the system does not say."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.is_file() else None


def test_two_hundred_rollouts_in_flat_memory(scene):
    """Forward and backward: neither Python's objects nor the process grow with the number of rollouts."""

    def rollouts(count):
        for _ in range(count):
            gradient_of(*scene)[1].backward()
        gc.collect()

    rollouts(20)
    before = resident_bytes()
    tracemalloc.start()
    rollouts(20)
    first = tracemalloc.get_traced_memory()[0]
    rollouts(180)
    last = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert last - first < 20_000
    if before is not None:
        assert resident_bytes() - before < 4_000_000


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["mass", "friction", "contact_pos", "kp"])
def test_a_nonfinite_parameter_stays_in_its_world(law, name, bad):
    """NaN or infinity in one world's parameter: every other world's values and gradients are bit-identical."""
    sim = simulator("quadruped", CONTACT[law](), WORLDS, threads=1)
    qpos, qvel, control = states(sim.model, WORLDS, seed=1)
    weights, parameters = loss_weights(sim.model), sim.default_parameters()
    others = torch.tensor([0, 1, 3, 4, 5])

    def result(value):
        leaves = [control.clone().requires_grad_(True), value.clone().requires_grad_(True)]
        used = parameters.replace(**{name: leaves[1]})
        loss = rollout_loss(sim, qpos, qvel, [leaves[0]] * 3, used, weights)
        return loss.detach(), *torch.autograd.grad(loss[others].sum() + loss[2], leaves)

    clean = getattr(parameters, name)
    spoilt = clean.clone()
    spoilt[2] = bad
    for expected, got in zip(result(clean), result(spoilt), strict=True):
        assert torch.equal(got[others], expected[others])
        assert torch.isfinite(got[others]).all()
    for gradient in result(spoilt)[1:]:
        assert torch.isfinite(gradient).all()


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
