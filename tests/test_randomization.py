"""Domain randomisation: what the ranges mean, whose streams the draws come from, and what is refused."""

import dataclasses

import gymnasium as gym
import pytest
import torch

import diffenvs
from diffenvs import Parameters, Randomization

FACTORS = ("mass", "inertia", "damping", "stiffness", "armature", "kp", "kd", "contact_radius")
EVERYTHING = Randomization(
    **dict.fromkeys(FACTORS, (0.5, 1.5)),
    **dict.fromkeys(("com", "link_pos", "contact_pos"), (-0.01, 0.02)),
    friction=(0.5, 1.25),
    base_mass=(-2.0, 3.0),
)


def make(randomization, worlds=4, task="DiffQuadruped-v0", seed=0, **kwargs):
    kwargs = {"array_type": "torch", "threads": 1, "dtype": "float64", **kwargs}
    env = diffenvs.DiffVecEnv(task, worlds, randomization=randomization, **kwargs)
    env.reset(seed=seed)
    return env


def spread(values, low, high):
    """Whether (many) values fill the range and stay in it."""
    width = high - low
    assert low <= values.min() < low + 0.05 * width
    assert high - 0.05 * width < values.max() <= high


def test_every_parameter_of_a_simulation_can_be_drawn():
    names = {f.name for f in dataclasses.fields(Randomization)}
    assert names == {*Parameters.names(), "base_mass"}


def test_friction_is_the_value_itself():
    env = make({"friction": (0.5, 1.25)}, 200)
    spread(env.parameters.friction, 0.5, 1.25)
    for name in set(Parameters.names()) - {"friction"}:
        assert torch.equal(getattr(env.parameters, name), getattr(make(None, 200).parameters, name))


@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_scales_each_element_on_its_own(name, env_id):
    plain, drawn = (getattr(make(r, 200, env_id).parameters, name) for r in (None, {name: (0.5, 1.5)}))
    if env_id == "DiffAnymal-v0" and name == "mass":
        # its own randomisation adds to the base's
        plain, drawn = plain[:, 1:], drawn[:, 1:]
    assert torch.equal(drawn == 0.0, plain == 0.0)
    if (moved := plain != 0.0).any():
        factor = torch.where(moved, drawn / plain, torch.ones_like(plain))
        spread(factor[moved], 0.5, 1.5)
        # one draw for each link, and the same one for all entries of an inertia
        columns = factor.reshape(200, factor.shape[1], -1)
        single = torch.where(moved.reshape(columns.shape), columns, columns[..., :1])
        torch.testing.assert_close(single, columns[..., :1].expand_as(columns))
        live = moved.reshape(columns.shape)[0, :, 0].nonzero().squeeze(1)
        assert len({float(columns[0, i, 0]) for i in live}) == len(live)


@pytest.mark.parametrize("name", ["com", "contact_pos", "link_pos"])
def test_a_position_is_moved_in_every_coordinate(name):
    plain, drawn = (getattr(make(r, 100).parameters, name) for r in (None, {name: (-0.01, 0.02)}))
    offset = drawn - plain
    if name == "link_pos":
        assert (offset[:, 0] == 0.0).all()
        offset = offset[:, 1:]
    spread(offset, -0.01, 0.02)
    assert offset[0].unique().numel() == offset[0].numel()


def test_a_mass_is_added_to_the_base_after_the_factor():
    plain = make(None, 200)
    drawn = make({"base_mass": (-2.0, 3.0)}, 200)
    added = drawn.parameters.mass - plain.parameters.mass
    spread(added[:, 0], -2.0, 3.0)
    assert (added[:, 1:] == 0.0).all()
    both = make({"mass": (2.0, 2.0), "base_mass": (1.0, 1.0)})
    torch.testing.assert_close(both.parameters.mass[:, 0], 2.0 * plain.parameters.mass[:4, 0] + 1.0)
    torch.testing.assert_close(both.parameters.mass[:, 1:], 2.0 * plain.parameters.mass[:4, 1:])


def test_the_base_is_the_first_link_with_mass():
    """A body with two joints is two links, the first without mass."""
    xml = """
    <mujoco><worldbody><body name="cart">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <geom size="0.1" mass="1" contype="0" conaffinity="0"/>
    </body></worldbody></mujoco>
    """
    model = diffenvs.load_model(xml)
    assert model.link_mass.tolist() == [0.0, 1.0]
    parameters = make(None, 1).parameters
    parameters = dataclasses.replace(parameters, mass=torch.tensor(model.link_mass)[None])
    random = diffenvs.random.WorldRandom([0], dtype=torch.float64).select()
    drawn = Randomization(base_mass=(2.0, 2.0)).draw(random, parameters, model)
    assert drawn.mass.tolist() == [[0.0, 3.0]]


def test_it_comes_on_top_of_the_tasks_own():
    own = make(None, 50, "DiffAnymal-v0")
    both = make({"friction": (2.0, 3.0), "base_mass": (1.0, 1.0)}, 50, "DiffAnymal-v0")
    assert ((both.parameters.friction >= 2.0) & (both.parameters.friction < 3.0)).all()
    torch.testing.assert_close(both.parameters.mass[:, 0], own.parameters.mass[:, 0] + 1.0)


def test_the_draws_of_a_world_depend_on_its_seed_alone():
    few, many = make(EVERYTHING, 2, seed=[3, 5]), make(EVERYTHING, 5, seed=[9, 5, 3, 0, 1])
    for name in Parameters.names():
        assert torch.equal(getattr(few.parameters, name), getattr(many.parameters, name)[[2, 1]]), name
    assert torch.equal(few.state.qpos, many.state.qpos[[2, 1]])
    again = make(EVERYTHING, 2, seed=[3, 5])
    assert all(torch.equal(a, b) for a, b in zip(few.parameters.tensors(), again.parameters.tensors(), strict=True))


def test_every_episode_draws_anew_and_only_its_world():
    env = make(EVERYTHING, 3, max_episode_steps=2)
    before = env.parameters
    env.reset(options={"reset_mask": [False, True, False]})
    for name, old, new in zip(Parameters.names(), before.tensors(), env.parameters.tensors(), strict=True):
        assert torch.equal(old[[0, 2]], new[[0, 2]]), name
    assert (before.friction[1] != env.parameters.friction[1]).all()
    for _ in range(2):
        env.step(torch.zeros(env.action_space.shape))
    assert (env.parameters.friction != before.friction).all()


def test_two_resets_do_not_add_up():
    env = make({"mass": (2.0, 2.0)})
    env.reset()
    torch.testing.assert_close(env.parameters.mass[0], 2.0 * torch.tensor(env.model.link_mass))


def test_without_it_lives_are_what_they_were():
    plain, empty = make(None), make(Randomization())
    assert torch.equal(plain.state.qpos, empty.state.qpos)
    assert plain.parameters.mass is plain._nominal.mass
    assert empty.parameters.mass is empty._nominal.mass


def test_gradients_reach_the_nominal_parameters_through_a_draw():
    """The derivative of a drawn value by its nominal one: the factor, 1 for an added mass, 0 for friction."""
    env = make({"mass": (0.5, 1.5), "friction": (0.5, 1.25), "base_mass": (0.0, 1.0)}, max_episode_steps=1)
    leaves = {name: getattr(env.parameters, name).clone().requires_grad_() for name in ("mass", "friction")}
    env.parameters = env.parameters.replace(**leaves)
    with env.rollout(2) as rollout:
        for _ in range(2):  # the first step ends every episode, the second runs on parameters drawn in the graph
            rollout.step(torch.zeros(env.action_space.shape, dtype=torch.float64))
        drawn = env.parameters
        (gradient,) = torch.autograd.grad(drawn.mass.sum(), leaves["mass"], retain_graph=True)
        loss = rollout.rewards[1].sum()
    nominal = leaves["mass"].detach()
    torch.testing.assert_close((gradient * nominal)[:, 1:], drawn.mass.detach()[:, 1:])
    added = drawn.mass.detach()[:, 0] - (gradient * nominal)[:, 0]
    assert ((added >= 0.0) & (added < 1.0)).all()
    by_mass, by_friction = torch.autograd.grad(loss, (leaves["mass"], leaves["friction"]), allow_unused=True)
    assert (by_mass[:, 0] != 0.0).all()
    assert by_friction is None or (by_friction == 0.0).all()


def test_through_gymnasium():
    env = gym.make("DiffQuadruped-v0", randomization={"friction": (0.1, 0.2)})
    env.reset(seed=0)
    assert 0.1 <= env.unwrapped.worlds.parameters.friction[0] <= 0.2
    envs = gym.make_vec("DiffQuadruped-v0", num_envs=2, threads=1, randomization=Randomization(friction=(0.1, 0.2)))
    envs.reset(seed=0)
    assert torch.equal(envs.unwrapped.parameters.friction[:1], env.unwrapped.worlds.parameters.friction)


@pytest.mark.parametrize(
    ("ranges", "error", "message"),
    [
        ({"grip": (0, 1)}, ValueError, "no parameter 'grip'; it has friction, mass, base_mass, com"),
        ({"friction": (1.0, 0.5)}, ValueError, r"friction is \(1.0, 0.5\); expected low and high in this order"),
        ({"kp": (float("nan"), 1.0)}, ValueError, r"kp is \(nan, 1.0\); expected finite"),
        ({"base_mass": (0.0, float("inf"))}, ValueError, "base_mass .* expected finite"),
        ({"friction": (-0.1, 1.0)}, ValueError, "friction .* at least 0"),
        ({"damping": (-0.1, 1.0)}, ValueError, "damping .* at least 0"),
        ({"mass": (0.0, 1.0)}, ValueError, "mass .* factors above 0"),
        ({"inertia": (0.0, 1.0)}, ValueError, "inertia .* factors above 0"),
        ({"friction": 0.5}, TypeError, "friction is 0.5; expected a pair"),
        ({"friction": (0.5, "1")}, TypeError, "expected a pair of numbers"),
        ({"friction": (0.5, 0.6, 0.7)}, TypeError, "expected a pair"),
    ],
)
def test_ranges_that_cannot_be(ranges, error, message):
    with pytest.raises(error, match=message):
        Randomization(**ranges)
    with pytest.raises(error, match=message):
        make(ranges)


def test_what_is_no_randomization():
    with pytest.raises(TypeError, match="randomization is a list; expected a Randomization or a mapping of ranges"):
        make([("friction", (0.5, 1.0))])


def test_a_base_keeps_its_mass():
    """Judged when the environment is made and whenever nominal parameters change; nothing changes then."""
    base = make(None).model.link_mass[0]
    with pytest.raises(ValueError, match=r"can leave link 'base' of world 0 -0.778 kg; expected more than 0"):
        make({"base_mass": (-7.0, 0.0)})
    with pytest.raises(ValueError, match="link 'base' of world 0"):
        make({"base_mass": (-5.0, 0.0), "mass": (0.5, 1.0)})
    env = make({"base_mass": (-5.0, 0.0)})
    held, light = env.parameters, make(None).parameters.mass.clone()
    light[2, 0] = 0.5 * base
    with pytest.raises(ValueError, match="link 'base' of world 2"):
        env.parameters = held.replace(mass=light)
    assert env.parameters is held
    state = env.state_dict()
    with pytest.raises(ValueError, match="link 'base' of world 2"):
        env.load_state_dict(state | {"nominal.mass": light})
    assert env.parameters is held


def test_a_base_that_loses_its_mass_to_both_is_refused():
    """The task takes up to 5 kg and the environment all but one: only a draw can tell."""
    all_but_one = 1.0 - float(make(None, 1, "DiffAnymal-v0").model.link_mass[0])
    env = diffenvs.DiffVecEnv("DiffAnymal-v0", 64, threads=1, randomization={"base_mass": (all_but_one,) * 2})
    with pytest.raises(ValueError, match=r"together with the task's own randomisation, .* leaves link 'base' of world"):
        env.reset(seed=0)
    assert env.state is None
