import gymnasium as gym
import pytest
import torch

import diffenvs


def make(env_id="DiffQuadruped-v0", num_envs=3, **kwargs):
    env = diffenvs.DiffVecEnv(env_id, num_envs, **{"threads": 1, "array_type": "torch", **kwargs})
    env.reset(seed=0)
    return env


def policy(env, parameter):
    return lambda obs: torch.tanh(obs[:, : env.task.action_size] * parameter)


def run(env, horizon, act):
    with env.rollout(horizon) as rollout:
        for _ in range(horizon):
            rollout.step(act(rollout.obs))
    return rollout


def test_rewards_of_the_window_are_those_of_its_steps(env_id):
    """Values and gradients, with a truncation, a push and a new command inside of the window."""
    env = make(env_id, dtype="float64", max_episode_steps=40)
    env.state = env.state.replace(elapsed=torch.tensor([0, 36, 0]))
    if env.state.memory:
        due = torch.tensor([2, 9, 9])
        env.state = env.state.remember(push_due=due, command_due=due + 1)
    parameter = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    act = policy(env, parameter)
    with env.rollout(6) as rollout:
        rewards = torch.stack([rollout.step(act(rollout.obs)).reward for _ in range(6)])
    assert rollout.truncated.any()
    torch.testing.assert_close(rollout.rewards, rewards, rtol=1e-14, atol=1e-14)
    (batched,) = torch.autograd.grad(rollout.rewards.sum(), parameter, retain_graph=True)
    (lazy,) = torch.autograd.grad(rewards.sum(), parameter)
    assert batched != 0
    torch.testing.assert_close(batched, lazy, rtol=1e-11, atol=0)


def test_a_rollout_says_what_steps_say(env_id):
    rolled, stepped = make(env_id, max_episode_steps=4), make(env_id, max_episode_steps=4)
    action = torch.full(rolled.action_space.shape, 0.5)
    rollout = run(rolled, 6, lambda obs: action)
    for t in range(6):
        obs, reward, terminated, truncated, info = stepped.step(action)
        torch.testing.assert_close(rollout.rewards[t], reward, rtol=1e-5, atol=1e-6)
        assert torch.equal(rollout.terminated[t], terminated)
        assert torch.equal(rollout.truncated[t], truncated)
        if t < 5:
            assert torch.equal(rollout.observations[t + 1], obs)
        if truncated.any():
            assert torch.equal(rollout.final_observations[t], info["final_obs"])
        for name, value in info["metrics"].items():
            torch.testing.assert_close(rollout.metrics[name][t], value)
    assert torch.equal(rollout.obs, obs)
    assert not any(value.requires_grad for value in rollout.metrics.values())


def test_shapes(env_id):
    env = make(env_id)
    rollout = run(env, 4, lambda obs: torch.zeros(env.action_space.shape))
    assert len(rollout) == 4
    assert rollout.observations.shape == rollout.final_observations.shape == (4, *env.observation_space.shape)
    assert rollout.actions.shape == (4, *env.action_space.shape)
    for flags in (rollout.terminated, rollout.truncated, rollout.nonfinite):
        assert flags.shape == (4, 3)
        assert flags.dtype == torch.bool
    assert rollout.rewards.shape == (4, 3)


def test_actions_are_recorded_as_applied():
    rollout = run(make(), 1, lambda obs: torch.full((3, 12), 2.0))
    assert torch.equal(rollout.actions, torch.ones(1, 3, 12))


@pytest.mark.parametrize("law", ["smoothed", "soft"])
def test_the_gradient_is_the_slope_of_the_return(env_id, law):
    """Directional derivative over six steps, in float64, against central differences of the same rollout."""
    env = make(env_id, dtype="float64", contact=law)
    start = env.state_dict()
    generator = torch.Generator().manual_seed(0)
    shape = 6, *env.action_space.shape
    actions = torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5
    direction = torch.randn(shape, generator=generator, dtype=torch.float64)

    def objective(actions):
        env.load_state_dict(start)
        with env.rollout(6) as rollout:
            for action in actions:
                rollout.step(action)
        return rollout.discounted_return(0.95, lambda obs: obs.sin().sum(-1))

    actions.requires_grad_()
    (gradient,) = torch.autograd.grad(objective(actions), actions)
    with torch.no_grad():
        h = 1e-6
        slope = (objective(actions + h * direction) - objective(actions - h * direction)) / (2 * h)
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-6, atol=1e-9)


def test_the_discounted_return_by_hand(counter):
    """Two worlds, limit 3, four steps. World 0 terminates at step 2; world 1 is truncated at step 3."""
    env = counter(2, array_type="torch", config={"position_weight": 1.0})
    env.reset(seed=0)
    with env.rollout(4) as rollout:
        for action in (0.0, 1.0, 0.0, 0.0):
            rollout.step(torch.tensor([[action], [0.0]]))
    g, r = 0.9, rollout.rewards

    def value(obs):
        # V is the age shown plus ten, so that every bootstrap can be told apart; (M, 1) as a network gives it
        return obs[:, :1] + 10.0

    world_0 = r[0, 0] + g * r[1, 0] + (r[2, 0] + g * r[3, 0] + g**2 * (2.0 + 10.0))
    world_1 = r[0, 1] + g * r[1, 1] + g**2 * r[2, 1] + g**3 * (3.0 + 10.0) + (r[3, 1] + g * (1.0 + 10.0))
    torch.testing.assert_close(rollout.discounted_return(g, value), (world_0 + world_1) / 2)
    bare = world_0 - g**2 * 12.0 + world_1 - g**3 * 13.0 - g * 11.0
    torch.testing.assert_close(rollout.discounted_return(g), bare / 2)


def test_termination_wins_over_truncation(counter):
    env = counter(1, array_type="torch", max_episode_steps=1)
    env.reset(seed=0)
    rollout = run(env, 1, lambda obs: torch.ones(1, 1))
    assert rollout.terminated.all()
    assert rollout.truncated.all()
    assert rollout.discounted_return(0.9, lambda obs: obs[:, 0] + 100.0) == 1.0


def test_the_value_passes_gradients_to_the_last_state():
    env = make()
    action = torch.zeros(3, 12, requires_grad=True)
    rollout = run(env, 1, lambda obs: action)
    value_only = rollout.discounted_return(0.9, lambda obs: obs.sum(-1)) - rollout.discounted_return(0.9)
    (gradient,) = torch.autograd.grad(value_only, action)
    assert (gradient != 0).any(1).all()


def test_the_window_begins_and_ends_without_a_graph():
    env = make()
    parameter = torch.tensor(0.3, requires_grad=True)
    with env.rollout(3) as rollout:
        assert not rollout.obs.requires_grad
        for _ in range(3):
            assert rollout.step(policy(env, parameter)(rollout.obs)).obs.requires_grad
        assert env.state.qpos.requires_grad
    assert not env.state.qpos.requires_grad
    assert not env.observation.requires_grad
    # two windows, each with a backward pass of its own, the first one after the second was run
    second = run(env, 3, policy(env, parameter))
    (across,) = torch.autograd.grad(second.observations[0].sum(), parameter, retain_graph=True)
    assert across == 0
    second.discounted_return(0.9).backward()
    rollout.discounted_return(0.9).backward()
    assert torch.isfinite(parameter.grad)


def test_a_rollout_stays_valid_while_the_environment_goes_on():
    def gradient(disturb):
        env = make("DiffAnymal-v0", max_episode_steps=5)
        actions = torch.full((4, 3, 12), 0.1, requires_grad=True)
        with env.rollout(4) as rollout:
            for action in actions:
                rollout.step(action)
        if disturb:
            for _ in range(10):
                env.step(torch.ones(3, 12))
            env.reset(seed=9)
            run(env, 2, lambda obs: torch.zeros(3, 12))
        rollout.discounted_return(0.9).backward()
        return rollout.observations, rollout.rewards, actions.grad

    assert all(map(torch.equal, gradient(False), gradient(True)))


def test_leaving_early_leaves_a_usable_environment():
    env = make()
    parameter = torch.tensor(0.3, requires_grad=True)

    def stop():
        with env.rollout(8) as rollout:
            rollout.step(policy(env, parameter)(rollout.obs))
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        stop()
    assert not env.state.qvel.requires_grad
    with env.rollout(8) as rollout:
        rollout.step(policy(env, parameter)(rollout.obs))
    assert len(rollout) == 1
    rollout.discounted_return(0.9).backward()
    env.step(torch.zeros(3, 12))


def test_a_bad_action_in_a_window_changes_nothing():
    env, other = make(), make()
    action = torch.full((3, 12), 0.1)
    with env.rollout(2) as rollout:
        rollout.step(action)
        with pytest.raises(ValueError, match="action of world 1 holds nan at index 3"):
            rollout.step(action.index_put((torch.tensor(1), torch.tensor(3)), torch.tensor(float("nan"))))
        rollout.step(action)
    assert torch.equal(rollout.observations, run(other, 2, lambda obs: action).observations)


def test_rewards_follow_the_steps_taken():
    env = make()
    with env.rollout(3) as rollout:
        for length in (1, 2, 3):
            rollout.step(torch.zeros(3, 12))
            assert rollout.rewards.shape == (length, 3)


def test_misuse_is_refused():
    env = make()
    action = torch.zeros(3, 12)
    rollout = env.rollout(1)
    for use in (lambda: rollout.obs, lambda: rollout.step(action), lambda: rollout.rewards):
        with pytest.raises(RuntimeError, match="rollout"):
            use()
    with rollout:
        for use in (lambda: env.step(action), env.reset, env.rollout(1).__enter__):
            with pytest.raises(RuntimeError, match="a rollout is open"):
                use()
        rollout.step(action)
        with pytest.raises(RuntimeError, match="has taken its 1 steps"):
            rollout.step(action)
    with pytest.raises(RuntimeError, match="ask the environment for another"):
        rollout.__enter__()
    with pytest.raises(RuntimeError, match="inside its with-block"):
        rollout.step(action)
    with pytest.raises(ValueError, match="horizon is 0"):
        env.rollout(0)


def test_it_is_reached_through_make_vec():
    envs = gym.make_vec("DiffQuadruped-v0", num_envs=2, threads=1)
    envs.reset(seed=0)
    with envs.unwrapped.rollout(horizon=2) as rollout:
        for _ in range(2):
            rollout.step(torch.zeros(2, 12))
    assert rollout.rewards.shape == (2, 2)


@pytest.mark.parametrize("name", ["friction", "mass", "kp", "link_pos"])
def test_physical_parameters_have_gradients(name):
    """Against central differences, and through a restart as well."""
    env = make(dtype="float64", max_episode_steps=20)
    env.state = env.state.replace(elapsed=torch.tensor([0, 18, 0]))
    start, nominal = env.state_dict(), env.parameters
    value = getattr(nominal, name).clone()

    def objective(value):
        env.load_state_dict(start)
        env.parameters = nominal.replace(**{name: value})
        return run(env, 6, lambda obs: torch.full((3, 12), 0.3, dtype=torch.float64)).discounted_return(0.9)

    value.requires_grad_()
    (gradient,) = torch.autograd.grad(objective(value), value)
    assert (gradient[1] != 0).any()
    direction = torch.randn(value.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        h = 1e-6
        slope = (objective(value + h * direction) - objective(value - h * direction)) / (2 * h)
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-5, atol=1e-8)
