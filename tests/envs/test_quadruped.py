import math

import mujoco
import numpy as np
import pytest
import torch

import diffenvs


def make(num_envs=4, **kwargs):
    env = diffenvs.DiffVecEnv("DiffQuadruped-v0", num_envs, threads=1, dtype="float64", array_type="torch", **kwargs)
    env.reset(seed=0)
    return env


def matrix(quaternion):
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quaternion.numpy())
    return out.reshape(3, 3)


def test_timing():
    env = make()
    assert (env.simulator.substeps, env.simulator.timestep) == (1, 0.01)
    assert make(contact="soft").simulator.substeps == 20


def test_observation_by_its_parts():
    env = make()
    action = 0.5 * torch.ones(4, 12, dtype=torch.float64)
    obs, *_ = env.step(action)
    for world in range(4):
        qpos, qvel, o = env.state.qpos[world].numpy(), env.state.qvel[world].numpy(), obs[world].numpy()
        r = matrix(env.state.qpos[world, 3:7])
        expected = [
            *(qpos[2:3], qpos[3:7], r.T @ qvel[:3], qvel[3:6], qpos[7:], qvel[6:]),
            *([r[2, 2]], [r[0, 0]], action[world].numpy()),
        ]
        np.testing.assert_allclose(o, np.concatenate(expected), atol=1e-12)


def test_reward_by_hand():
    env = make(1)
    qpos = torch.tensor(env.model.home)[None].clone()
    qpos[0, 2] = 0.55
    angle = 0.3
    qpos[0, 3:7] = torch.tensor([math.cos(angle / 2), math.sin(angle / 2), 0.0, 0.0], dtype=torch.float64)
    qvel = torch.zeros(1, 18, dtype=torch.float64)
    qvel[0, 0] = 0.4
    qvel[0, 6:] = 2.0
    state = env.state.replace(qpos=qpos, qvel=qvel)
    action = torch.full((1, 12), -0.5, dtype=torch.float64)
    expected = (
        1.0 * math.exp(-0.6)
        + 0.5 * math.exp(-0.1)
        + 0.5 * math.cos(angle)
        + 0.01 * 12 * math.exp(-0.5)
        - 0.001 * 12 * 4.0
    )
    assert env.task.reward(state, action, state).item() == pytest.approx(expected, abs=1e-12)


def test_the_best_step_is_worth_2_12():
    env = make(1)
    qpos = torch.tensor(env.model.home)[None].clone()
    qpos[0, 2] = 0.45
    qvel = torch.zeros(1, 18, dtype=torch.float64)
    qvel[0, 0] = 1.0
    state = env.state.replace(qpos=qpos, qvel=qvel)
    assert env.task.reward(state, torch.zeros(1, 12), state).item() == pytest.approx(2.12)


def test_targets_surround_the_home_pose():
    env = make(1, config={"action_scale": 0.25})
    home = torch.tensor(env.model.home)[7:]
    action = torch.linspace(-1, 1, 12, dtype=torch.float64)[None]
    torch.testing.assert_close(env.task.control(env.state, action)[0], home + 0.25 * action[0])


def test_an_episode_ends_below_a_quarter_of_a_metre():
    env = make(3)
    qpos = env.state.qpos.clone()
    qpos[:, 2] = torch.tensor([0.26, 0.249, -1.0])
    assert env.task.terminated(env.state.replace(qpos=qpos)).tolist() == [False, True, True]


def test_starts_are_spread_as_documented():
    env = make(2000)
    state, home = env.state, torch.tensor(env.model.home)
    spread = state.qpos - home
    assert state.qpos[:, 2].min() > 0.47
    assert state.qpos[:, 2].max() < 0.49
    assert (spread[:, 7:].abs().amax(0) > 0.19).all()
    assert spread[:, 7:].abs().max() < 0.2
    assert (state.qvel.abs().amax(0) > 0.24).all()
    assert state.qvel.abs().max() < 0.25
    tilt = 2 * torch.acos(state.qpos[:, 3].clamp(max=1.0))
    assert math.radians(6.5) < tilt.max() < math.radians(7.5)
    torch.testing.assert_close(state.qpos[:, 3:7].norm(dim=1), torch.ones(2000, dtype=torch.float64))


def test_metrics_are_speed_and_height_in_the_world():
    env = make()
    *_, info = env.step(torch.zeros(4, 12))
    assert torch.equal(info["metrics"]["forward_velocity"], env.state.qvel[:, 0])
    assert torch.equal(info["metrics"]["base_height"], env.state.qpos[:, 2])


@pytest.mark.parametrize("law", ["smoothed", "hard"])
def test_it_stands_ten_seconds_without_being_told_anything(law):
    """K = 20 is soft: it sags by 2 to 4 cm and sways, but the stance holds it."""
    env = make(1, contact=law, max_episode_steps=-1, config={"start_tilt": 0.0, "start_joint": 0.0})
    lowest = 1.0
    for _ in range(1000):
        _, _, terminated, *_ = env.step(torch.zeros(1, 12))
        assert not terminated.any()
        lowest = min(lowest, float(env.state.qpos[0, 2]))
    assert lowest > 0.40
    assert env.state.qvel.abs().max() < 0.1
