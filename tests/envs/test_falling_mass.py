"""The falling mass against pen and paper: its optimum, the gradient of its return in flight and through the ground."""

import math

import pytest
import torch

import diffenvs
from diffenvs.sim.contact import CONTACT, Smoothed

H, N, M, F, G = 0.01, 20, 1.0, 30.0, 9.81
# no thrust at all
LET_GO = -M * G / F
EFFORT, HEIGHT, VELOCITY, TARGET = 0.1, 100.0, 1.0, 0.1


def make(num_envs=2, **kwargs):
    env = diffenvs.DiffVecEnv("DiffFallingMass-v0", num_envs, threads=1, dtype="float64", array_type="torch", **kwargs)
    env.reset(seed=0)
    return env


def drop(env, heights):
    """Every world at its height, at -1 m/s."""
    qpos = torch.as_tensor(heights, dtype=torch.float64)[:, None]
    env.state = env.state.replace(qpos=qpos, qvel=-torch.ones_like(qpos), elapsed=torch.zeros(len(qpos)).long())


def returns(env, actions):
    """Return (N,) of an episode under actions (N, 20), and the last states."""
    with env.rollout(N) as rollout:
        for k in range(N):
            rollout.step(actions[:, k : k + 1])
    assert rollout.terminated[-1].all()
    assert not rollout.terminated[:-1].any()
    return rollout.rewards.sum(0), rollout.final_observations[-1]


def reach(steps=N):
    """B (2, steps): change of the last height and velocity by every action."""
    rows = [[H * H * (steps - k - 0.5) * F / M for k in range(steps)], [H * F / M] * steps]
    return torch.tensor(rows, dtype=torch.float64)


def missed(heights):
    """e (n, 2): what height and velocity miss their targets by under actions of zero, without ground."""
    z0 = torch.as_tensor(heights, dtype=torch.float64)
    return torch.stack((z0 - N * H - TARGET, -torch.ones_like(z0)), 1)


def least_cost(e, b):
    """(n,): w_e e^T (B B^T + w_e W^-1)^-1 e of misses (n, 2)."""
    gram = b @ b.T + EFFORT * torch.diag(torch.tensor([1.0 / HEIGHT, 1.0 / VELOCITY], dtype=torch.float64))
    return EFFORT * (e * torch.linalg.solve(gram, e.T).T).sum(1)


HEIGHTS = torch.linspace(0.08, 0.219, 12, dtype=torch.float64)


def test_timing_and_starts():
    env = make(2000)
    assert (env.simulator.substeps, env.simulator.timestep) == (1, H)
    assert make(contact="soft").simulator.substeps == 20
    assert env.max_episode_steps == N
    assert env.model.link_mass.tolist() == [M]
    assert env.model.actuator_limit.tolist() == [40.0]
    assert env.task.control(env.state, torch.tensor([[0.0], [1.0]]).double())[:, 0].tolist() == [G / 40, (G + F) / 40]
    heights = env.state.qpos[:, 0]
    assert 0.08 <= heights.min() < 0.081
    assert 0.218 < heights.max() < 0.219
    assert (env.state.qvel == -1.0).all()


def test_observation_and_reward_by_hand():
    env = make(1)
    drop(env, [0.15])
    obs, reward, *_ = env.step(torch.tensor([[0.5]]))
    v = -1.0 + H * 0.5 * F / M
    z = 0.15 + 0.5 * H * (-1.0 + v)
    torch.testing.assert_close(obs, torch.tensor([[z, v, H * (N - 1)]], dtype=torch.float64), rtol=1e-12, atol=0)
    assert reward.item() == pytest.approx(-EFFORT * 0.25)
    last = env.state.replace(elapsed=torch.tensor([N]))
    expected = -EFFORT * 0.09 - HEIGHT * (z - TARGET) ** 2 - VELOCITY * v**2
    assert env.task.reward(last, torch.tensor([[0.3]], dtype=torch.float64), last).item() == pytest.approx(expected)


@pytest.mark.parametrize("law", CONTACT)
def test_the_optimum_is_reached(law):
    """The closed form is what the environment pays for the closed form's actions, and its gradient there is zero."""
    env = make(len(HEIGHTS), contact=law)
    drop(env, HEIGHTS)
    actions, best = env.task.best(env.state.qpos, env.state.qvel)
    torch.testing.assert_close(best, -least_cost(missed(HEIGHTS), reach()), rtol=1e-12, atol=0)
    assert -0.43 < actions.min() < actions.max() < 0.77
    actions.requires_grad_()
    got, _ = returns(env, actions)
    (gradient,) = torch.autograd.grad(got.sum(), actions)
    # the smoothed ground is felt a little from 5 cm above it
    torch.testing.assert_close(got, best, rtol=1e-5 if law == "smoothed" else 1e-11, atol=0)
    assert gradient.abs().max() < (1e-5 if law == "smoothed" else 1e-11)
    # lowest points of the ways
    drop(env, HEIGHTS)
    lowest = 1.0
    for k in range(N - 1):
        env.step(actions.detach()[:, k : k + 1])
        lowest = min(lowest, float(env.state.qpos.min()))
    assert lowest > 0.05


def test_every_other_way_is_worth_less():
    """In flight the return is quadratic: it falls by w_e |da|^2 + (B da)^T W (B da) on the way from the optimum."""
    env = make(len(HEIGHTS), contact="hard")
    generator = torch.Generator().manual_seed(0)
    change = 0.1 * (2.0 * torch.rand(len(HEIGHTS), N, generator=generator, dtype=torch.float64) - 1.0)
    drop(env, HEIGHTS)
    actions, best = env.task.best(env.state.qpos, env.state.qvel)
    got, _ = returns(env, actions + change)
    weights = torch.tensor([HEIGHT, VELOCITY], dtype=torch.float64)
    loss = EFFORT * change.square().sum(1) + ((change @ reach().T).square() * weights).sum(1)
    assert loss.min() > 1e-3
    torch.testing.assert_close(best - got, loss, rtol=1e-9, atol=0)


def test_landing_first_costs_more():
    """To meet hard ground in mid-step k takes the least effort w_e d^2 / |w|^2, d = z0 - (k + 1/2) h the height
    that is left, w_i = h^2 (k - i) F / m; the way up from rest on it, in N - k - 1 steps, the least cost of its own."""
    up = torch.tensor([[-TARGET, 0.0]], dtype=torch.float64)
    for z0, cost in zip(HEIGHTS.tolist(), least_cost(missed(HEIGHTS), reach()).tolist(), strict=True):
        for k in range(1, N - 1):
            left = max(0.0, z0 - (k + 0.5) * H)
            down = EFFORT * left**2 / sum((H * H * (k - i) * F / M) ** 2 for i in range(k))
            assert down + float(least_cost(up, reach(N - k - 1))) > cost


@pytest.mark.parametrize("law", CONTACT)
def test_the_gradient_in_flight_is_the_closed_form(law):
    """dR/da = -2 w_e a - 2 B^T W (e + B a), as long as the mass stays above the ground."""
    heights = HEIGHTS + 0.03
    env = make(len(heights), contact=law)
    generator = torch.Generator().manual_seed(1)
    drop(env, heights)
    actions = 0.4 + 0.3 * torch.rand(len(heights), N, generator=generator, dtype=torch.float64)
    actions.requires_grad_()
    got, _ = returns(env, actions)
    (gradient,) = torch.autograd.grad(got.sum(), actions)
    a, b = actions.detach(), reach()
    off = (missed(heights) + a @ b.T) * torch.tensor([HEIGHT, VELOCITY], dtype=torch.float64)
    expected = -2.0 * EFFORT * a - 2.0 * off @ b
    torch.testing.assert_close(gradient, expected, rtol=1e-6 if law == "smoothed" else 1e-10, atol=1e-12)


def test_hard_ground_stops_it_dead_and_its_gradient_is_blind():
    """Without thrust every start ends at rest in the ground; no earlier action changes the speed, and the height only
    by what the mass moved before it hit."""
    env = make(len(HEIGHTS), contact="hard")
    drop(env, HEIGHTS)
    actions = torch.full((len(HEIGHTS), N), LET_GO, dtype=torch.float64, requires_grad=True)
    _, last = returns(env, actions)
    torch.testing.assert_close(last[:, 1], torch.zeros_like(last[:, 1]), rtol=0, atol=1e-12)
    # less than a step's way at the 2.3 m/s with which the highest one hits
    assert last[:, 0].min() > -0.023
    assert last[:, 0].max() <= 0.0
    (by_action,) = torch.autograd.grad(last[:, 1].sum(), actions, retain_graph=True)
    assert by_action.abs().max() < 1e-12
    (by_action,) = torch.autograd.grad(last[:, 0].sum(), actions)
    for world, z0 in enumerate(HEIGHTS.tolist()):
        z, v, k = z0, -1.0, 0
        while z + 0.5 * H * v > 0.0:
            z, v, k = z + H * v - 0.5 * H * H * G, v - H * G, k + 1
        # steps 0 ... k - 1 are flown, in step k it hits, and moves h / 2 of its speed at the step's start
        expected = [H * H * (k - i) * F / M if i < k else 0.0 for i in range(N)]
        torch.testing.assert_close(by_action[world], torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)


def smoothed(z, v, actions, kappa):
    """Last state of v+ = (1 - s(d)) (v + h F a / m), z+ = z + h/2 (v + v+), d = -(z + h/2 v), s a sigmoid, and
    its derivatives by every action, by the chain rule (forward)."""
    dz, dv = [0.0] * len(actions), [0.0] * len(actions)
    for k, a in enumerate(actions):
        s = 1.0 / (1.0 + math.exp(kappa * (z + 0.5 * H * v)))
        free = v + H * F * a / M
        new = (1.0 - s) * free
        slope = -kappa * s * (1.0 - s)
        for i in range(k + 1):
            ds = slope * (dz[i] + 0.5 * H * dv[i])
            dnew = (1.0 - s) * (dv[i] + (H * F / M if i == k else 0.0)) - ds * free
            dz[i] += 0.5 * H * (dv[i] + dnew)
            dv[i] = dnew
        z, v = z + 0.5 * H * (v + new), new
    return z, v, dz, dv


@pytest.mark.parametrize("kappa", [125.0, 300.0])
def test_the_gradient_through_smoothed_ground_is_the_closed_form(kappa):
    """From every start the mass falls onto the ground, under a little thrust; the return by every action."""
    env = make(len(HEIGHTS), contact=Smoothed(kappa=kappa))
    drop(env, HEIGHTS)
    actions = (LET_GO + torch.linspace(-0.05, 0.1, N, dtype=torch.float64)).repeat(len(HEIGHTS), 1).requires_grad_()
    got, last = returns(env, actions)
    (gradient,) = torch.autograd.grad(got.sum(), actions)
    for world, z0 in enumerate(HEIGHTS.tolist()):
        a = actions[world].tolist()
        z, v, dz, dv = smoothed(z0, -1.0, a, kappa)
        assert last[world, :2].tolist() == pytest.approx([z, v], abs=1e-9)
        assert z < 0.0
        expected = -EFFORT * sum(x * x for x in a) - HEIGHT * (z - TARGET) ** 2 - VELOCITY * v * v
        assert got[world].item() == pytest.approx(expected, rel=1e-9)
        by_action = [-2.0 * (EFFORT * a[i] + HEIGHT * (z - TARGET) * dz[i] + VELOCITY * v * dv[i]) for i in range(N)]
        torch.testing.assert_close(gradient[world], torch.tensor(by_action, dtype=torch.float64), rtol=1e-7, atol=1e-8)


def test_ten_steps_without_thrust_are_the_papers_figure():
    """Schwarke et al. 2025, Fig. 3, at kappa 125: final speed against start height falls steepest, by 54.5 1/s, at
    0.1405 m."""
    heights = torch.arange(0.08, 0.2195, 0.0005, dtype=torch.float64)
    env = make(len(heights), contact=Smoothed(kappa=125.0))
    drop(env, heights)
    start = env.state.qpos.clone().requires_grad_()
    state = env.state.replace(qpos=start)
    motion = state.qpos, state.qvel
    still = torch.zeros(len(heights), 1, dtype=torch.float64)
    for _ in range(10):
        moved = env.simulator.simulate(*motion, still, env.parameters)
        motion = moved.qpos, moved.qvel
    (slope,) = torch.autograd.grad(motion[1].sum(), start)
    steepest = int(slope.argmin())
    assert slope[steepest].item() == pytest.approx(-54.5, rel=0.01)
    assert heights[steepest].item() == pytest.approx(0.1405, abs=5e-4)
    assert motion[1][-1].item() == pytest.approx(-1.981, abs=0.001)
