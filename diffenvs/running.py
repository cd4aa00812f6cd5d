"""What floating robots that run along +x share: their start, their observation, their end and their metrics."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import rotation, task
from diffenvs.random import Draws
from diffenvs.start import noisy_home
from diffenvs.task import State

# what DiffRL multiplies joint velocities with in an observation
SPEED_SCALE = 0.1


class Runner(task.Task):
    """A robot on a free joint, with a motor on every hinge in the order of its joints; an action in [-1, 1] is the
    share of a motor's largest torque. Subclass and give `asset`, `reward_terms` and the defaults of `Config`.
    """

    @dataclass(frozen=True)
    class Config(task.Config):
        """Weights of the terms that all have; fallen_height [m] of the base ends an episode.

        Start: base height uniform in start_height [m], tilt about a random axis with each component of the rotation
        vector within +-start_tilt [rad], joints +-start_joint [rad] about the home pose and within their limits, all
        velocities +-start_speed [m/s, rad/s].
        """

        control_timestep: float = 1.0 / 60.0
        timestep: float = 1.0 / 240.0
        velocity_weight: float = 1.0
        upright_weight: float = 0.1
        heading_weight: float = 1.0
        fallen_height: float = 0.0
        start_height: tuple[float, float] = (0.0, 0.0)
        start_tilt: float = 0.075
        start_joint: float = 0.2
        start_speed: float = 0.25

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._home = self.tensor(self.model.home)
        self._low, self._high = (self.tensor(self.model.dof_range[6:, side]) for side in (0, 1))
        self.observation_size = 13 + 3 * self.action_size

    def initial(self, random: Draws, n: int) -> State:
        """Home pose with noise in height, tilt, joints and velocities; no joint begins beyond its limits."""
        config = self.config
        height = random.uniform(*config.start_height, 1)
        noise = {"tilt": config.start_tilt, "joint": config.start_joint, "speed": config.start_speed}
        qpos, qvel = noisy_home(random, self._home, height, **noise, nv=self.model.nv)
        return self.begin(torch.cat((qpos[:, :7], qpos[:, 7:].clamp(self._low, self._high)), -1), qvel)

    def observe(self, state: State) -> Tensor:
        """Height, attitude, velocities of the base, joint positions, scaled joint velocities, the two cosines, the
        previous action."""
        quaternion = state.qpos[..., 3:7]
        return torch.cat(
            (
                state.qpos[..., 2:7],
                state.qvel[..., :6],
                state.qpos[..., 7:],
                SPEED_SCALE * state.qvel[..., 6:],
                rotation.up_alignment(quaternion)[..., None],
                rotation.heading_alignment(quaternion)[..., None],
                state.action,
            ),
            -1,
        )

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms that all have, by name, (N,) each: forward velocity, and the two cosines."""
        config, quaternion = self.config, next_state.qpos[..., 3:7]
        return {
            "velocity": config.velocity_weight * next_state.qvel[..., 0],
            "upright": config.upright_weight * rotation.up_alignment(quaternion),
            "heading": config.heading_weight * rotation.heading_alignment(quaternion),
        }

    def terminated(self, state: State) -> Tensor:
        """Base below `fallen_height`."""
        return state.qpos[..., 2] < self.config.fallen_height

    def metrics(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """forward_velocity [m/s] and position [m] along world x, base_height [m]."""
        return {
            "forward_velocity": next_state.qvel[..., 0],
            "position": next_state.qpos[..., 0],
            "base_height": next_state.qpos[..., 2],
        }
