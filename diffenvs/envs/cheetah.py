"""Running on two legs: the half cheetah of DiffRL (Xu et al. 2022, *Accelerated Policy Learning with Parallel
Differentiable Simulation*).

An episode lasts 1000 control steps of 1/60 s, each four simulation steps of 1/240 s. It never terminates.

Observations (17)
    index   quantity                                                   unit
    0       height of the torso                                        m
    1       pitch of the torso, positive forward                       rad
    2:5     joint positions of the back leg: thigh, shin, foot         rad
    5:8     joint positions of the front leg: thigh, shin, foot        rad
    8       velocity of the torso along world x                        m/s
    9       velocity of the torso along world z                        m/s
    10      pitch rate                                                 rad/s
    11:17   joint velocities, back leg and front leg                   rad/s

Actions (6)
    index   quantity                                                   unit
    0:6     torque = 200 * action, back leg and front leg              N m

Rewards, one row per weight in `Cheetah.Config`
    term        formula                                                weight
    velocity    v_x along world x                                      1.0
    action      -(sum over joints of a_i^2)                            0.1

Both terms are smooth. Not smooth is the clip of the action at +-1, beyond which its gradient is zero.

Differences from DiffRL
* z is up, and heights are counted from the ground (DiffRL: from 1 m).
* Contact is one of the laws here, plastic or of other springs (DiffRL: springs of 2e4 N/m); friction 1 as there. Of the
  16 ends of its capsules, 9 touch the ground: torso, head, knees, ankles and toes. The others lie within or next to
  those.
* Joint limits are unilateral constraints (DiffRL: springs of 1e3 N m/rad). The damping of its limits, which there acts
  at all times and on the root too, is part of the joints' damping: 10 N m s/rad besides the robot's own, and
  10 N s/m, N m s/rad of the root. The armature of 0.1 on every joint, the root's included, is DiffRL's.
* The mass matrix is that of every simulation step (DiffRL: 16 steps of 1/960 s on one matrix).
* A start is inside of the joints' ranges: the front foot, whose range ends at -0.3, at -0.4 rad +-0.1, all other joints
  at 0 +-0.1 (DiffRL: the front foot at 0 too, 0.3 rad beyond the end of its range).
"""

from dataclasses import dataclass

from torch import Tensor

from diffenvs import planar
from diffenvs.task import State


class Cheetah(planar.PlanarRunner):
    """Run along +x."""

    asset = "cheetah.xml"
    observation_size = 17

    @dataclass(frozen=True)
    class Config(planar.PlanarRunner.Config):
        """Weights as in the module's table."""

        velocity_weight: float = 1.0
        action_weight: float = 0.1
        start_height: tuple[float, float] = (0.7, 0.9)
        start_position: float = 0.1
        start_speed: float = 0.25

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each."""
        config = self.config
        return {
            "velocity": config.velocity_weight * next_state.qvel[..., 0],
            "action": -config.action_weight * action.square().sum(-1),
        }
