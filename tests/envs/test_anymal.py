import math

import mujoco
import numpy as np
import pytest
import torch

import diffenvs
from diffenvs.random import WorldRandom

QUIET = {"noise": 0.0, "command_interval": (1e6, 1e6), "push_interval": (1e6, 1e6)}


def make(num_envs=4, **kwargs):
    kwargs = {"threads": 1, "dtype": "float64", "array_type": "torch", **kwargs}
    env = diffenvs.DiffVecEnv("DiffAnymal-v0", num_envs, **kwargs)
    env.reset(seed=0)
    return env


def matrix(quaternion):
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quaternion.numpy())
    return out.reshape(3, 3)


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.float64)


def test_timing():
    env = make()
    assert env.simulator.substeps == 4
    assert env.simulator.timestep == pytest.approx(0.005)
    assert env.metadata["render_fps"] == 50


def test_observation_by_its_parts():
    env = make(config=QUIET)
    action = torch.full((4, 12), 0.2, dtype=torch.float64)
    env.step(action)
    obs, *_ = env.step(action)
    memory = env.state.memory
    for world in range(4):
        qpos, qvel = env.state.qpos[world].numpy(), env.state.qvel[world].numpy()
        r = matrix(env.state.qpos[world, 3:7])
        phase = memory["phase"][world].item() + 4 * math.pi * 0.04
        expected = [
            *(r.T @ qvel[:3], qvel[3:6], r.T @ [0, 0, -1], memory["command"][world].numpy()),
            *(qpos[7:], qvel[6:], action[world].numpy(), [math.sin(phase)]),
        ]
        np.testing.assert_allclose(obs[world].numpy(), np.concatenate(expected), atol=1e-12)


def test_the_noise_is_what_legged_gym_adds():
    env = make(64, config={"command_interval": (1e6, 1e6), "push_interval": (1e6, 1e6)})
    errors = []
    clean_task = type(env.task)(env.model, QUIET, dtype=torch.float64)
    for _ in range(40):
        obs, *_ = env.step(zeros(64, 12))
        silent = env.state.remember(noise=torch.zeros_like(env.state.memory["noise"]))
        errors.append(obs - clean_task.observe(silent))
    errors = torch.cat(errors)
    bound = torch.tensor([0.1] * 3 + [0.2] * 3 + [0.05] * 3 + [0.0] * 3 + [0.01] * 12 + [1.5] * 12 + [0.0] * 13)
    assert (errors.abs() <= bound + 1e-12).all()
    noisy = bound > 0
    assert (errors[:, noisy].abs().amax(0) > 0.98 * bound[noisy]).all()
    torch.testing.assert_close(errors[:, noisy].std(0), bound[noisy].double() / 3**0.5, rtol=0.05, atol=0.0)
    # drawn anew at every step
    assert abs(torch.corrcoef(torch.stack((errors[:-64, 24], errors[64:, 24])))[0, 1]) < 0.1


def test_a_final_observation_carries_noise_too():
    env, silent = make(max_episode_steps=2), make(max_episode_steps=2, config={"noise": 0.0})
    for e in (env, silent):
        e.step(zeros(4, 12))
    assert (env.step(zeros(4, 12))[4]["final_obs"][:, :9] != silent.step(zeros(4, 12))[4]["final_obs"][:, :9]).all()


def test_reward_by_hand():
    env = make(1, config=QUIET)
    task, config = env.task, env.task.config
    roll = 0.2
    qpos = torch.tensor(env.model.home)[None].clone()
    qpos[0, 2] = 0.5
    qpos[0, 3:7] = torch.tensor([math.cos(roll / 2), math.sin(roll / 2), 0.0, 0.0])
    body = np.array([0.7, -0.2, 0.1])
    qvel, before = zeros(1, 18), zeros(1, 18)
    qvel[0, :3] = torch.from_numpy(matrix(qpos[0, 3:7]) @ body)
    qvel[0, 3:6] = torch.tensor([0.1, -0.2, 0.3])
    qvel[0, 6:], before[0, 6:] = 0.5, 0.4
    command = torch.tensor([[0.5, 0.1, -0.2]], dtype=torch.float64)
    # at this phase LF and RH swing at sin(1), RF and LH stand
    memory = {**env.state.memory, "command": command, "phase": torch.ones(1, dtype=torch.float64)}
    feet = zeros(1, 4, 3)
    feet[0, :, 2] = torch.tensor([0.05, 0.2, 0.3, 0.1]) + env.model.contact_radius[0]
    previous, action = torch.full((1, 12), 0.1), torch.full((1, 12), -0.3).double()
    state = env.state.replace(qvel=before, action=previous, memory=memory)
    after = env.state.replace(
        qpos=qpos,
        qvel=qvel,
        feet=feet,
        action=action,
        memory=memory,
        elapsed=torch.zeros(1, dtype=torch.int64),
    )
    swing = math.sin(1.0)
    torque = 85 * -0.3 - 0.6 * 0.5
    expected = {
        "velocity": math.exp(-(0.2**2 + 0.3**2) / 0.25),
        "yaw_rate": 0.5 * math.exp(-(0.5**2) / 0.25),
        "foot_height": 3.0 * swing * sum(math.exp(-((z - 0.1 * swing) ** 2) / 0.05) for z in (0.05, 0.1)),
        "vertical_velocity": -2.0 * 0.1**2,
        "roll_pitch_rate": -0.05 * (0.1**2 + 0.2**2),
        "base_height": math.exp(-(0.05**2) / 0.1),
        "orientation": -0.5 * math.sin(roll) ** 2,
        "action": -0.05 * 12 * 0.3,
        "action_rate": -0.01 * 12 * 0.4**2,
        "joint_acceleration": -2.5e-7 * 12 * (0.1 / 0.02) ** 2,
        "torque": -2.5e-5 * 12 * torque**2,
    }
    terms = task.reward_terms(state, action, after)
    assert {name: value.item() for name, value in terms.items()} == pytest.approx(expected, abs=1e-7)
    assert task.reward(state, action, after).item() == pytest.approx(0.02 * sum(expected.values()), abs=1e-8)
    assert config.action_scale == 1.0


def test_the_best_episode_is_worth_126():
    env = make(1, config=QUIET)
    phase = torch.linspace(0, 2 * math.pi, 2001, dtype=torch.float64)[:-1]
    qpos = torch.tensor(env.model.home)[None].clone()
    qpos[0, 2] = 0.45
    swing = torch.sin(phase[:, None] + torch.tensor([0.0, math.pi, math.pi, 0.0])).clamp(min=0)
    feet = zeros(2000, 4, 3)
    feet[..., 2] = 0.1 * swing + env.model.contact_radius[0]
    state = env.state.map(lambda value: value.expand(2000, *value.shape[1:]))
    state = state.replace(
        qpos=qpos.expand(2000, 19),
        qvel=zeros(2000, 18),
        feet=feet,
        elapsed=torch.zeros(2000, dtype=torch.int64),
    ).remember(phase=phase, command=zeros(2000, 3))
    terms = env.task.reward_terms(state, state.action, state)
    best = sum(terms[name].mean() for name in ("velocity", "yaw_rate", "foot_height", "base_height"))
    assert 1000 * 0.02 * best.item() == pytest.approx(126, abs=0.5)


def test_torque_is_clipped_at_the_drives_limit():
    env = make(1, config=QUIET)
    action = torch.ones(1, 12, dtype=torch.float64)
    state = env.state.replace(qpos=torch.tensor(env.model.home)[None], qvel=zeros(1, 18), action=action)
    torch.testing.assert_close(env.task.torque(state), torch.full((1, 12), 80.0, dtype=torch.float64))
    torch.testing.assert_close(env.task.torque(state.replace(action=0.5 * action)), torch.full((1, 12), 42.5).double())


def test_feet_swing_in_diagonal_pairs():
    env = make(1, config=QUIET)
    assert [name[:2] for name in env.model.contact_name] == ["LF", "RF", "LH", "RH"]
    low = env.state.replace(feet=torch.zeros_like(env.state.feet)).remember(
        phase=torch.full((1,), math.pi / 2).double()
    )
    grounded = env.task.reward_terms(low, low.action, low)["foot_height"]
    for foot, swings in enumerate((True, False, False, True)):
        feet = low.feet.clone()
        feet[0, foot, 2] = 0.1
        lifted = env.task.reward_terms(low, low.action, low.replace(feet=feet))["foot_height"]
        assert (lifted > grounded).item() is swings
        assert (lifted == grounded).item() is not swings


def test_the_phase_runs_at_two_hertz_from_a_random_start():
    env = make(500, config=QUIET)
    start = env.state.memory["phase"]
    assert start.min() < 0.1
    assert 2 * math.pi - 0.1 < start.max() < 2 * math.pi
    for _ in range(5):
        env.step(zeros(500, 12))
    torch.testing.assert_close(env.task.phase(env.state) - start, torch.full((500,), 4 * math.pi * 0.1).double())


def test_an_episode_ends_low_or_tilted():
    env = make(4)
    qpos = torch.tensor(env.model.home).repeat(4, 1)
    qpos[1, 2] = 0.29
    for world, degrees in ((2, 59.0), (3, 61.0)):
        half = math.radians(degrees) / 2
        qpos[world, 3:7] = torch.tensor([math.cos(half), 0.0, math.sin(half), 0.0])
    assert env.task.terminated(env.state.replace(qpos=qpos)).tolist() == [False, True, False, True]


def test_friction_and_base_mass_are_drawn_for_every_episode():
    env = make(1000, max_episode_steps=1)
    nominal = env.simulator.default_parameters()
    for _ in range(2):
        friction, added = env.parameters.friction, env.parameters.mass - nominal.mass
        assert 0.5 <= friction.min() < 0.51
        assert 1.24 < friction.max() < 1.25
        assert -5.0 <= added[:, 0].min() < -4.9
        assert 4.9 < added[:, 0].max() < 5.0
        assert (added[:, 1:] == 0).all()
        env.step(zeros(1000, 12))
        assert (env.parameters.friction != friction).all()
        # always added to the nominal mass, never to the last one
    assert env.model.link_name[0] == "base"


def test_commands_change_every_ten_to_fifteen_seconds():
    env = make(30)
    random, state = WorldRandom(range(30), dtype=torch.float64).select(), env.state
    commands = []
    for _ in range(1600):
        commands.append(state.memory["command"])
        state = env.task.disturb(random, state)
    commands = torch.stack(commands)
    changed = (commands[1:] != commands[:-1]).any(-1)
    assert torch.equal(changed, (commands[1:] != commands[:-1]).all(-1))
    for world in range(30):
        times = 0.02 * (changed[:, world].nonzero().squeeze(1) + 1)
        gaps = times.diff(prepend=times.new_zeros(1))
        assert ((gaps > 9.99) & (gaps < 15.01)).all()
        assert len(gaps) >= 2
    assert commands.abs().max() <= 1.0
    assert (commands.abs().amax((0, 1)) > 0.9).all()


def test_a_push_changes_the_bases_horizontal_velocity_and_nothing_else():
    env, calm = (make(200, config={**QUIET, "command_interval": (1e6, 1e6)}) for _ in range(2))
    env.state = env.state.remember(push_due=torch.where(torch.arange(200) < 150, 1, 5))
    calm.state = env.state.remember(push_due=torch.full((200,), 9))
    for e in (env, calm):
        e.step(zeros(200, 12))
    change = env.state.qvel - calm.state.qvel
    assert torch.equal(env.state.qpos, calm.state.qpos)
    assert (change[:150, :2] != 0).all()
    assert (change[150:] == 0).all()
    assert (change[:, 2:] == 0).all()
    assert 0.48 < change[:, :2].abs().max() <= 0.5
    assert (change[:150, :2].mean(0).abs() < 5 * 0.289 / 150**0.5).all()


def test_a_push_is_no_action_of_the_robot():
    """It is seen in the next observation, and the reward is of the state before it."""
    env, calm = (make(1, config=QUIET) for _ in range(2))
    env.state = env.state.remember(push_due=torch.ones(1, dtype=torch.int64))
    (obs, reward, *_), (calm_obs, calm_reward, *_) = env.step(zeros(1, 12)), calm.step(zeros(1, 12))
    assert torch.equal(reward, calm_reward)
    assert (obs[0, :2] != calm_obs[0, :2]).all()


def test_gradients_pass_through_a_push():
    env = make(1, config=QUIET)
    env.state = env.state.remember(push_due=torch.ones(1, dtype=torch.int64))
    action = zeros(1, 12).requires_grad_()
    with env.rollout(2) as rollout:
        rollout.step(action)
        rollout.step(zeros(1, 12))
    (gradient,) = torch.autograd.grad(rollout.rewards[1].sum(), action)
    assert (gradient != 0).any()


def test_metrics_compare_with_the_command():
    env = make(config=QUIET)
    *_, info = env.step(zeros(4, 12))
    metrics, state = info["metrics"], env.state
    for world in range(4):
        velocity = matrix(state.qpos[world, 3:7]).T @ state.qvel[world, :3].numpy()
        command = state.memory["command"][world]
        assert metrics["velocity_error_x"][world].item() == pytest.approx(velocity[0] - command[0].item())
        assert metrics["velocity_error_y"][world].item() == pytest.approx(velocity[1] - command[1].item())
        assert metrics["yaw_rate_error"][world].item() == pytest.approx((state.qvel[world, 5] - command[2]).item())
        assert metrics["forward_velocity"][world].item() == pytest.approx(velocity[0])
        assert metrics["base_height"][world].item() == state.qpos[world, 2].item()


@pytest.mark.parametrize("law", ["smoothed", "hard"])
def test_it_stands_without_being_told_anything(law):
    still = {"start_tilt": 0.0, "start_joint": 0.0, "start_speed": 0.0, "start_height": (0.0, 0.0)}
    env = make(1, contact=law, config={**QUIET, **still})
    for _ in range(500):
        _, _, terminated, *_ = env.step(zeros(1, 12))
        assert not terminated.any()
    assert 0.5 < env.state.qpos[0, 2] < 0.6
    assert env.state.qvel[0, :3].abs().max() < 0.05
