"""What robots that run along +x in a plane share: their start, their observation and their metrics."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import task
from diffenvs.random import Draws
from diffenvs.task import State


class PlanarRunner(task.Task):
    """A robot whose root slides along x and z and pitches about y, in that order, with a motor on every other joint;
    qpos[1] is the height of its torso. An action in [-1, 1] is the share of a motor's largest torque. Subclass and give
    `asset`, `observation_size`, `reward_terms` and the defaults of `Config`.
    """

    @dataclass(frozen=True)
    class Config(task.Config):
        """Start: torso height uniform in start_height [m]; x, pitch and joints +-start_position [m, rad] about the home
        pose; all velocities +-start_speed [m/s, rad/s].
        """

        control_timestep: float = 1.0 / 60.0
        timestep: float = 1.0 / 240.0
        start_height: tuple[float, float] = (0.0, 0.0)
        start_position: float = 0.0
        start_speed: float = 0.0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._home = self.tensor(self.model.home)

    def initial(self, random: Draws, n: int) -> State:
        """Home pose with noise in positions, height and velocities."""
        config = self.config
        height = random.uniform(*config.start_height, 1)
        moved = self._home + random.uniform(-config.start_position, config.start_position, self.model.nq)
        qvel = random.uniform(-config.start_speed, config.start_speed, self.model.nv)
        return self.begin(torch.cat((moved[:, :1], height, moved[:, 2:]), -1), qvel)

    def observe(self, state: State) -> Tensor:
        """qpos without x, and qvel."""
        return torch.cat((state.qpos[..., 1:], state.qvel), -1)

    def metrics(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """forward_velocity [m/s] and position [m] along world x, base_height [m], pitch [rad]."""
        return {
            "forward_velocity": next_state.qvel[..., 0],
            "position": next_state.qpos[..., 0],
            "base_height": next_state.qpos[..., 1],
            "pitch": next_state.qpos[..., 2],
        }
