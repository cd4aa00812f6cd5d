"""Several worlds in the lanes of one scalar do what each of them does alone."""

import numpy as np
import pytest
import torch
import warp as wp

from diffenvs import bridge
from diffenvs.sim.contact import CONTACT, Smoothed
from diffenvs.sim.exchange import Port
from diffenvs.sim.lanes import precision_for, with_lanes
from diffenvs.sim.precision import FLOAT32, FLOAT64
from diffenvs.sim.workspace import Field, Workspace
from tests.sim.worlds import loss_weights, rollout_loss, simulator, states

WIDTHS = [8, 16]


def gradients(monkeypatch, precision, robot, law, worlds=13, broken=None):
    """Loss of five control steps in contact, and its gradients by state, control, friction and masses, per world.

    The first so many of 33 states.
    """
    monkeypatch.setattr(bridge, "precision_for", lambda name, device: precision)
    dtype = {"float32": torch.float32, "float64": torch.float64}[precision.name.split()[0]]
    sim = simulator(robot, CONTACT[law](), worlds, dtype=dtype, threads=1)
    assert sim.program.precision.lanes == precision.lanes
    qpos, qvel, control = [x[:worlds].float().to(dtype) for x in states(sim.model, 33, 3)]
    qpos[:, 2] -= 0.01
    if broken is not None:
        qvel[broken, 7] = float("nan")
    parameters = sim.default_parameters()
    leaves = [x.clone().requires_grad_(True) for x in (qpos, qvel, control, parameters.friction, parameters.mass)]
    parameters = parameters.replace(friction=leaves[3], mass=leaves[4])
    weights = [w.to(dtype) for w in loss_weights(sim.model)]
    loss = rollout_loss(sim, leaves[0], leaves[1], [leaves[2]] * 5, parameters, weights)
    assert (sim.contact_impulses()[..., 2] > 0.0).any()
    return [loss.detach(), *torch.autograd.grad(loss.sum(), leaves)]


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_lanes_and_single_worlds_agree(monkeypatch, robot, law, lanes):
    """13 worlds fill no number of lanes. Both builds are as far from float64 as float32 is."""
    wide = gradients(monkeypatch, FLOAT64, robot, law)
    single = gradients(monkeypatch, FLOAT32, robot, law)
    side_by_side = gradients(monkeypatch, with_lanes(FLOAT32, lanes), robot, law)
    for exact, one, many in zip(wide, single, side_by_side, strict=True):
        error, usual = [float((x.double() - exact).norm() / exact.norm()) for x in (many, one)]
        assert usual < 1e-4
        assert error < max(5.0 * usual, 1e-6)


@pytest.mark.parametrize("law", CONTACT)
def test_a_broken_world_leaves_the_other_lanes_alone(monkeypatch, law):
    """Bit by bit, in value and gradient, whichever lane it is in."""
    precision = with_lanes(FLOAT32, 8)
    whole = gradients(monkeypatch, precision, "quadruped", law, worlds=8)
    for world in (0, 5, 7):
        others = torch.arange(8) != world
        for expected, found in zip(whole, gradients(monkeypatch, precision, "quadruped", law, 8, world), strict=True):
            assert torch.equal(found[others], expected[others])


@pytest.mark.parametrize("law", CONTACT)
def test_a_lane_is_as_good_as_another(monkeypatch, law):
    """World i gives the same bits whatever the number of worlds, and with it of empty lanes."""
    precision = with_lanes(FLOAT32, 16)
    many = gradients(monkeypatch, precision, "quadruped", law, worlds=33)
    for worlds in (1, 16, 17):
        few = gradients(monkeypatch, precision, "quadruped", law, worlds=worlds)
        for a, b in zip(few, many, strict=True):
            assert torch.equal(a, b[:worlds])


def test_threads_share_the_groups(monkeypatch):
    """One thread and two, of which one gets the group that is not full."""
    results = []
    for threads in (1, 2):
        sim = simulator("quadruped", Smoothed(), 33, dtype=torch.float32, threads=threads)
        leaves = [x.float().requires_grad_(True) for x in states(sim.model, 33, 3)]
        motion = sim.simulate(*leaves, sim.default_parameters())
        results.append([*torch.autograd.grad(motion.qvel.square().sum(), leaves), motion.qpos.detach()])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def elementary(lanes):
    """Kernel of one argument x and one result (11,) per group."""
    precision = with_lanes(FLOAT32, lanes)
    real, vec3, mat33 = precision.real, precision.vec3, precision.mat33

    @wp.kernel(module="unique", module_options=precision.options)
    def kernel(half: wp.float64, x: wp.array2d(dtype=real), y: wp.array2d(dtype=real)):
        w = wp.tid()
        a = x[w, 0]
        h = real(half)
        y[w, 0] = wp.sin(a)
        y[w, 1] = wp.cos(a)
        y[w, 2] = wp.exp(a)
        y[w, 3] = wp.sqrt(a * a + h)
        y[w, 4] = wp.min(a, h)
        y[w, 5] = wp.max(a, h)
        y[w, 6] = wp.clamp(a, -h, h)
        y[w, 7] = a / (a * a + h)
        y[w, 8] = wp.step(a)
        v = wp.normalize(vec3(a, h, h))
        y[w, 9] = v[0]
        m = mat33(a, h, h, h, a, h, h, h, a)
        y[w, 10] = wp.dot(m * v, wp.cross(v, vec3(h, a, h)))

    return kernel


NUMBERS = np.array(
    [-87.0, -31.4, -3.0, -0.6, -0.1, -1e-6, 0.0, 1e-7, 0.2, 0.5001, 0.8, 1.5708, 3.0, 6.2832, 40.0, 88.0]
)


def expected(a):
    """The same in float64."""
    h = 0.5
    v = np.stack([a, np.full_like(a, h), np.full_like(a, h)], -1)
    v = v / np.linalg.norm(v, axis=-1, keepdims=True)
    m = h * np.ones((3, 3)) + (a - h)[:, None, None] * np.eye(3)
    turned = np.cross(v, np.stack([np.full_like(a, h), a, np.full_like(a, h)], -1))
    columns = [np.sin(a), np.cos(a), np.exp(a), np.sqrt(a * a + h), np.minimum(a, h), np.maximum(a, h)]
    columns += [np.clip(a, -h, h), a / (a * a + h), (a < 0.0) * 1.0, v[:, 0]]
    return np.stack([*columns, np.einsum("nij,nj,ni->n", m, v, turned)], -1)


@pytest.mark.parametrize("lanes", WIDTHS)
def test_functions_of_a_lane(lanes):
    """To float32's rounding, in value and in derivative."""
    kernel = elementary(lanes)
    groups = len(NUMBERS) // lanes
    precision = with_lanes(FLOAT32, lanes)
    space = Workspace(
        [Field("x", precision.real, (1,)), Field("y", precision.real, (11,))],
        **{"rows": groups, "slots": 1, "precision": precision, "device": "cpu", "gradient": True},
    )
    x, y = space.slots[0].x, space.slots[0].y
    block = np.zeros((groups, 12, lanes), dtype=np.float32)
    block[:, 0] = NUMBERS.reshape(groups, lanes)
    space.blocks[0].assign(block)
    wp.launch(kernel, dim=groups, inputs=[0.5, x, y])
    found = space.read("y").astype(np.float64)
    given = NUMBERS.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(found, expected(given), rtol=6e-7, atol=2e-7)

    step = 1e-6
    slope = (expected(given + step) - expected(given - step)) / (2.0 * step)
    smooth = np.abs(np.abs(given) - 0.5) > 1e-3
    for column in range(11):
        seed = np.zeros((groups, 12, lanes), dtype=np.float32)
        seed[:, 1 + column] = 1.0
        space.gradient.assign(seed)
        wp.launch(kernel, dim=groups, inputs=[0.5, x, y], adjoint=True, adj_inputs=[None, x.grad, y.grad])
        derivative = space.gradient.numpy()[:, 0].reshape(-1)
        wanted = np.zeros_like(given) if column == 8 else slope[:, column]
        np.testing.assert_allclose(derivative[smooth], wanted[smooth], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lanes", WIDTHS)
def test_what_is_not_a_number_stays_so(lanes):
    kernel = elementary(lanes)
    precision = with_lanes(FLOAT32, lanes)
    fields = [Field("x", precision.real, (1,)), Field("y", precision.real, (11,))]
    space = Workspace(fields, rows=1, slots=1, precision=precision, device="cpu")
    space.blocks[0].fill_(float("nan"))
    wp.launch(kernel, dim=1, inputs=[0.5, space.slots[0].x, space.slots[0].y])
    found = space.read("y")[0]
    assert np.isnan(found[[0, 1, 2, 3, 7, 9, 10]]).all()
    assert not np.isnan(found[8])


@pytest.mark.parametrize("worlds", [1, 7, 8, 9, 24])
def test_rows_come_back_as_they_went(worlds):
    """In and out of groups, with lanes to spare or none, and only as many columns as asked for."""
    precision = with_lanes(FLOAT32, 8)
    port = Port(
        [Field("a", FLOAT32.vec3, (2,)), Field("b", FLOAT32.real, ())], worlds=worlds, precision=precision, device="cpu"
    )
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(worlds, 2, 3)).astype(np.float32), rng.normal(size=worlds).astype(np.float32)
    port.rows.a.assign(a)
    port.rows.b.assign(b)
    groups = -(-worlds // 8)
    for command in port.enter(0, groups):
        command.launch()
    port.rows.a.zero_()
    port.rows.b.zero_()
    for command in port.leave(0, groups, columns=6):
        command.launch()
    assert np.array_equal(port.rows.a.numpy(), a)
    assert not port.rows.b.numpy().any()
    for command in port.leave(0, groups):
        command.launch()
    assert np.array_equal(port.rows.b.numpy(), b)


def test_blocks_begin_where_vector_registers_want_them():
    for lanes in (1, 8, 16):
        precision = FLOAT32 if lanes == 1 else with_lanes(FLOAT32, lanes)
        for rows in (1, 3):
            space = Workspace(
                [Field("a", precision.real, (5,))], rows=rows, slots=2, precision=precision, device="cpu", gradient=True
            )
            assert [block.ptr % 64 for block in (*space.blocks, space.gradient)] == [0, 0, 0]


def test_float64_and_cuda_take_one_world_at_a_time():
    assert precision_for("float64", "cpu") is FLOAT64
    assert precision_for("float32", "cuda") is FLOAT32
    assert precision_for("float32", "cpu").lanes in WIDTHS
    assert precision_for("float32", "cpu") is precision_for("float32", "cpu")


def test_kernels_do_not_depend_on_the_number_of_worlds():
    """F5: a second simulation of another size compiles nothing."""
    first = simulator("quadruped", Smoothed(), 3, dtype=torch.float32)
    second = simulator("quadruped", Smoothed(kappa=50.0), 40, dtype=torch.float32)
    assert first.law.kernels(first.program.precision) is second.law.kernels(second.program.precision)
