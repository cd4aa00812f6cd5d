"""What several tests share: one core, and a task small enough to know its every number by heart."""

from dataclasses import dataclass

import pytest
import torch

import diffenvs
from diffenvs import task

CART = """
<mujoco model="cart">
  <worldbody>
    <body name="cart">
      <joint name="x" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="x"/></actuator>
</mujoco>
"""


class Counter(task.Task):
    """Counts its steps. An action above 0.5 ends the episode; a step is worth 1 (plus its position)."""

    asset = CART
    max_episode_steps = 3
    observation_size = 3

    @dataclass(frozen=True)
    class Config(task.Config):
        control_timestep: float = 0.1
        timestep: float = 0.1
        position_weight: float = 0.0

    def initial(self, random, n):
        start = random.uniform(-1.0, 1.0, 1)
        return self.begin(start, torch.zeros_like(start), start=start)

    def observe(self, state):
        return torch.cat((state.elapsed[..., None].to(self.dtype), state.action, state.memory["start"]), -1)

    def reward(self, state, action, next_state):
        return 1.0 + self.config.position_weight * next_state.qpos[..., 0]

    def terminated(self, state):
        return state.action[..., 0] > 0.5

    def metrics(self, state, action, next_state):
        return {"position": next_state.qpos[..., 0]}


@pytest.fixture(autouse=True)
def one_core():
    """The tensors here are far too small for a second thread to pay."""
    torch.set_num_threads(1)


@pytest.fixture
def counter():
    """Maker of counting environments."""

    def make(num_envs=2, **kwargs):
        return diffenvs.DiffVecEnv(Counter, num_envs, threads=1, **kwargs)

    return make


@pytest.fixture(params=[row.id for row in diffenvs.ENVS])
def env_id(request):
    """Every registered environment in turn."""
    return request.param
