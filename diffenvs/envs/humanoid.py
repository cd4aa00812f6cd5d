"""Running: the humanoid of DiffRL (Xu et al. 2022, *Accelerated Policy Learning with Parallel Differentiable
Simulation*).

An episode lasts 1000 control steps of 1/60 s, each four simulation steps of 1/240 s. It terminates when the torso's
centre sinks below 0.74 m.

Observations (76)
    index   quantity                                                   unit
    0       height of the torso                                        m
    1:5     attitude of the torso, quaternion w x y z                  -
    5:8     linear velocity of the torso, in world axes                m/s
    8:11    angular velocity of the torso, in torso axes               rad/s
    11:32   joint positions                                            rad
    32:53   joint velocities, times 0.1                                rad/s
    53      cosine between the torso's z axis and the world's          -
    54      cosine between the torso's x axis and the world's          -
    55:76   previous action                                            -

Actions (21)
    index   quantity                                                   unit
    0:21    torque = action * the joint's largest torque, below        N m

Rewards, one row per weight in `Humanoid.Config`
    term        formula                                                weight
    velocity    v_x along world x                                      1.0
    upright     cosine between the torso's z axis and the world's      0.1
    heading     cosine between the torso's x axis and the world's      1.0
    height      -200 d^2 where d < 0, else 10 d; d = clip(z - 0.84, -1, 0.1)   1.0
    action      -(sum over joints of a_i^2)                            0.002

Not smooth is the height term alone, apart from the clip of the action at +-1: its gradient is -400 d below 0.84 m, 10
between 0.84 and 0.94 m, and zero above, where an upright robot is.

Joints and largest torques [N m]: abdomen z, y, x 70 each; right hip x, z 70, y 210, knee 140, ankle y, x 35; the left
leg alike; right shoulder 1, 2 35, elbow 70; the left arm alike.

Differences from DiffRL
* z is up, quaternions are w x y z, velocities MuJoCo's: the angular one in torso axes (DiffRL: world axes).
* Its target 200 m ahead is the direction +x itself.
* Contact is one of the laws here, plastic or of other springs (DiffRL: springs of 2e4 N/m); friction 0.75 as there.
  Only what meets the ground first touches it: soles, knees, pelvis, elbows, hands, shoulders and head.
* Joint limits are unilateral constraints (DiffRL: springs of 1e3 N m/rad). The damping of its limits, which there
  acts at all times, is part of the joints' damping. Density 1000 kg/m^3 makes the same 40.84 kg.
* A start has the torso at 1.35 m +- 0.05 m above x = y = 0 (DiffRL: +-0.1 m along all axes, with the feet up to 4 cm
  in the ground), tilted by a rotation vector of components within +-0.075 rad (DiffRL: up to 7.5 degrees about a
  random axis). Knees begin no further than their limits, 2 degrees beyond straight.
* A world whose numbers are not finite is ended and counted; no gradient is replaced (DiffRL replaces NaN by 0).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import running
from diffenvs.task import State


class Humanoid(running.Runner):
    """Run along +x on two legs."""

    asset = "humanoid.xml"

    @dataclass(frozen=True)
    class Config(running.Runner.Config):
        """Weights as in the module's table; low_height [m] is where the height term changes its sign."""

        height_weight: float = 1.0
        action_weight: float = 0.002
        low_height: float = 0.84
        fallen_height: float = 0.74
        start_height: tuple[float, float] = (1.3, 1.4)

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each."""
        config = self.config
        rise = (next_state.qpos[..., 2] - config.low_height).clamp(-1.0, 0.1)
        return super().reward_terms(state, action, next_state) | {
            "height": config.height_weight * torch.where(rise < 0.0, -200.0 * rise.square(), 10.0 * rise),
            "action": -config.action_weight * action.square().sum(-1),
        }
