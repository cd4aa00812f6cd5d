"""Velocity tracking: ANYmal D, Schwarke et al. 2025, Section 4.3 (Tables 7, 8 and 9).

An episode lasts 1000 control steps of 0.02 s, each four simulation steps of 0.005 s. It terminates when the
base sinks below 0.3 m or tilts by more than 60 degrees; the paper does not print its own rule. Joints may turn past
their range: the paper speaks of no limits, and the solve is faster without.

Observations (49), of the base in its own axes; uniform noise, as large as legged_gym's (ANYmal, flat)
    index   quantity                                                   unit     noise
    0:3     linear velocity of the base                                m/s      0.1
    3:6     angular velocity of the base                               rad/s    0.2
    6:9     direction of gravity                                       -        0.05
    9:12    command: velocity x, y and yaw rate                        m/s, rad/s   0
    12:24   joint positions                                            rad      0.01
    24:36   joint velocities                                           rad/s    1.5
    36:48   previous action                                            -        0
    48      sine of the gait's phase                                   -        0

Actions (12)
    index   quantity                                                   unit
    0:12    joint target = home + action_scale * action                rad

Rewards, one row per weight in `Anymal.Config`; every weight is multiplied by the control step, 0.02 s
    term               formula                                                              weight
    velocity           exp(-|v_xy - v*_xy|^2 / 0.25)                                        1.0
    yaw_rate           exp(-(w_z - w*_z)^2 / 0.25)                                          0.5
    foot_height        sum over feet of (z*_j / 0.1) exp(-(z_j - z*_j)^2 / 0.05)            3.0
    vertical_velocity  -v_z^2                                                               2.0
    roll_pitch_rate    -(w_x^2 + w_y^2)                                                     0.05
    base_height        exp(-(z - 0.45)^2 / 0.1)                                             1.0
    orientation        -(g_x^2 + g_y^2), g the direction of gravity in base axes            0.5
    action             -sum of |a_i|                                                        0.05
    action_rate        -sum of (a_i - previous a_i)^2                                       0.01
    joint_acceleration -sum of ((qd_i - previous qd_i) / 0.02 s)^2                          2.5e-7
    torque             -sum of tau_i^2, tau = clip(kp (target - q) - kd qd, -80, 80) N m    2.5e-5

v and w are the base's velocities in base axes, as in legged_gym; z_j is the height of the lowest point of a
foot. The reference of a foot (Eq. 19) is z* = 0.1 m max(sin(phase), 0), phase = 4 pi t + offset: a gait of 2
Hz with 0.25 s of swing. LF and RH share a phase, RF and LH are half a period away (a trot); a random offset
is drawn at the start of an episode. The torque is taken from the state after the step. Not smooth are |a_i|
at zero, the reference z* when a swing begins (it does not depend on the state), and the torque at its limit,
where its gradient drops to zero.

Chance (Table 8): commands uniform in +-1 m/s, +-1 m/s, +-1 rad/s, drawn anew every 10 to 15 s; a push every
10 to 15 s, which adds up to +-0.5 m/s to the base's velocity along world x and y; friction in 0.5 to 1.25 and
an added base mass of -5 to 5 kg for each episode.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import rotation, task
from diffenvs.parameters import Parameters
from diffenvs.random import Draws
from diffenvs.start import noisy_home
from diffenvs.task import State

# Noise of the sensors, legged_gym's `noise_scales`: what is measured, how many numbers, and the largest
# error.
NOISE = (
    ("linear velocity", 3, 0.1),
    ("angular velocity", 3, 0.2),
    ("gravity", 3, 0.05),
    ("positions", 12, 0.01),
    ("velocities", 12, 1.5),
)

# Feet in phase with the gait are 0, feet half a period away 1.
TROT = {"LF": 0.0, "RF": 1.0, "LH": 1.0, "RH": 0.0}


class Anymal(task.Task):
    """Follow velocity commands."""

    asset = "anymal_d.xml"
    limits = False
    max_episode_steps = 1000
    observation_size = 49

    @dataclass(frozen=True)
    class Config(task.Config):
        """Weights as in the module's table.

        action_scale [rad]. gait_frequency [Hz], swing_height [m]: the reference of the feet. target_height
        [m]. fallen_height [m] and fallen_cosine (of the tilt) end an episode. command [m/s, m/s, rad/s]:
        largest velocity along x, along y, and yaw rate. command_interval, push_interval [s]: bounds of the
        time between two. push [m/s], friction, added_mass [kg]: bounds. noise: of the sensors, 1 as in the
        module's table and 0 for none. For a world without chance set command_interval and push_interval
        beyond the episode, and noise to 0.
        Start: base start_height [m] above the home pose, tilt about a random axis with each component of the
        rotation vector within +-start_tilt [rad], joints +-start_joint [rad] about the home pose, all
        velocities +-start_speed [m/s, rad/s].
        """

        control_timestep: float = 0.02
        timestep: float = 0.005
        velocity_weight: float = 1.0
        yaw_rate_weight: float = 0.5
        foot_height_weight: float = 3.0
        vertical_velocity_weight: float = 2.0
        roll_pitch_rate_weight: float = 0.05
        base_height_weight: float = 1.0
        orientation_weight: float = 0.5
        action_weight: float = 0.05
        action_rate_weight: float = 0.01
        joint_acceleration_weight: float = 2.5e-7
        torque_weight: float = 2.5e-5
        action_scale: float = 1.0
        gait_frequency: float = 2.0
        swing_height: float = 0.1
        target_height: float = 0.45
        fallen_height: float = 0.3
        fallen_cosine: float = 0.5
        command: tuple[float, float, float] = (1.0, 1.0, 1.0)
        command_interval: tuple[float, float] = (10.0, 15.0)
        push: tuple[float, float] = (-0.5, 0.5)
        push_interval: tuple[float, float] = (10.0, 15.0)
        friction: tuple[float, float] = (0.5, 1.25)
        added_mass: tuple[float, float] = (-5.0, 5.0)
        noise: float = 1.0
        start_height: tuple[float, float] = (0.0, 0.05)
        start_tilt: float = 0.05
        start_joint: float = 0.1
        start_speed: float = 0.25

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        model = self.model
        lightest = model.link_mass[0] + self.config.added_mass[0]
        if lightest <= 0.0:
            raise ValueError(f"Config.added_mass is {self.config.added_mass}; it leaves the base {lightest:.1f} kg")
        joints, dofs = self.joint_indices()
        self._home = self.tensor(model.home)
        self._home_joints = self._home[joints]
        self._joints, self._dofs = slice(joints[0], joints[-1] + 1), slice(dofs[0], dofs[-1] + 1)
        self._kp, self._kd = self.tensor(model.actuator_kp), self.tensor(model.actuator_kd)
        self._limit = self.tensor(model.actuator_limit)
        self._radius = self.tensor(model.contact_radius)
        # The phase is kept in float64: after rounding, its sine is the same on every batch size.
        turns = [TROT[name[:2]] for name in model.contact_name]
        self._foot_phase = torch.tensor(turns, dtype=torch.float64, device=self.device) * math.pi
        self._command = self.tensor(self.config.command)
        self._noise = self.config.noise * self.tensor([bound for _, size, bound in NOISE for _ in range(size)])

    def initial(self, random: Draws, n: int) -> State:
        """Home pose with noise, a command, a phase of the gait, and the first timers."""
        config = self.config
        height = self._home[2] + random.uniform(*config.start_height, 1)
        noise = {"tilt": config.start_tilt, "joint": config.start_joint, "speed": config.start_speed}
        qpos, qvel = noisy_home(random, self._home, height, **noise, nv=self.model.nv)
        return self.begin(
            qpos,
            qvel,
            command=random.uniform(-self._command, self._command, 3),
            phase=random.uniform(0.0, 2.0 * math.pi).double(),
            command_due=self._interval(random, config.command_interval),
            push_due=self._interval(random, config.push_interval),
            noise=random.uniform(-self._noise, self._noise, len(self._noise)),
        )

    def randomize(self, random: Draws, parameters: Parameters) -> Parameters:
        """Friction, and a mass added to the base."""
        added = torch.zeros_like(parameters.mass)
        added[:, 0] = random.uniform(*self.config.added_mass)
        friction = random.uniform(*self.config.friction)
        return parameters.replace(friction=friction, mass=parameters.mass + added)

    def disturb(self, random: Draws, state: State) -> State:
        """Pushes and new commands for the worlds whose time has come, and noise for the next observation."""
        memory = dict(state.memory)
        memory["command_due"] = memory["command_due"] - 1
        memory["push_due"] = memory["push_due"] - 1
        qvel = state.qvel
        if (due := memory["command_due"] <= 0).any():
            rows = due.nonzero().squeeze(1)
            draws = random.select(rows)
            command = draws.uniform(-self._command, self._command, 3)
            memory["command"] = memory["command"].index_copy(0, rows, command)
            interval = self._interval(draws, self.config.command_interval)
            memory["command_due"] = memory["command_due"].index_copy(0, rows, interval)
        if (due := memory["push_due"] <= 0).any():
            rows = due.nonzero().squeeze(1)
            draws = random.select(rows)
            push = qvel.new_zeros(len(rows), qvel.shape[1])
            push[:, :2] = draws.uniform(*self.config.push, 2)
            qvel = qvel.index_add(0, rows, push)
            interval = self._interval(draws, self.config.push_interval)
            memory["push_due"] = memory["push_due"].index_copy(0, rows, interval)
        if self.config.noise:
            memory["noise"] = random.uniform(-self._noise, self._noise, len(self._noise))
        return state.replace(qvel=qvel, memory=memory)

    def control(self, state: State, action: Tensor) -> Tensor:
        """Joint targets [rad]."""
        return self._home_joints + self.config.action_scale * action

    def phase(self, state: State) -> Tensor:
        """Phase of the gait (N,) [rad], float64."""
        rate = 2.0 * math.pi * self.config.gait_frequency * self.control_timestep
        return state.memory["phase"] + rate * state.elapsed.double()

    def observe(self, state: State) -> Tensor:
        """See the module's table."""
        quaternion = state.qpos[..., 3:7]
        measured = torch.cat(
            (
                rotation.to_body(quaternion, state.qvel[..., :3]),
                state.qvel[..., 3:6],
                rotation.gravity_in_body(quaternion),
                state.qpos[..., 7:],
                state.qvel[..., 6:],
            ),
            -1,
        )
        noisy = measured + state.memory["noise"]
        sine = torch.sin(self.phase(state)).to(self.dtype)[..., None]
        return torch.cat((noisy[..., :9], state.memory["command"], noisy[..., 9:], state.action, sine), -1)

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, without the control step, (N,) each."""
        config, qvel = self.config, next_state.qvel
        error_x, error_y, error_yaw, velocity = self._errors(next_state)
        gravity = rotation.gravity_in_body(next_state.qpos[..., 3:7])
        swing = torch.sin(self.phase(next_state)[..., None] + self._foot_phase).clamp(min=0.0).to(self.dtype)
        clearance = next_state.feet[..., 2] - self._radius
        miss = (clearance - config.swing_height * swing).square()
        acceleration = (qvel[..., 6:] - state.qvel[..., 6:]) / self.control_timestep
        rise = next_state.qpos[..., 2] - config.target_height
        return {
            "velocity": config.velocity_weight * torch.exp(-(error_x.square() + error_y.square()) / 0.25),
            "yaw_rate": config.yaw_rate_weight * torch.exp(-error_yaw.square() / 0.25),
            "foot_height": config.foot_height_weight * (swing * torch.exp(-miss / 0.05)).sum(-1),
            "vertical_velocity": -config.vertical_velocity_weight * velocity[..., 2].square(),
            "roll_pitch_rate": -config.roll_pitch_rate_weight * qvel[..., 3:5].square().sum(-1),
            "base_height": config.base_height_weight * torch.exp(-rise.square() / 0.1),
            "orientation": -config.orientation_weight * gravity[..., :2].square().sum(-1),
            "action": -config.action_weight * action.abs().sum(-1),
            "action_rate": -config.action_rate_weight * (action - state.action).square().sum(-1),
            "joint_acceleration": -config.joint_acceleration_weight * acceleration.square().sum(-1),
            "torque": -config.torque_weight * self.torque(next_state).square().sum(-1),
        }

    def reward(self, state: State, action: Tensor, next_state: State) -> Tensor:
        """Sum of `reward_terms`, times the control step."""
        return self.control_timestep * sum(self.reward_terms(state, action, next_state).values())

    def torque(self, state: State) -> Tensor:
        """Joint torques (N, nu) [N m] that the last action asks for in this state, with the nominal gains."""
        target = self.control(state, state.action)
        torque = self._kp * (target - state.qpos[..., self._joints]) - self._kd * state.qvel[..., self._dofs]
        return torch.clamp(torque, -self._limit, self._limit)

    def terminated(self, state: State) -> Tensor:
        """Base below `fallen_height`, or tilted beyond `fallen_cosine`."""
        low = state.qpos[..., 2] < self.config.fallen_height
        return low | (rotation.up_alignment(state.qpos[..., 3:7]) < self.config.fallen_cosine)

    def metrics(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """velocity_error_x, velocity_error_y [m/s] and yaw_rate_error [rad/s], actual minus commanded, in
        base axes; forward_velocity [m/s] along base x; base_height [m]."""
        error_x, error_y, error_yaw, velocity = self._errors(next_state)
        return {
            "velocity_error_x": error_x,
            "velocity_error_y": error_y,
            "yaw_rate_error": error_yaw,
            "forward_velocity": velocity[..., 0],
            "base_height": next_state.qpos[..., 2],
        }

    def _errors(self, state: State) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Velocity errors along x and y and in yaw (N,), and the base's velocity in base axes (N, 3)."""
        velocity = rotation.to_body(state.qpos[..., 3:7], state.qvel[..., :3])
        command = state.memory["command"]
        error = velocity[..., :2] - command[..., :2]
        return error[..., 0], error[..., 1], state.qvel[..., 5] - command[..., 2], velocity

    def _interval(self, random: Draws, bounds: tuple[float, float]) -> Tensor:
        """Control steps (n,) int64 until something happens, uniform between `bounds` [s]."""
        return (random.uniform(*bounds) / self.control_timestep).round().to(torch.int64)
