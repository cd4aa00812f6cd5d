"""Gradients at the instants at which contact changes: touch-down, lift-off, exact zero gap, zero slip, the cone's edge.

A16: elsewhere these give NaN. Here every law is finite at all of them, and soft and smoothed contact agree there with
differences. A kink has two derivatives, one from either side; a law's gradient at the kink itself is that of one side,
and it is asserted which.
"""

import pytest
import torch

from diffenvs.sim.contact import CONTACT
from tests.sim.differences import directional_error
from tests.sim.points import POINT, G, point_simulator, tensor
from tests.sim.worlds import loss_weights, rollout_loss, simulator, states

ROBOTS = ["quadruped", "anymal_d"]
STEP = {"hard": 0.01, "soft": 0.0005, "smoothed": 0.01}
WEIGHT = tensor([0.7, -0.4, 0.9, 0.3, 0.5, -0.8])[0]


def two_steps(law, state):
    """A number per world (N,) from two steps of a point mass that begin in state (N, 6)."""
    sim, parameters = point_simulator(POINT, CONTACT[law](), len(state), STEP[law])
    qpos, qvel, control = state[:, :3], state[:, 3:], torch.zeros(len(state), 3, dtype=torch.float64)
    total = 0.0
    for _ in range(2):
        motion = sim.simulate(qpos, qvel, control, parameters)
        qpos, qvel = motion.qpos, motion.qvel
        total = total + torch.cat([qpos, qvel], 1) @ WEIGHT
    return total


def gradient_of(law, state):
    leaf = state.clone().requires_grad_(True)
    return torch.autograd.grad(two_steps(law, leaf).sum(), leaf)[0]


def difference(law, state, sides=(1, -1), step=1e-7):
    """Differences (N, 6): central, or from one side with sides (1, 0) or (0, -1)."""
    columns = []
    for direction in torch.eye(6, dtype=torch.float64) * step:
        up, down = [two_steps(law, state + s * direction) for s in sides]
        columns.append((up - down) / (step * (sides[0] - sides[1])))
    return torch.stack(columns, 1)


def instants(law):
    """States of a point mass by name; a gap is that of the middle of the first step."""
    h = STEP[law]
    down, up = -0.5, 0.5
    return {
        "the middle of the step just above the ground": [0.0, 0.0, 1e-6 - 0.5 * h * down, 0.3, 0.1, down],
        "the middle of the step just below the ground": [0.0, 0.0, -1e-6 - 0.5 * h * down, 0.3, 0.1, down],
        "leaving, just below": [0.0, 0.0, -1e-6 - 0.5 * h * up, 0.3, 0.1, up],
        "leaving, just above": [0.0, 0.0, 1e-6 - 0.5 * h * up, 0.3, 0.1, up],
        "deep and standing on its spot": [0.0, 0.0, -0.003, 0.0, 0.0, -0.01],
        "deep and all but still": [0.0, 0.0, -0.003, 1e-12, -1e-12, -0.01],
        "deep and fast": [0.0, 0.0, -0.003, 3.0, -2.0, -0.01],
    }


KINKS = {
    "exact zero gap, approaching": [0.0, 0.0, None, 0.3, 0.1, -0.5],
    "exact zero gap, leaving": [0.0, 0.0, None, 0.3, 0.1, 0.5],
    "exact zero gap at rest": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    "in the ground at exact rest": [0.0, 0.0, -2.0 * G / 1.2e4, 0.0, 0.0, 0.0],
}


def at_kink(law, name):
    row = list(KINKS[name])
    row[2] = -0.5 * STEP[law] * row[5] if row[2] is None else row[2]
    return tensor(row)


@pytest.mark.parametrize("law", CONTACT)
def test_every_instant_has_a_finite_gradient(law):
    """A16, A17, A19: at, and within a micrometre of, every change of contact."""
    rows = [*instants(law).values()]
    state = torch.cat([tensor(*rows), *[at_kink(law, name) for name in KINKS]])
    gradient = gradient_of(law, state)
    assert torch.isfinite(gradient).all()
    # the position along the ground passes through whatever the contact does: weight of x twice, and 3 h/2 of v_x
    torch.testing.assert_close(gradient[:, 0], (2 * WEIGHT[0]).expand(len(state)), rtol=1e-12, atol=0)
    assert (gradient.abs().sum(1) > 0.0).all()


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("name", instants("hard"))
def test_beside_a_kink_the_gradient_is_that_of_small_steps(law, name):
    """A16: a micrometre beside the touch all three laws agree with central differences that stay on their side."""
    state = tensor(instants(law)[name])
    expected = difference(law, state)
    torch.testing.assert_close(gradient_of(law, state), expected, rtol=1e-6, atol=1e-7 * float(expected.norm()))


@pytest.mark.parametrize("name", KINKS)
def test_smoothed_contact_has_no_kink_at_the_ground(name):
    """A16: at an exact zero gap and at exact rest its gradient is that of central differences."""
    state = at_kink("smoothed", name)
    expected = difference("smoothed", state)
    torch.testing.assert_close(gradient_of("smoothed", state), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("law", ["hard", "soft"])
def test_at_exact_zero_gap_the_gradient_is_that_of_a_foot_that_touches(law):
    """d >= 0 is contact: at d = 0 the derivative by the height is the one from below, in which the law is in force."""
    for name in ("exact zero gap, approaching", "exact zero gap, leaving"):
        state = at_kink(law, name)
        # so little lower that no digit of the other derivatives changes
        below = state - tensor([0.0, 0.0, 1e-9, 0.0, 0.0, 0.0])
        torch.testing.assert_close(gradient_of(law, state), gradient_of(law, below), rtol=1e-5, atol=1e-6)
        from_below = difference(law, state, sides=(0, -1))
        torch.testing.assert_close(gradient_of(law, state)[:, 2], from_below[:, 2], rtol=1e-4, atol=1e-4)


def test_soft_friction_is_smooth_through_zero_slip():
    """At rest in its spring a point's friction is linear in the slip, on both sides of zero and at it."""
    state = at_kink("soft", "in the ground at exact rest")
    gradient, expected = gradient_of("soft", state), difference("soft", state)
    for k in (0, 1, 3, 4):
        torch.testing.assert_close(gradient[:, k], expected[:, k], rtol=1e-6, atol=1e-7)
    # the damper acts on approach only: what moves the point up or down has two derivatives, and ours lies between
    up, down = [difference("soft", state, sides=s)[0] for s in ((1, 0), (0, -1))]
    for k in (2, 5):
        assert min(up[k], down[k]) - 1e-6 <= float(gradient[0, k]) <= max(up[k], down[k]) + 1e-6


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("side", [-1e-3, 1e-3])
def test_at_the_edge_of_the_cone(law, side):
    """Just sticking and just sliding: the gradients differ, each is that of differences on its side."""
    h, mu, depth, sinking = STEP[law], 1.0, 0.003, 0.05
    # the slip at which friction reaches mu p_n, one part in a thousand less or more
    if law == "soft":
        slip = mu * (1.2e4 * (depth + 0.5 * h * sinking) + 30.0 * sinking) / 900.0
    else:
        slip = mu * (G * h + sinking)
    state = tensor([0.0, 0.0, -depth, slip * (1.0 + side), 0.0, -sinking])
    gradient, expected = gradient_of(law, state), difference(law, state)
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-7 * float(expected.norm()))
    other = gradient_of(law, tensor([0.0, 0.0, -depth, slip * (1.0 - side), 0.0, -sinking]))
    assert (other - gradient).norm() > 1e-3 * gradient.norm()


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ROBOTS)
def test_a_robot_that_touches_down_and_one_that_lifts_off(robot, law):
    """A16: robots with their lowest foot a hair above and below the ground, falling and rising: two control steps."""
    worlds = 8
    sim = simulator(robot, CONTACT[law](), worlds, threads=1)
    qpos, _, control = states(sim.model, worlds, seed=9)
    qvel = torch.zeros(worlds, sim.model.nv, dtype=torch.float64)
    qvel[:, 2] = torch.tensor([-0.3, 0.3], dtype=torch.float64).repeat(worlds // 2)
    parameters = sim.default_parameters()
    gap = (sim.feet(qpos, parameters)[..., 2] - parameters.contact_radius).amin(1)
    beside = torch.tensor([1e-6, -1e-6, 1e-9, 0.0], dtype=torch.float64).repeat_interleave(2)
    qpos[:, 2] += beside - gap - 0.5 * sim.timestep * qvel[:, 2]
    weights = loss_weights(sim.model)

    def loss(action):
        return rollout_loss(sim, qpos, qvel, [action] * 2, parameters, weights)

    leaf = control.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(leaf).sum(), leaf)
    assert torch.isfinite(gradient).all()
    assert sim.nonfinite_gradients == 0
    assert gradient.norm(dim=1).min() > 1.0
    if law == "hard":
        return
    # the action moves the middle of the first step by nothing, so the touch stays where it is
    error = directional_error(loss, control, gradient, directions=4, seed=3)
    assert error.max() < 1e-6
