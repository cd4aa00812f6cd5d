"""Forward walking: the quadruped of Schwarke et al. 2025, Section 4.2 (Tables 4 and 6).

An episode lasts 1000 control steps of 0.01 s. It terminates when the base sinks below 0.25 m.

Observations (49)
    index   quantity                                                   unit
    0       height of the base                                         m
    1:5     attitude of the base, quaternion w x y z                   -
    5:8     linear velocity of the base, in base axes                  m/s
    8:11    angular velocity of the base, in base axes                 rad/s
    11:23   joint positions                                            rad
    23:35   joint velocities                                           rad/s
    35      cosine between the base's z axis and the world's           -
    36      cosine between the base's x axis and the world's           -
    37:49   previous action                                            -

Actions (12)
    index   quantity                                                   unit
    0:12    joint target = home + action_scale * action                rad

Rewards, one row per weight in `Quadruped.Config`
    term        formula                                                weight
    velocity    exp(-|v_x - target_velocity|), v_x along world x       1.0
    height      exp(-|z - target_height|)                              0.5
    upright     cosine between the base's z axis and the world's       0.5
    action      sum over joints of exp(-|a_i|)                         0.01
    joint_speed -(sum over joints of squared velocity)                 0.001

The three absolute values have a kink at zero (gradient zero there); everything else is smooth.

Joint order everywhere: LF, RF, LH, RH, each HAA, HFE, KFE. PD gains (20, 1), the torque limit of 20 N m and
friction 0.8 come with the robot, and no joint limits. The start is the home pose with noise; the paper does not print
its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import rotation, task
from diffenvs.random import Draws
from diffenvs.start import noisy_home
from diffenvs.task import State


class Quadruped(task.Task):
    """Walk forward at 1 m/s."""

    asset = "quadruped.xml"
    limits = False
    max_episode_steps = 1000
    observation_size = 49

    @dataclass(frozen=True)
    class Config(task.Config):
        """Weights as in the module's table; targets [m/s], [m]; action_scale [rad]; fallen_height [m] ends an
        episode.

        Start: base height uniform in start_height [m], tilt about a random axis with each component of the
        rotation vector within +-start_tilt [rad], joints +-start_joint [rad] about the home pose, all
        velocities +-start_speed [m/s, rad/s].
        """

        control_timestep: float = 0.01
        timestep: float = 0.01
        velocity_weight: float = 1.0
        height_weight: float = 0.5
        upright_weight: float = 0.5
        action_weight: float = 0.01
        joint_speed_weight: float = 0.001
        target_velocity: float = 1.0
        target_height: float = 0.45
        action_scale: float = 1.0
        fallen_height: float = 0.25
        start_height: tuple[float, float] = (0.47, 0.49)
        start_tilt: float = 0.075
        start_joint: float = 0.2
        start_speed: float = 0.25

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        joints, _ = self.joint_indices()
        self._home = self.tensor(self.model.home)
        self._home_joints = self._home[joints]

    def initial(self, random: Draws, n: int) -> State:
        """Home pose with noise in height, tilt, joints and velocities."""
        config = self.config
        height = random.uniform(*config.start_height, 1)
        noise = {"tilt": config.start_tilt, "joint": config.start_joint, "speed": config.start_speed}
        qpos, qvel = noisy_home(random, self._home, height, **noise, nv=self.model.nv)
        return self.begin(qpos, qvel)

    def control(self, state: State, action: Tensor) -> Tensor:
        """Joint targets [rad]."""
        return self._home_joints + self.config.action_scale * action

    def observe(self, state: State) -> Tensor:
        """See the module's table."""
        quaternion = state.qpos[..., 3:7]
        return torch.cat(
            (
                state.qpos[..., 2:7],
                rotation.to_body(quaternion, state.qvel[..., :3]),
                state.qvel[..., 3:6],
                state.qpos[..., 7:],
                state.qvel[..., 6:],
                rotation.up_alignment(quaternion)[..., None],
                rotation.heading_alignment(quaternion)[..., None],
                state.action,
            ),
            -1,
        )

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each."""
        config = self.config
        speed, height = next_state.qvel[..., 0], next_state.qpos[..., 2]
        return {
            "velocity": config.velocity_weight * torch.exp(-(speed - config.target_velocity).abs()),
            "height": config.height_weight * torch.exp(-(height - config.target_height).abs()),
            "upright": config.upright_weight * rotation.up_alignment(next_state.qpos[..., 3:7]),
            "action": config.action_weight * torch.exp(-action.abs()).sum(-1),
            "joint_speed": -config.joint_speed_weight * next_state.qvel[..., 6:].square().sum(-1),
        }

    def terminated(self, state: State) -> Tensor:
        """Base below `fallen_height`."""
        return state.qpos[..., 2] < self.config.fallen_height

    def metrics(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """forward_velocity [m/s] along world x, base_height [m]."""
        return {"forward_velocity": next_state.qvel[..., 0], "base_height": next_state.qpos[..., 2]}
