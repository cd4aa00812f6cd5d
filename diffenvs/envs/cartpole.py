"""Swinging up and balancing: the cart and pole of DiffRL (Xu et al. 2022, *Accelerated Policy Learning with Parallel
Differentiable Simulation*).

An episode lasts 240 control steps of 1/60 s, each four simulation steps of 1/240 s. It never terminates.

Observations (5)
    index   quantity                                                   unit
    0       position of the cart                                       m
    1       velocity of the cart                                       m/s
    2       sine of the pole's angle, zero upright                     -
    3       cosine of the pole's angle                                 -
    4       angular velocity of the pole                               rad/s

Actions (1)
    index   quantity                                                   unit
    0       force on the cart = 1000 * action                          N

Rewards, one row per weight in `Cartpole.Config`
    term        formula                                                weight
    angle       -(the pole's angle, wrapped to +-pi)^2                 1.0
    spin        -(angular velocity of the pole)^2                      0.1
    position    -(position of the cart)^2                              0.05
    speed       -(velocity of the cart)^2                              0.1

Not smooth is the angle term where the pole hangs, at +-pi, apart from the clip of the action at +-1, beyond which its
gradient is zero: its slope jumps from -2 pi to 2 pi there, its value does not jump. Either slope leads up.

Differences from DiffRL
* Nothing touches the ground, so all contact laws are one, but for the cart's stops at +-4 m.
* Those are unilateral constraints (DiffRL: springs of 100 N/m). The damping of its limits, which there acts at all
  times, is part of the joints' damping: 1 N s/m of the cart and 1 N m s/rad of the pole.
* The boxes of 1000 kg/m^3 weigh 50 and 2.5 kg, as there.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import task
from diffenvs.random import Draws
from diffenvs.task import State


class Cartpole(task.Task):
    """Swing the pole up and hold it."""

    asset = "cartpole.xml"
    max_episode_steps = 240
    observation_size = 5

    @dataclass(frozen=True)
    class Config(task.Config):
        """Weights as in the module's table.

        Start: cart within +-start_position [m] of the middle, pole within +-start_angle [rad] of hanging, both
        velocities +-start_speed [m/s, rad/s].
        """

        control_timestep: float = 1.0 / 60.0
        timestep: float = 1.0 / 240.0
        angle_weight: float = 1.0
        spin_weight: float = 0.1
        position_weight: float = 0.05
        speed_weight: float = 0.1
        start_position: float = math.pi / 2.0
        start_angle: float = math.pi / 2.0
        start_speed: float = 0.25

    def initial(self, random: Draws, n: int) -> State:
        """Hanging, with noise in positions and velocities."""
        config = self.config
        spread = self.tensor([config.start_position, config.start_angle])
        qpos = self.tensor(self.model.home) + random.uniform(-spread, spread, 2)
        return self.begin(qpos, random.uniform(-config.start_speed, config.start_speed, 2))

    def observe(self, state: State) -> Tensor:
        """See the module's table."""
        (x, angle), (speed, spin) = state.qpos.unbind(-1), state.qvel.unbind(-1)
        return torch.stack((x, speed, angle.sin(), angle.cos(), spin), -1)

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each."""
        config = self.config
        (x, _), (speed, spin) = next_state.qpos.unbind(-1), next_state.qvel.unbind(-1)
        return {
            "angle": -config.angle_weight * self.angle(next_state).square(),
            "spin": -config.spin_weight * spin.square(),
            "position": -config.position_weight * x.square(),
            "speed": -config.speed_weight * speed.square(),
        }

    def angle(self, state: State) -> Tensor:
        """Angle of the pole (N,) [rad], zero upright, wrapped to +-pi; its slope is one."""
        angle = state.qpos[..., 1]
        return angle - 2.0 * math.pi * torch.round(angle.detach() / (2.0 * math.pi))

    def metrics(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """angle [rad] of the pole, zero upright, and position [m] of the cart."""
        return {"angle": self.angle(next_state), "position": next_state.qpos[..., 0]}
