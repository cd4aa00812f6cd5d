"""What an environment refuses before anything changes, and what it must not let pass in silence."""

import dataclasses

import pytest
import torch

import diffenvs
from diffenvs import Parameters
from diffenvs.envs.anymal import Anymal


def make(task="DiffQuadruped-v0", worlds=2, **kwargs):
    env = diffenvs.DiffVecEnv(task, worlds, array_type="torch", threads=1, dtype="float64", **kwargs)
    env.reset(seed=0)
    return env


def zeros(env):
    return torch.zeros(env.action_space.shape, dtype=torch.float64)


def test_replacing_one_parameter_does_not_draw_the_others_again():
    env = make("DiffAnymal-v0", 8)
    for _ in range(10):
        env.parameters = env.parameters.replace(kp=env.parameters.kp.clone())
        env.reset()
    added = env.parameters.mass[:, 0] - env.model.link_mass[0]
    assert added.abs().max() <= 5.0


def test_an_edit_that_torch_does_not_count_is_seen():
    env = make()
    friction = torch.full((2,), 0.8, dtype=torch.float64, requires_grad=True)
    env.parameters = env.parameters.replace(friction=friction)
    sharp = torch.ones(env.action_space.shape, dtype=torch.float64)
    start = env.state_dict()
    env.step(sharp)
    before = env.state.qvel
    friction.data.fill_(0.05)
    env.load_state_dict(start | {"parameters.friction": friction.detach()})
    env.parameters = env.parameters.replace(friction=friction)
    env.step(sharp)
    assert not torch.equal(before, env.state.qvel)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("kp", float("nan"), "'kp' of world 1 is nan, expected finite numbers"),
        ("mass", -1.0, "'mass' of world 1 is -1.0, expected finite numbers of at least 0"),
        ("friction", float("inf"), "'friction' of world 1 is inf"),
    ],
)
def test_parameters_that_cannot_be(field, value, message):
    env = make()
    held = env.parameters
    wrong = getattr(held, field).clone()
    wrong[1] = value
    with pytest.raises(ValueError, match=message):
        env.parameters = held.replace(**{field: wrong})
    assert env.parameters is held


@pytest.mark.parametrize("name", Parameters.names())
def test_a_parameter_of_another_shape_is_refused_by_name(name):
    """Also where `dataclasses.replace` went past `Parameters.replace`, and where one row would do for all worlds."""
    env = make()
    held, state = env.parameters, env.state_dict()
    right = getattr(held, name)
    wrong = [right[:1], torch.cat([right, right]), right[..., None], right.float()]
    for value in wrong:
        replaced = dataclasses.replace(held, **{name: value})
        with pytest.raises(ValueError, match=rf"{name} of the parameters is .*expected .*\({2}, ?"):
            env.parameters = replaced
        with pytest.raises(ValueError, match=rf"parameter '{name}' has shape .*expected \(2,"):
            env.simulator.simulate(env.state.qpos, env.state.qvel, zeros(env), replaced)
        with pytest.raises(ValueError, match=rf"parameter '{name}' has shape .*expected \(2,"):
            env.simulator.feet(env.state.qpos, replaced)
        if value.shape != right.shape:
            with pytest.raises(ValueError, match=rf"parameter '{name}' has shape .*expected \(2,"):
                held.replace(**{name: value})
    assert env.parameters is held
    assert all(torch.equal(now, state[key]) for key, now in env.state_dict().items())


@pytest.mark.parametrize("field", ["qpos", "qvel", "feet", "action", "elapsed"])
def test_a_state_of_another_shape_is_refused_by_name(field):
    env = make()
    before = env.state_dict()
    with pytest.raises(ValueError, match=rf"{field} of the state is .*expected .*\(2,"):
        env.state = env.state.replace(**{field: getattr(env.state, field)[:1]})
    assert all(torch.equal(now, before[key]) for key, now in env.state_dict().items())


def test_a_state_dict_that_cannot_be_changes_nothing():
    env = make("DiffAnymal-v0")
    env.step(zeros(env))
    before = env.state_dict()
    changes = {
        "state.qvel": "qvel of world 1",
        "state.action": "action of world 1",
        "state.memory.command": "memory.command of world 1",
        "parameters.kp": "'kp' of world 1",
        "nominal.mass": "'mass' of world 1",
    }
    env.step(0.5 + zeros(env))
    after = env.state_dict()
    for name, words in changes.items():
        spoilt = before[name].clone()
        spoilt[1] = float("nan")
        with pytest.raises(ValueError, match=words):
            env.load_state_dict(before | {name: spoilt})
        assert all(torch.equal(now, after[key]) for key, now in env.state_dict().items())


def test_states_that_cannot_be():
    env = make()
    held = env.state
    qvel = held.qvel.clone()
    qvel[1, 3] = float("nan")
    with pytest.raises(ValueError, match="qvel of world 1"):
        env.state = held.replace(qvel=qvel)
    action = torch.full_like(held.action, float("inf"))
    with pytest.raises(ValueError, match="action of world 0"):
        env.state = held.replace(action=action)
    qpos = held.qpos.clone()
    qpos[0, 3:7] = 0.0
    with pytest.raises(ValueError, match="quaternion of world 0 has norm 0"):
        env.state = held.replace(qpos=qpos)
    assert env.state is held


def test_a_world_that_blows_up_is_flagged_before_it_is_infinite():
    env = make(worlds=3)
    qvel = env.state.qvel.clone()
    qvel[1, 0] = 2e4
    env.state = env.state.replace(qvel=qvel)
    _, reward, terminated, _, info = env.step(zeros(env))
    assert info["nonfinite"].tolist() == [False, True, False]
    assert terminated.tolist() == [False, True, False]
    assert torch.isfinite(reward).all()


def test_second_derivatives_are_refused_not_wrong():
    env = make()
    action = zeros(env).requires_grad_(True)
    with env.rollout(1) as rollout:
        rollout.step(action)
        loss = rollout.discounted_return(gamma=0.99)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(loss, action, create_graph=True)


def test_inference_mode_leaves_the_environment_differentiable():
    env = make()
    with torch.inference_mode():
        env.step(zeros(env))
        env.reset(seed=1)
    action = zeros(env).requires_grad_(True)
    with env.rollout(1) as rollout:
        rollout.step(action)
        rollout.discounted_return(gamma=0.99).backward()
    assert action.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"added_mass": (-100.0, -60.0)}, "leaves the base"),
        ({"target_height": float("nan")}, "target_height is nan"),
        ({"command": (1.0, float("nan"), 1.0)}, "command is"),
    ],
)
def test_settings_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        diffenvs.DiffVecEnv(Anymal, 1, config=changes)


def test_kappa_beyond_float32():
    with pytest.raises(ValueError, match=r"kappa is 1e\+39, expected a finite number above 0 and below 1e\+12"):
        diffenvs.Smoothed(kappa=1e39)
