"""Running on one leg: the hopper of DiffRL (Xu et al. 2022, *Accelerated Policy Learning with Parallel Differentiable
Simulation*).

An episode lasts 1000 control steps of 1/60 s, each four simulation steps of 1/240 s. It terminates when the torso's
centre sinks below 0.8 m.

Observations (11)
    index   quantity                                                   unit
    0       height of the torso                                        m
    1       pitch of the torso, positive forward                       rad
    2:5     joint positions: thigh, knee, ankle                        rad
    5       velocity of the torso along world x                        m/s
    6       velocity of the torso along world z                        m/s
    7       pitch rate                                                 rad/s
    8:11    joint velocities                                           rad/s

Actions (3)
    index   quantity                                                   unit
    0:3     torque = 200 * action: thigh, knee, ankle                  N m

Rewards, one row per weight in `Hopper.Config`
    term        formula                                                weight
    velocity    v_x along world x                                      1.0
    height      -200 d^2 where d < 0, else d; d = clip(z - 0.95, -1, 0.3)   1.0
    pitch       1 - (pitch / 30 degrees)^2                             1.0
    action      -(sum over joints of a_i^2)                            0.1

Not smooth is the height term alone, apart from the clip of the action at +-1, beyond which its gradient is zero: its
slope is -400 d below 0.95 m, 1 between 0.95 and 1.25 m, and zero above, where the leg is straight on its toes or in
flight.

Differences from DiffRL
* z is up, and heights are counted from the ground (DiffRL: from 1.25 m).
* Contact is one of the laws here, plastic or of other springs (DiffRL: springs of 2e4 N/m); friction 0.9 as there. Only
  the foot touches the ground; while the torso is above 0.8 m nothing else can.
* Joint limits are unilateral constraints (DiffRL: springs of 1e3 N m/rad). The damping of its limits, which there acts
  at all times and on the root too, is part of the joints' damping: 2 + 10 N m s/rad, and 10 N s/m, N m s/rad of the
  root. The armature of 1 on every joint, the root's two slides and hinge included, is DiffRL's.
* The mass matrix is that of every simulation step (DiffRL: 16 steps of 1/960 s on one matrix).
* A start is inside of the joints' ranges: thigh and knee at -0.05, ankle at 0.1 rad, +-0.05 each (DiffRL: all at
  0 +-0.05, half of them beyond the end of the range).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import planar
from diffenvs.task import State


class Hopper(planar.PlanarRunner):
    """Run along +x on one leg."""

    asset = "hopper.xml"
    observation_size = 11

    @dataclass(frozen=True)
    class Config(planar.PlanarRunner.Config):
        """Weights as in the module's table; low_height [m] is where the height term changes its sign; fallen_height
        [m] ends an episode."""

        velocity_weight: float = 1.0
        height_weight: float = 1.0
        pitch_weight: float = 1.0
        action_weight: float = 0.1
        low_height: float = 0.95
        fallen_height: float = 0.8
        start_height: tuple[float, float] = (1.2, 1.3)
        start_position: float = 0.05
        start_speed: float = 0.05

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each."""
        config = self.config
        rise = (next_state.qpos[..., 1] - config.low_height).clamp(-1.0, 0.3)
        tilt = next_state.qpos[..., 2] / math.radians(30.0)
        return {
            "velocity": config.velocity_weight * next_state.qvel[..., 0],
            "height": config.height_weight * torch.where(rise < 0.0, -200.0 * rise.square(), rise),
            "pitch": config.pitch_weight * (1.0 - tilt.square()),
            "action": -config.action_weight * action.square().sum(-1),
        }

    def terminated(self, state: State) -> Tensor:
        """Torso below `fallen_height`."""
        return state.qpos[..., 1] < self.config.fallen_height
