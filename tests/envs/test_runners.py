"""The ant and the humanoid of DiffRL: masses, observation, reward and start by their own numbers."""

import math

import mujoco
import numpy as np
import pytest
import torch

import diffenvs

RUNNERS = ["DiffAnt-v0", "DiffHumanoid-v0"]
# DiffRL's masses [kg], every geom at 1000 kg/m^3
MASSES = {
    "DiffAnt-v0": {"torso": 96.776} | {f"{leg}_thigh": 7.832 for leg in ("front_left", "back_right")},
    "DiffHumanoid-v0": {
        **{"torso": 8.908, "lower_waist": 2.262, "pelvis": 6.616, "right_thigh": 4.752, "left_shin": 2.756},
        **{"right_foot": 1.131, "left_upper_arm": 1.661, "right_lower_arm": 1.230},
    },
}
TOTAL = {"DiffAnt-v0": 182.18, "DiffHumanoid-v0": 40.84}
HEIGHT = {"DiffAnt-v0": (0.65, 0.85), "DiffHumanoid-v0": (1.3, 1.4)}


def make(env_id, num_envs=2, **kwargs):
    env = diffenvs.DiffVecEnv(env_id, num_envs, threads=1, dtype="float64", array_type="torch", **kwargs)
    env.reset(seed=0)
    return env


def matrix(quaternion):
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quaternion.numpy())
    return out.reshape(3, 3)


def placed(env, *, height, speed=0.0):
    """One world at its home pose, upright, at a height and a forward speed."""
    qpos = torch.tensor(env.model.home)[None].clone()
    qpos[0, 2] = height
    qvel = torch.zeros(1, env.model.nv, dtype=torch.float64)
    qvel[0, 0] = speed
    return env.state.replace(qpos=qpos, qvel=qvel)


@pytest.fixture(params=RUNNERS)
def runner(request):
    return request.param


def test_masses_are_diffrls(runner):
    model = make(runner).model
    assert model.link_mass.sum() == pytest.approx(TOTAL[runner], abs=0.005)
    masses = dict(zip(model.link_name, model.link_mass, strict=True))
    for name, mass in MASSES[runner].items():
        assert masses[name] == pytest.approx(mass, abs=0.001), name


def test_joints_and_motors_are_in_diffrls_order():
    ant, humanoid = (make(runner).model for runner in RUNNERS)
    assert ant.actuator_name == tuple(f"{joint}_{leg}" for leg in (1, 2, 3, 4) for joint in ("hip", "ankle"))
    assert ant.actuator_limit.tolist() == [200.0] * 8
    leg, arm = [70.0, 70.0, 210.0, 140.0, 35.0, 35.0], [35.0, 35.0, 70.0]
    np.testing.assert_allclose(humanoid.actuator_limit, [70.0] * 3 + 2 * leg + 2 * arm)
    assert humanoid.actuator_name[:9] == (
        *("abdomen_z", "abdomen_y", "abdomen_x", "right_hip_x", "right_hip_z", "right_hip_y"),
        *("right_knee", "right_ankle_y", "right_ankle_x"),
    )
    for model in (ant, humanoid):
        assert model.actuator_dof.tolist() == list(range(6, model.nv))
        assert np.isfinite(model.dof_range[6:]).all()


def test_springs_dampers_and_armatures_are_diffrls():
    """With the damping of the limits, 10 N m s/rad, which acts at all times."""
    ant, humanoid = (make(runner).model for runner in RUNNERS)
    assert set(ant.dof_damping[6:]) == {11.0}
    assert set(ant.dof_armature[6:]) == {0.05}
    assert not ant.dof_stiffness.any()
    table = {
        "abdomen_z": (20, 5, 0.02),
        "abdomen_y": (20, 5, 0.01),
        "abdomen_x": (10, 5, 0.01),
        "hip_x": (10, 5, 0.01),
        "hip_z": (10, 5, 0.01),
        "hip_y": (20, 5, 0.01),
        "knee": (5, 0.1, 0.007),
        "ankle_y": (2, 1, 0.006),
        "ankle_x": (2, 1, 0.006),
        "shoulder1": (10, 5, 0.01),
        "shoulder2": (10, 5, 0.01),
        "elbow": (2, 1, 0.006),
    }
    for name, dof in zip(humanoid.actuator_name, humanoid.actuator_dof, strict=True):
        stiffness, damping, armature = table[name.removeprefix("right_").removeprefix("left_")]
        assert humanoid.dof_stiffness[dof] == stiffness, name
        assert humanoid.dof_damping[dof] == pytest.approx(damping + 10.0), name
        assert humanoid.dof_armature[dof] == armature, name
    for model in (ant, humanoid):
        for array in (model.dof_damping, model.dof_armature, model.dof_stiffness):
            assert not array[:6].any()


def test_the_home_pose_just_touches_the_floor(runner):
    env = make(runner, 1)
    feet = env.simulator.feet(torch.tensor(env.model.home)[None], env.parameters)[0, :, 2]
    assert float((feet - torch.tensor(env.model.contact_radius)).min()) == pytest.approx(0.0, abs=2e-6)


def test_timing(runner):
    env = make(runner)
    assert env.simulator.substeps == 4
    assert env.simulator.timestep == pytest.approx(1 / 240)
    assert env.metadata["render_fps"] == 60


def test_observation_by_its_parts(runner):
    env = make(runner)
    action = torch.linspace(-0.5, 0.5, env.task.action_size, dtype=torch.float64).expand(2, -1)
    obs, *_ = env.step(action)
    for world in range(2):
        qpos, qvel = env.state.qpos[world].numpy(), env.state.qvel[world].numpy()
        r = matrix(env.state.qpos[world, 3:7])
        expected = [qpos[2:7], qvel[:6], qpos[7:], 0.1 * qvel[6:], [r[2, 2], r[0, 0]], action[world].numpy()]
        np.testing.assert_allclose(obs[world].numpy(), np.concatenate(expected), atol=1e-12)


def test_the_ants_reward_by_hand():
    env = make("DiffAnt-v0", 1)
    state = placed(env, height=0.5, speed=3.0)
    angle = 0.4  # about z: it looks aside and stays upright
    turned = torch.tensor([[math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]], dtype=torch.float64)
    state = state.replace(qpos=torch.cat((state.qpos[:, :3], turned, state.qpos[:, 7:]), 1))
    expected = 3.0 + 0.1 + math.cos(angle) + 0.23
    assert env.task.reward(state, torch.ones(1, 8), state).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("height", "term", "slope"),
    [(1.3, 1.0, 0.0), (0.9, 0.6, 10.0), (0.8, -200 * 0.04**2, 16.0), (0.75, -200 * 0.09**2, 36.0)],
)
def test_the_humanoids_reward_by_hand(height, term, slope):
    """Value, and the gradient in the height that the docstring names."""
    env = make("DiffHumanoid-v0", 1)
    state = placed(env, height=height, speed=1.5)
    qpos = state.qpos.requires_grad_()
    state = state.replace(qpos=qpos)
    action = torch.full((1, 21), 0.5, dtype=torch.float64)
    reward = env.task.reward(state, action, state)
    assert reward.item() == pytest.approx(1.5 + 0.1 + 1.0 + term - 0.002 * 21 * 0.25, abs=1e-12)
    (gradient,) = torch.autograd.grad(reward.sum(), qpos)
    assert gradient[0, 2].item() == pytest.approx(slope)


@pytest.mark.parametrize(("env_id", "limit"), [("DiffAnt-v0", 0.27), ("DiffHumanoid-v0", 0.74)])
def test_an_episode_ends_where_diffrls_does(env_id, limit):
    env = make(env_id, 3)
    qpos = env.state.qpos.clone()
    qpos[:, 2] = limit + torch.tensor([0.01, -0.001, -1.0])
    assert env.task.terminated(env.state.replace(qpos=qpos)).tolist() == [False, True, True]


def test_an_ant_that_collapses_ends():
    """As DiffRL's does: its ankles' limits do not bear it, from 30 degrees, above the height that ends an episode."""
    env = make("DiffAnt-v0", 4, autoreset_mode="Disabled")
    qpos = env.state.qpos.clone()
    qpos[:, 7:] = torch.tensor([0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0], dtype=torch.float64) * math.radians(30.0)
    qpos[:, 2] = 0.4
    env.state = env.state.replace(qpos=qpos, qvel=torch.zeros_like(env.state.qvel))
    for _ in range(150):
        _, _, terminated, *_ = env.step(torch.zeros(4, 8))
    assert terminated.all()


def test_starts_are_spread_as_documented(runner):
    env = make(runner, 1000)
    state, home = env.state, torch.tensor(env.model.home)
    low, high = HEIGHT[runner]
    assert low <= state.qpos[:, 2].min() < low + 0.005
    assert high - 0.005 < state.qpos[:, 2].max() <= high
    assert (state.qpos[:, :2] == 0.0).all()
    offset = (state.qpos - home)[:, 7:]
    assert (offset.amin(0) < -0.19).all()
    reach = torch.minimum(torch.tensor(env.model.dof_range[6:, 1]) - home[7:], torch.tensor(0.2, dtype=torch.float64))
    assert ((offset.amax(0) > reach - 0.01) & (offset.amax(0) <= reach)).all()
    assert state.qvel.abs().amax(0).min() > 0.24
    assert state.qvel.abs().max() < 0.25


def test_joints_stay_within_their_limits(runner):
    """Against their largest torques, with sweeps enough to converge: none is passed by more than a step's travel."""
    env = make(runner, 8, contact=diffenvs.Hard(sweeps=50), autoreset_mode="Disabled", max_episode_steps=-1)
    low, high = (torch.tensor(env.model.dof_range[6:, side]) for side in (0, 1))
    sign = torch.rand(8, env.task.action_size, generator=torch.Generator().manual_seed(0)) < 0.5
    beyond = fastest = 0.0
    for _ in range(120):
        env.step(sign.double() * 2.0 - 1.0)
        joints = env.state.qpos[:, 7:]
        beyond = max(beyond, float(torch.maximum(low - joints, joints - high).max()))
        fastest = max(fastest, float(env.state.qvel[:, 6:].abs().max()))
    print(f"{runner}: {beyond:.3f} rad beyond, {fastest:.1f} rad/s")
    assert 0.0 < beyond < env.simulator.timestep * fastest


def test_it_lies_still_after_a_fall(runner):
    """Dropped on its back and told nothing: three seconds after, its base is slower than 0.05 m/s."""
    env = make(runner, 4, contact="hard", autoreset_mode="Disabled", max_episode_steps=-1)
    qpos = env.state.qpos.clone()
    back = math.pi if runner == "DiffAnt-v0" else math.pi / 2.0
    qpos[:, 3:7] = torch.tensor([math.cos(back / 2), 0.0, -math.sin(back / 2), 0.0], dtype=torch.float64)
    qpos[:, 2] = 0.6
    env.state = env.state.replace(qpos=qpos)
    speeds = []
    for _ in range(180):
        *_, info = env.step(torch.zeros(4, env.task.action_size))
        assert not info["nonfinite"].any()
        speeds.append(env.state.qvel[:, :3].norm(dim=1).max())
    assert max(speeds) > 0.5
    assert (env.state.qpos[:, 2] < 0.4).all()
    assert speeds[-1] < 0.05


@pytest.mark.parametrize("law", diffenvs.CONTACT)
def test_random_actions_stay_finite(runner, law):
    env = make(runner, 4, contact=law)
    generator = torch.Generator().manual_seed(0)
    for _ in range(10 if law == "soft" else 100):
        obs, reward, _, _, info = env.step(2.0 * torch.rand(4, env.task.action_size, generator=generator) - 1.0)
        assert not info["nonfinite"].any()
        assert torch.isfinite(obs).all()
        assert torch.isfinite(reward).all()
