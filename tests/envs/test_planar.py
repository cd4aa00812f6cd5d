"""The hopper and the cheetah of DiffRL: masses, joints, observation, reward, start and end by their own numbers."""

import math

import pytest
import torch

import diffenvs

RUNNERS = ["DiffHopper-v0", "DiffCheetah-v0"]
# DiffRL's masses [kg], every geom at 1000 kg/m^3
MASSES = {
    "DiffHopper-v0": {"torso": 3.665, "thigh": 4.058, "leg": 2.781, "foot": 5.316},
    "DiffCheetah-v0": {
        **{"torso": 9.457, "back_thigh": 2.336, "back_shin": 2.402, "back_foot": 1.658},
        **{"front_thigh": 2.176, "front_shin": 1.817, "front_foot": 1.338},
    },
}
TOTAL = {"DiffHopper-v0": 15.82, "DiffCheetah-v0": 21.18}
# damping with the 10 N m s/rad of the limits that act at all times, and armature
JOINTS = {
    "DiffHopper-v0": ([10.0] * 3 + [12.0] * 3, 1.0, [0.0] * 6),
    "DiffCheetah-v0": (
        [10.0] * 3 + [16.0, 14.5, 13.0, 14.5, 13.0, 11.5],
        0.1,
        [0.0] * 3 + [240, 180, 120, 180, 120, 60],
    ),
}
RANGES = {
    "DiffHopper-v0": [(-math.radians(150), 0.0)] * 2 + [(-math.pi / 4, math.pi / 4)],
    "DiffCheetah-v0": [(-0.52, 1.05), (-0.785, 0.785), (-0.4, 0.785), (-1.5, 0.8), (-1.2, 1.1), (-3.1, -0.3)],
}
# height, position and speed of a start
STARTS = {"DiffHopper-v0": (1.25, 0.05, 0.05, 0.05), "DiffCheetah-v0": (0.8, 0.1, 0.1, 0.25)}


@pytest.fixture(params=RUNNERS)
def runner(request):
    return request.param


def make(env_id, num_envs=2, **kwargs):
    env = diffenvs.DiffVecEnv(env_id, num_envs, threads=1, dtype="float64", array_type="torch", **kwargs)
    env.reset(seed=0)
    return env


def place(env, **changes):
    """One world at home, at rest, but for some entries of qpos ("q3") and qvel ("v0")."""
    qpos, qvel = torch.tensor(env.model.home)[None].clone(), torch.zeros(1, env.model.nv, dtype=torch.float64)
    for name, value in changes.items():
        (qpos if name[0] == "q" else qvel)[0, int(name[1:])] = value
    return env.state.replace(qpos=qpos, qvel=qvel)


def test_timing(runner):
    env = make(runner)
    assert (env.simulator.substeps, env.simulator.timestep) == (4, pytest.approx(1 / 240))
    assert env.max_episode_steps == 1000


def test_masses_are_diffrls(runner):
    model = make(runner).model
    assert model.link_mass.sum() == pytest.approx(TOTAL[runner], abs=0.005)
    masses = {name: mass for name, mass in zip(model.link_name, model.link_mass, strict=True) if ":" not in name}
    assert masses == pytest.approx(MASSES[runner], abs=0.001)


def test_joints_are_diffrls(runner):
    model = make(runner).model
    damping, armature, stiffness = JOINTS[runner]
    assert model.dof_damping.tolist() == damping
    assert model.dof_armature.tolist() == [armature] * model.nv
    assert model.dof_stiffness.tolist() == stiffness
    assert model.actuator_limit.tolist() == [200.0] * (model.nv - 3)
    assert model.actuator_name == model.limit_name
    assert model.actuator_dof.tolist() == model.limit_dof.tolist() == list(range(3, model.nv))
    for found, expected in zip(model.dof_range[3:].tolist(), RANGES[runner], strict=True):
        assert found == pytest.approx(expected)
    assert model.friction == {"DiffHopper-v0": 0.9, "DiffCheetah-v0": 1.0}[runner]


def test_observation_is_the_state_without_x(runner):
    env = make(runner)
    obs, *_ = env.step(torch.full((2, env.task.action_size), 0.3))
    assert torch.equal(obs, torch.cat((env.state.qpos[:, 1:], env.state.qvel), 1))
    # the forward velocity's place, as DiffRL has it
    assert torch.equal(obs[:, env.model.nq - 1], env.state.qvel[:, 0])


@pytest.mark.parametrize(("height", "expected"), [(0.9, -200 * 0.05**2), (1.0, 0.05), (1.2, 0.25), (1.4, 0.3)])
def test_reward_of_the_hopper_by_hand(height, expected):
    env = make("DiffHopper-v0", 1)
    state = place(env, q1=height, q2=0.2, v0=1.5)
    action = torch.tensor([[0.5, -0.2, 1.0]], dtype=torch.float64)
    total = 1.5 + expected + 1.0 - (0.2 / math.radians(30)) ** 2 - 0.1 * (0.25 + 0.04 + 1.0)
    assert env.task.reward(env.state, action, state).item() == pytest.approx(total)


def test_reward_of_the_cheetah_by_hand():
    env = make("DiffCheetah-v0", 1)
    action = torch.tensor([[0.5, -0.2, 1.0, 0.0, 0.0, -0.1]], dtype=torch.float64)
    expected = -2.5 - 0.1 * (0.25 + 0.04 + 1.0 + 0.01)
    assert env.task.reward(env.state, action, place(env, v0=-2.5)).item() == pytest.approx(expected)


def test_the_height_term_has_the_slopes_that_its_docstring_says():
    env = make("DiffHopper-v0", 1)
    for height, slope in ((0.9, -400.0 * -0.05), (0.949, 0.4), (0.951, 1.0), (1.249, 1.0), (1.251, 0.0)):
        state = place(env, q1=height)
        qpos = state.qpos.requires_grad_()
        env.task.reward(state, torch.zeros(1, 3), state.replace(qpos=qpos)).sum().backward()
        assert qpos.grad[0, 1].item() == pytest.approx(slope)


def test_an_episode_of_the_hopper_ends_below_80_centimetres():
    env = make("DiffHopper-v0", 1)
    assert [bool(env.task.terminated(place(env, q1=z))) for z in (0.81, 0.79)] == [False, True]
    cheetah = make("DiffCheetah-v0", 1)
    assert not cheetah.task.terminated(place(cheetah, q1=0.05, q2=math.pi)).any()


def test_starts_are_spread_as_documented(runner):
    env = make(runner, 2000)
    height, high, spread, speed = STARTS[runner]
    qpos, qvel, home = env.state.qpos, env.state.qvel, torch.tensor(env.model.home)
    rise = qpos[:, 1] - height
    assert 0.98 * high < rise.abs().max() <= high
    others = (qpos - home)[:, [0, *range(2, env.model.nq)]].abs()
    assert (others.amax(0) > 0.98 * spread).all()
    assert others.max() <= spread
    assert (qvel.abs().amax(0) > 0.98 * speed).all()
    assert qvel.abs().max() <= speed
    # no joint begins beyond the end of its range, where nothing would bring it back
    low, high = torch.tensor(env.model.dof_range[3:]).T
    assert (qpos[:, 3:] >= low).all()
    assert (qpos[:, 3:] <= high + 1e-15).all()


def test_at_home_the_feet_touch_the_floor(runner):
    env = make(runner, 1)
    feet = env.simulator.feet(torch.tensor(env.model.home)[None], env.parameters)
    lowest = feet[0, :, 2] - torch.tensor(env.model.contact_radius)
    assert abs(lowest.min().item()) < 1e-6
    if runner == "DiffHopper-v0":
        assert lowest.tolist() == pytest.approx([0.0, 0.0], abs=1e-9)


def test_only_the_hoppers_foot_can_touch_the_floor_while_an_episode_lasts():
    """Torso at 0.8 m: its lower end, the knee and the leg's lower end stay above whatever the pose."""
    radius = {"torso": 0.05, "knee": 0.05, "ankle": 0.04}
    assert 0.8 - 0.2 - radius["torso"] > 0.0
    assert 0.8 - 0.2 - 0.45 - radius["knee"] > 0.0
    # the leg's lower end lies within the foot, on the axis of its capsule
    model = make("DiffHopper-v0", 1).model
    assert model.contact_name == ("foot:-z", "foot:+z")
    assert set(model.contact_radius) == {0.06}
    ends = model.contact_pos[:, [0, 2]]
    assert ends[:, 0].min() < 0.0 < ends[:, 0].max()
    assert ends[:, 1] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert radius["ankle"] < 0.06


def test_nine_points_of_the_cheetah_touch():
    model = make("DiffCheetah-v0", 1).model
    assert model.contact_geom == (
        *("torso", "torso", "snout", "back_knee", "back_foot", "back_foot", "front_knee", "front_foot", "front_foot"),
    )


def test_metrics_are_those_of_the_torso(runner):
    env = make(runner)
    *_, info = env.step(torch.zeros(2, env.task.action_size))
    for name, value in {
        "forward_velocity": env.state.qvel[:, 0],
        "position": env.state.qpos[:, 0],
        "base_height": env.state.qpos[:, 1],
        "pitch": env.state.qpos[:, 2],
    }.items():
        assert torch.equal(info["metrics"][name], value)
