"""The worlds that gradients are checked in: taken from life, in contact and in the air."""

from typing import TYPE_CHECKING

import torch
from gymnasium.vector import AutoresetMode

from diffenvs.gradients.window import STATE_INPUTS, Start
from diffenvs.parameters import Parameters

if TYPE_CHECKING:
    from diffenvs.env import DiffVecEnv

# Steps of random actions before the window, so that worlds are caught in the middle of things.
WARM_UP = 16
# Of the actions: inside [-1, 1] by far more than the largest probe moves them, for clipping is a kink.
REACH = 0.6


def make_twin(env: "DiffVecEnv", nominal: Parameters, worlds: int) -> "DiffVecEnv":
    """An environment with the task, law and device of `env`, in float64, without restarts. World i has the parameters
    of row i of `nominal`, or, where there are fewer, starts over with row 0.
    """
    twin = type(env)(
        type(env.task),
        worlds,
        config=env.task.config,
        contact=env.contact,
        device=env.device,
        dtype="float64",
        array_type="torch",
        max_episode_steps=-1,
        autoreset_mode=AutoresetMode.DISABLED,
    )
    twin.spec = env.spec
    rows = torch.arange(worlds, device=env.device) % env.num_envs
    twin.parameters = Parameters(*(value.detach()[rows].double() for value in nominal.tensors()))
    return twin


def draw_start(env: "DiffVecEnv", horizon: int, seed: int) -> Start:
    """States of the N worlds of `env` (float64, array type torch) after up to `WARM_UP` random steps, random actions
    for `horizon` steps, and random weights.

    World i is taken after i WARM_UP / (N - 1) steps, so the first has just been reset.
    """
    generator = torch.Generator().manual_seed(seed)
    n, nu = env.num_envs, env.model.nu

    def uniform(*shape):
        return (REACH * (2.0 * torch.rand(shape, generator=generator, dtype=env.dtype) - 1.0)).to(env.device)

    def normal(like):
        return torch.randn(like.shape, generator=generator, dtype=env.dtype).to(env.device)

    env.reset(seed=seed)
    ages = torch.linspace(0, WARM_UP, n, device=env.device).round()
    state, parameters, saved = env.state, env.parameters, env.state_dict()
    for age in range(1, WARM_UP + 1):
        env.step(uniform(n, nu))
        worlds = (ages >= age).nonzero().squeeze(1)
        state = state.put(worlds, env.state.map(lambda value, worlds=worlds: value[worlds]))
        parameters = parameters.put(worlds, env.parameters.select(worlds))
        now = env.state_dict()
        saved = {k: saved[k].index_copy(0, worlds, now[k][worlds]) for k in ("random.key", "random.drawn")}
    values = {name: getattr(state, name) for name in STATE_INPUTS}
    values["action"] = uniform(n, horizon, nu)
    values |= {name: value.detach() for name, value in zip(Parameters.names(), parameters.tensors(), strict=True)}
    streams = {name: saved[f"random.{name}"] for name in ("key", "drawn")}
    weights = {name: normal(getattr(state, name)) for name in (*STATE_INPUTS, "feet")}
    weights["observation"] = normal(env.observation)
    return Start(state, values, streams, weights)
