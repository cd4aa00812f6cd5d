"""Running: the ant of DiffRL (Xu et al. 2022, *Accelerated Policy Learning with Parallel Differentiable Simulation*).

An episode lasts 1000 control steps of 1/60 s, each four simulation steps of 1/240 s. It terminates when the torso's
centre sinks below 0.27 m, two centimetres above the torso's radius.

Observations (37)
    index   quantity                                                   unit
    0       height of the torso                                        m
    1:5     attitude of the torso, quaternion w x y z                  -
    5:8     linear velocity of the torso, in world axes                m/s
    8:11    angular velocity of the torso, in torso axes               rad/s
    11:19   joint positions                                            rad
    19:27   joint velocities, times 0.1                                rad/s
    27      cosine between the torso's z axis and the world's          -
    28      cosine between the torso's x axis and the world's          -
    29:37   previous action                                            -

Actions (8)
    index   quantity                                                   unit
    0:8     torque = 200 * action                                      N m

Rewards, one row per weight in `Ant.Config`
    term        formula                                                weight
    velocity    v_x along world x                                      1.0
    upright     cosine between the torso's z axis and the world's      0.1
    heading     cosine between the torso's x axis and the world's      1.0
    height      z - fallen_height, z of the torso's centre             1.0

Every term is smooth. Not smooth is the clip of the action at +-1, beyond which its gradient is zero. Joint order:
hip, ankle of the legs front left, back left, back right, front right.

Differences from DiffRL
* z is up, quaternions are w x y z, velocities MuJoCo's: the angular one in torso axes (DiffRL: world axes).
* Its target 10 km ahead is the direction +x itself.
* Contact is one of the laws here, plastic or of other springs (DiffRL: springs of 4e4 N/m); friction 0.75 as there.
* Joint limits are unilateral constraints (DiffRL: springs of 1e3 N m/rad). At 30 degrees a quarter of the weight bends
  an ankle with 218 N m, more than its motor's 200: DiffRL's springs give way by 12 degrees, and a collapsed ant sinks
  until its episode ends. Firm limits at 30 degrees would bear it for the rest of the episode, out of reach of any
  gradient, so the ankles' range begins at 15 degrees here. The damping of its limits, which there acts at all times,
  is part of the joints' damping, 1 + 10 N m s/rad, as the same density of 1000 kg/m^3 makes the same 182 kg.
* A start has the torso at 0.75 m +- 0.1 m above x = y = 0 (DiffRL scatters x and y too, which nothing observes),
  tilted by a rotation vector of components within +-0.075 rad (DiffRL: up to 7.5 degrees about a random axis).
"""

from dataclasses import dataclass

from torch import Tensor

from diffenvs import running
from diffenvs.task import State


class Ant(running.Runner):
    """Run along +x."""

    asset = "ant.xml"

    @dataclass(frozen=True)
    class Config(running.Runner.Config):
        """Weights as in the module's table."""

        height_weight: float = 1.0
        fallen_height: float = 0.27
        start_height: tuple[float, float] = (0.65, 0.85)

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each."""
        config = self.config
        return super().reward_terms(state, action, next_state) | {
            "height": config.height_weight * (next_state.qpos[..., 2] - config.fallen_height),
        }
