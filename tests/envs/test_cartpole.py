import math

import pytest
import torch

import diffenvs
from diffenvs.sim.contact import CONTACT


def make(num_envs=4, **kwargs):
    env = diffenvs.DiffVecEnv("DiffCartpole-v0", num_envs, threads=1, dtype="float64", array_type="torch", **kwargs)
    env.reset(seed=0)
    return env


def place(env, qpos, qvel):
    env.state = env.state.replace(
        qpos=torch.tensor(qpos, dtype=torch.float64), qvel=torch.tensor(qvel, dtype=torch.float64)
    )


def test_timing():
    env = make()
    assert (env.simulator.substeps, env.simulator.timestep) == (4, pytest.approx(1 / 240))
    assert env.max_episode_steps == 240
    assert env.model.ncontact == 0


def test_the_robot_is_diffrls():
    model = make(1).model
    assert dict(zip(model.link_name, model.link_mass, strict=True)) == {"cart": 50.0, "pole": pytest.approx(2.5)}
    assert model.dof_damping.tolist() == [1.0, 1.0]
    assert model.dof_armature.tolist() == [0.0, 0.0]
    assert model.actuator_limit.tolist() == [1000.0]
    assert model.limit_name == ("slide",)
    assert model.dof_range[0].tolist() == [-4.0, 4.0]


def test_observation_by_its_parts():
    env = make(1)
    place(env, [[0.5, 2.0]], [[-0.3, 0.7]])
    expected = [0.5, -0.3, math.sin(2.0), math.cos(2.0), 0.7]
    assert env.task.observe(env.state)[0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("angle", "wrapped"),
    [(0.3, 0.3), (-math.pi - 0.2, math.pi - 0.2), (math.pi + 0.2, 0.2 - math.pi), (13.0, 13.0 - 4 * math.pi)],
)
def test_reward_by_hand(angle, wrapped):
    env = make(1)
    place(env, [[1.5, angle]], [[2.0, -3.0]])
    expected = -(wrapped**2) - 0.1 * 9.0 - 0.05 * 2.25 - 0.1 * 4.0
    assert env.task.reward(env.state, torch.ones(1, 1), env.state).item() == pytest.approx(expected)
    # the slope goes to the next upright
    qpos = env.state.qpos.clone().requires_grad_()
    env.task.reward(env.state, torch.ones(1, 1), env.state.replace(qpos=qpos)).sum().backward()
    assert qpos.grad[0].tolist() == pytest.approx([-0.15, -2.0 * wrapped])


def test_starts_hang_around_the_middle():
    env = make(2000)
    spread = env.state.qpos - torch.tensor([0.0, -math.pi])
    assert (spread.abs().amax(0) > 1.56).all()
    assert spread.abs().max() < math.pi / 2
    assert (env.state.qvel.abs().amax(0) > 0.249).all()
    assert env.state.qvel.abs().max() < 0.25


def test_a_small_swing_has_the_period_of_a_rod():
    """On a held cart, hanging, a rod of length l swings with w = sqrt(3 g / (2 l)), in 1.64 s; its damping of
    1 N m s/rad lowers the frequency to sqrt(w^2 - (d / 2 I)^2) and the swing by exp(-d t / 2 I), I = m l^2 / 3."""
    env = make(1, config={"timestep": 1 / 960})
    inertia = 2.5 / 3.0
    parameters = env.parameters
    heavy = parameters.armature.clone()
    heavy[:, 0] = 1e9
    env.parameters = parameters.replace(armature=heavy)
    place(env, [[0.0, -math.pi + 0.01]], [[0.0, 0.0]])
    decay = 0.5 / inertia
    frequency = math.sqrt(2.5 * 9.81 * 0.5 / inertia - decay**2)
    for step in range(1, 121):
        env.step(torch.zeros(1, 1))
        t = step / 60.0
        expected = 0.01 * math.exp(-decay * t) * (math.cos(frequency * t) + decay / frequency * math.sin(frequency * t))
        assert env.state.qpos[0, 1].item() + math.pi == pytest.approx(expected, abs=3e-5)


@pytest.mark.parametrize("law", CONTACT)
def test_the_cart_stops_at_the_end_of_its_rail(law):
    """Driven at full force: plastic under hard contact, some centimetres further under the others."""
    env = make(2, contact=law)
    place(env, [[3.0, -math.pi], [-3.0, -math.pi]], [[0.0, 0.0], [0.0, 0.0]])
    for _ in range(60):
        env.step(torch.tensor([[1.0], [-1.0]]))
    x = env.state.qpos[:, 0]
    # a spring of 1000 N/m gives a metre to 1000 N
    reach = {"hard": 0.05, "smoothed": 0.1, "soft": 2.5}[law]
    assert (x.abs() > 3.9).all()
    assert (x.abs() < 4.0 + reach).all()
    assert x[0].item() == pytest.approx(-x[1].item(), abs=1e-6)


def test_metrics_are_the_wrapped_angle_and_the_place():
    env = make(1)
    place(env, [[0.5, 2 * math.pi + 0.1]], [[0.0, 0.0]])
    *_, info = env.step(torch.zeros(1, 1))
    assert info["metrics"]["angle"].item() == pytest.approx(0.1, abs=0.02)
    assert info["metrics"]["position"].item() == env.state.qpos[0, 0].item()
