import re

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import diffenvs


def make(env_id="DiffQuadruped-v0", num_envs=4, **kwargs):
    return gym.make_vec(env_id, num_envs=num_envs, **{"threads": 1, "array_type": "torch", **kwargs})


def stream(env, steps, seed=0):
    """Everything an environment says under fixed pseudo-random actions."""
    random = np.random.default_rng(1)
    told = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        action = random.uniform(-1, 1, env.single_action_space.shape)
        obs, reward, terminated, truncated, _ = env.step(np.broadcast_to(action, env.action_space.shape))
        told += [obs, reward, terminated, truncated]
    return told


# --- Gymnasium's contract ---


def test_spaces_and_metadata(env_id):
    env = make(env_id, array_type="numpy")
    assert isinstance(env, VectorEnv)
    assert isinstance(env.unwrapped, diffenvs.DiffVecEnv)
    assert env.single_observation_space.shape == (env.task.observation_size,)
    assert env.single_action_space == gym.spaces.Box(-1, 1, (env.model.nu,), np.float32)
    assert env.observation_space.shape == (4, env.task.observation_size)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.metadata["render_fps"] == round(1 / env.task.control_timestep)
    assert env.max_episode_steps == env.spec.max_episode_steps == diffenvs.registry.find(env_id).max_episode_steps


def test_random_steps_stay_in_the_spaces(env_id):
    env = make(env_id, array_type="numpy")
    obs, info = env.reset(seed=0)
    assert info == {}
    env.action_space.seed(0)
    for _ in range(100):
        assert obs in env.observation_space
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert reward.shape == terminated.shape == truncated.shape == (4,)
        assert reward.dtype == np.float32
        assert terminated.dtype == truncated.dtype == info["nonfinite"].dtype == bool
        assert all(value.shape == (4,) for value in info["metrics"].values())


def test_every_keyword_reaches_the_worlds():
    env = gym.make_vec(
        "DiffAnymal-v0",
        num_envs=3,
        vectorization_mode="vector_entry_point",
        contact=diffenvs.Smoothed(kappa=100.0),
        device="cpu",
        dtype="float64",
        array_type="torch",
        threads=1,
        max_episode_steps=10,
        render_mode="rgb_array",
        autoreset_mode="Disabled",
        config={"fallen_height": 0.2},
    )
    assert env.num_envs == 3
    assert env.contact == env.simulator.law == diffenvs.Smoothed(kappa=100.0)
    assert env.reset(seed=0)[0].dtype == torch.float64
    assert env.max_episode_steps == 10
    assert env.render_mode == "rgb_array"
    assert env.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert env.task.config.fallen_height == 0.2
    assert env.task.config.target_height == 0.45


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"contact": "rubber"}, ValueError, "contact is 'rubber'"),
        ({"device": "cpp"}, ValueError, "device is 'cpp'"),
        ({"dtype": "int8"}, ValueError, "dtype is 'int8'"),
        ({"array_type": "jax"}, ValueError, "array_type is 'jax'; expected one of 'numpy', 'torch'"),
        ({"render_mode": "ansi"}, ValueError, "render_mode is 'ansi'"),
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps is 0"),
        ({"threads": 0}, ValueError, "threads is 0"),
        ({"num_envs": 0}, ValueError, "num_envs is 0"),
        (
            {"task": "DiffCat-v0"},
            ValueError,
            "there is no environment 'DiffCat-v0'; there are DiffQuadruped-v0",
        ),
        ({"config": {"speed": 2.0}}, ValueError, "config has no field 'speed'; .* has control_timestep"),
        ({"config": 3}, TypeError, "config is a int; expected a Quadruped.Config or a mapping"),
        ({"config": {"timestep": 0.0}}, ValueError, "Quadruped.Config.timestep is 0.0; it is a time"),
    ],
)
def test_a_bad_argument_is_named(kwargs, error, words):
    with pytest.raises(error, match=words):
        diffenvs.DiffVecEnv(**{"task": "DiffQuadruped-v0", "num_envs": 2, **kwargs})


def test_a_contact_law_judges_its_own_numbers():
    with pytest.raises(ValueError, match="kappa"):
        diffenvs.Smoothed(kappa=0.0)


def arrays_of(result):
    """Every array that a reset or a step returned."""
    *arrays, info = result
    for value in info.values():
        arrays += list(value.values()) if isinstance(value, dict) else [value]
    return [array for array in arrays if not isinstance(array, dict)]


@pytest.mark.parametrize("array_type", ["numpy", "torch"])
def test_what_was_returned_never_changes(counter, array_type):
    env = counter(3, array_type=array_type)
    kind = np.ndarray if array_type == "numpy" else torch.Tensor
    kept = []
    for step in range(9):
        result = env.reset(seed=0) if step in (0, 5) else env.step(np.full((3, 1), 0.1 * step))
        assert all(isinstance(array, kind) for array in arrays_of(result))
        kept += [(array, np.array(array.tolist())) for array in arrays_of(result)]
    assert all(np.array_equal(np.array(array.tolist()), copy) for array, copy in kept)


@pytest.mark.parametrize("array_type", ["numpy", "torch"])
def test_what_was_returned_may_be_written_to(counter, array_type):
    env, other = counter(3, array_type=array_type), counter(3, array_type=array_type)
    for step in range(9):
        action = np.full((3, 1), 0.1 * step, np.float32)
        result, expected = (e.step(action) if step else e.reset(seed=0) for e in (env, other))
        assert all(a.tolist() == b.tolist() for a, b in zip(*map(arrays_of, (result, expected)), strict=True))
        action[:] = 7
        for array in arrays_of(result):
            array[:] = 1


def test_statistics_of_the_first_four_episodes(counter):
    env = RecordEpisodeStatistics(counter(2))
    env.reset(seed=0)
    for step in range(1, 13):
        *_, info = env.step(np.zeros((2, 1)))
        if step % 3:
            assert "episode" not in info
        else:
            assert info["episode"]["l"].tolist() == [3, 3]
            assert info["episode"]["r"].tolist() == [3.0, 3.0]
    assert list(env.length_queue) == [3] * 8


def test_info_splits_into_one_dictionary_per_world(counter):
    env = DictInfoToList(counter(2))
    env.reset(seed=0)
    *_, infos = env.step(np.array([[1.0], [0.0]]))
    assert infos[0]["final_obs"].tolist()[:2] == [1.0, 1.0]
    assert set(infos[0]["final_info"]) == {"metrics", "nonfinite"}
    assert "final_obs" not in infos[1]
    assert set(infos[1]["metrics"]) == {"position"}


def test_an_endless_world_is_not_truncated(counter):
    env = counter(1, max_episode_steps=-1)
    env.reset(seed=0)
    assert env.max_episode_steps is None
    assert not any(env.step(np.zeros((1, 1)))[3][0] for _ in range(50))


# --- order of calls ---


def test_calls_out_of_order_are_refused(counter):
    env = counter()
    for call in (lambda: env.step(np.zeros((2, 1))), env.state_dict, env.rollout(2).__enter__):
        with pytest.raises(gym.error.ResetNeeded, match=re.escape("call reset()")):
            call()
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (lambda: env.step(np.zeros((2, 1))), env.reset):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_a_bad_action_changes_nothing(env_id):
    env, other = make(env_id), make(env_id)
    good = torch.zeros(env.action_space.shape)
    nan = good.clone()
    nan[3, -1] = float("nan")
    env.reset(seed=0), other.reset(seed=0)
    before = env.state_dict()
    for bad in (good[0], good.T, nan, good.bool(), None):
        with pytest.raises((ValueError, TypeError), match="action"):
            env.step(bad)
    assert all(torch.equal(value, before[name]) for name, value in env.state_dict().items())
    assert torch.equal(env.step(good)[0], other.step(good)[0])


def test_manual_resets_restart_the_count(counter):
    env = counter(1)
    env.reset(seed=0)
    env.step(np.zeros((1, 1))), env.step(np.zeros((1, 1)))
    env.reset()
    assert [bool(env.step(np.zeros((1, 1)))[3][0]) for _ in range(3)] == [False, False, True]
    # the world has restarted on its own; a reset now must not make the next step restart it again
    env.reset()
    assert env.step(np.zeros((1, 1)))[0][0, 0] == 1.0


# --- seeds ---


def test_equal_seeds_equal_streams(counter):
    assert all(map(torch.equal, stream(counter(3, array_type="torch"), 8), stream(counter(3, array_type="torch"), 8)))


def test_a_second_reset_goes_on_with_the_stream(env_id):
    env = make(env_id)
    first = [env.reset(seed=3)[0], env.reset()[0]]
    assert not torch.equal(*first)
    assert all(map(torch.equal, first, [env.reset(seed=3)[0], env.reset()[0]]))


def test_worlds_of_an_int_seed_differ(env_id):
    obs, _ = make(env_id).reset(seed=0)
    assert len(torch.unique(obs[:, 0])) == 4


def test_an_int_seed_counts_up_as_gymnasium_does():
    env = make()
    assert torch.equal(env.reset(seed=5)[0], env.reset(seed=[5, 6, 7, 8])[0])


def test_unseeded_environments_differ(counter):
    assert not np.array_equal(counter().reset()[0], counter().reset()[0])


def test_a_world_lives_the_same_life_among_4_and_among_8(env_id):
    # short episodes, so that restarts, commands and randomisation are part of the comparison
    kwargs = {"max_episode_steps": 7}
    few, many = stream(make(env_id, 4, **kwargs), 20), stream(make(env_id, 8, **kwargs), 20)
    observations = slice(0, None, 4)
    for a, b in zip(few[:1] + few[1:][observations], many[:1] + many[1:][observations], strict=True):
        assert torch.equal(a, b[:4])


@pytest.mark.parametrize(
    ("seed", "error", "words"),
    [
        ([1, 2], ValueError, "seed lists 2 integers, but there are 4 worlds"),
        ([1, 2, 3, -4], ValueError, "the seed of world 3 is -4"),
        ([1, 2, 3, None], TypeError, "the seed of world 3 is None"),
        (-1, ValueError, "the seed of world 0 is -1"),
    ],
)
def test_bad_seeds_change_nothing(seed, error, words):
    env = make()
    env.reset(seed=0)
    before = env.state_dict()
    with pytest.raises(error, match=words):
        env.reset(seed=seed)
    assert all(torch.equal(value, before[name]) for name, value in env.state_dict().items())


# --- worlds that break ---


@pytest.mark.parametrize("differentiate", [False, True])
def test_a_world_that_breaks_is_alone(env_id, differentiate):
    def run(broken):
        env = make(env_id)
        env.reset(seed=0)
        if broken:
            qvel = env.state.qvel.clone()
            qvel[2, -1] = 1e30
            env.state = env.state.replace(qvel=qvel)
        actions = torch.zeros(3, *env.action_space.shape, requires_grad=differentiate)
        with env.rollout(3) as rollout:
            for action in actions:
                rollout.step(action)
        if differentiate:
            rollout.discounted_return(0.9, lambda obs: obs.sum(-1)).backward()
        return rollout, actions.grad

    (healthy, gradient), (sick, sick_gradient) = run(False), run(True)
    assert sick.nonfinite.sum() == 1
    assert bool(sick.nonfinite[0, 2])
    assert bool(sick.terminated[0, 2])
    for tensor in (sick.observations, sick.rewards, sick.final_observations):
        # the broken world shows the state before the step, whose speeds are as the test set them
        assert torch.isfinite(tensor[1:]).all()
    others = [0, 1, 3]
    for name in ("observations", "rewards", "final_observations"):
        assert torch.equal(getattr(sick, name)[:, others], getattr(healthy, name)[:, others]), name
    if differentiate:
        assert torch.isfinite(sick_gradient[1:]).all()
        assert torch.equal(sick_gradient[:, others], gradient[:, others])


def test_a_broken_world_is_told_in_info():
    env = make()
    env.reset(seed=0)
    qvel = env.state.qvel.clone()
    qvel[1, 6:] = 1e30
    env.state = env.state.replace(qvel=qvel)
    obs, _, terminated, _, info = env.step(torch.zeros(4, 12))
    assert info["nonfinite"].tolist() == terminated.tolist() == [False, True, False, False]
    assert info["final_info"]["nonfinite"].tolist() == [False, True, False, False]
    assert torch.isfinite(obs).all()
    assert env.state.elapsed.tolist() == [1, 0, 1, 1]


# --- state and parameters ---


def test_a_placed_state_is_observed_at_once():
    env = make()
    env.reset(seed=0)
    qpos = torch.tensor(env.model.home, dtype=torch.float32).repeat(4, 1)
    qpos[:, 2] += torch.arange(4) * 0.1
    env.state = env.state.replace(qpos=qpos)
    # at home the feet just touch the floor
    clearance = env.state.feet[..., 2] - torch.tensor(env.model.contact_radius, dtype=torch.float32)
    torch.testing.assert_close(clearance, (torch.arange(4) * 0.1)[:, None].expand(4, 4), atol=1e-6, rtol=0)
    with env.rollout(1) as rollout:
        assert torch.equal(rollout.obs[:, 0], qpos[:, 2])
    with pytest.raises(ValueError, match="qpos of the state is"):
        env.state = env.state.replace(qpos=qpos[:2])


def test_feet_after_a_reset_are_those_of_the_new_pose(env_id):
    env = make(env_id, max_episode_steps=3)
    for _ in range(2):
        env.reset(seed=0)
        for _ in range(3):
            env.step(torch.zeros(env.action_space.shape))
        assert env.state.elapsed.tolist() == [0, 0, 0, 0]
        assert torch.equal(env.state.feet, env.simulator.feet(env.state.qpos, env.parameters))


def test_assigned_parameters_are_used_and_outlive_resets():
    env = make(max_episode_steps=2)
    env.reset(seed=0)
    heavy = env.parameters.replace(mass=env.parameters.mass * 1.5)
    env.parameters = heavy
    env.step(torch.zeros(4, 12)), env.step(torch.zeros(4, 12))
    assert torch.equal(env.parameters.mass, heavy.mass)
    other = make(num_envs=2)
    other.reset(seed=0)
    with pytest.raises(ValueError, match="friction of the parameters is"):
        env.parameters = other.parameters


def test_the_mujoco_model_is_the_robot_on_its_floor(env_id):
    env = make(env_id, contact="hard")
    model = env.mujoco_model()
    assert (model.nq, model.nv, model.nu) == (env.model.nq, env.model.nv, env.model.nu)
    assert model.opt.timestep == pytest.approx(env.simulator.timestep)


def test_rendering_without_a_render_mode_warns(counter):
    env = counter()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert env.render() is None


def test_two_environments_live_side_by_side():
    alone = stream(make(), 6)
    one, two = make(), make("DiffAnymal-v0", contact="hard")
    random = np.random.default_rng(1)
    told = [one.reset(seed=0)[0]]
    two.reset(seed=1)
    for _ in range(6):
        action = np.broadcast_to(random.uniform(-1, 1, 12), (4, 12))
        two.step(action)
        told += one.step(action)[:4]
    assert all(map(torch.equal, alone, told))
