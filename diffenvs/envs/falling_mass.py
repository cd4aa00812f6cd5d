"""Catching a falling mass: the toy of Schwarke et al. 2025, Fig. 3, with a thrust, and an optimum in closed form.

A mass of 1 kg falls along a vertical rail at 1 m/s, from 0.08 to 0.219 m above the ground, and would hit it within the
episode. A thrust brings it to rest 0.1 m above the ground after 0.2 s, with the least effort. An episode is 20 control
steps of 0.01 s, each one simulation step, and terminates with the last. Without thrust the first ten are the figure's.
The ground would stop it for nothing, but the way up again costs more.

Observations (3)
    index   quantity                                                   unit
    0       height of the mass's lowest point                          m
    1       velocity, upward                                           m/s
    2       time left                                                  s

Actions (1)
    index   quantity                                                   unit
    0       upward force = weight + 30 * action                        N

Rewards, one row per weight in `FallingMass.Config`
    term        formula                                                weight
    effort      -a^2                                                   0.1
    height      -(z - target_height)^2, in the last step alone         100.0
    velocity    -v^2, in the last step alone                           1.0

All terms are smooth. Not smooth is the clip of the action at +-1, beyond which its gradient is zero.

The optimum. Above the ground the last state is linear in the N = 20 actions. Under actions of zero the mass goes on as
it began and after T = N h is off by e = (z + T v - target_height, v); under others by e + B a,
    B_zk = h^2 (N - k - 1/2) F / m,   B_vk = h F / m,   k = 0 ... N - 1, F = 30 N.
The return is -(w_e |a|^2 + (e + B a)^T W (e + B a)), W the diagonal of the other two weights, and its maximum
    -w_e e^T (B B^T + w_e W^-1)^-1 e,   at   a = -B^T (B B^T + w_e W^-1)^-1 e.
From every start these actions lie within [-0.43, 0.77] and keep the mass 5 cm above the ground, so it is the optimum of
the environment under hard and soft contact, and to 1e-5 under smoothed contact. `best` has it, for any state.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs import task
from diffenvs.random import Draws
from diffenvs.task import State


class FallingMass(task.Task):
    """Bring a falling mass to rest."""

    asset = "falling_mass.xml"
    max_episode_steps = 20
    observation_size = 3

    @dataclass(frozen=True)
    class Config(task.Config):
        """Weights as in the module's table; target_height [m]; force [N] of an action of one.

        Start: height uniform in start_height [m], velocity start_velocity [m/s].
        """

        control_timestep: float = 0.01
        timestep: float = 0.01
        effort_weight: float = 0.1
        height_weight: float = 100.0
        velocity_weight: float = 1.0
        target_height: float = 0.1
        force: float = 30.0
        start_height: tuple[float, float] = (0.08, 0.219)
        start_velocity: float = -1.0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._mass = float(self.model.link_mass[0])
        self._largest = float(self.model.actuator_gain[0])
        self._weight = -self._mass * float(self.model.gravity[2])

    def initial(self, random: Draws, n: int) -> State:
        """Falling from a random height."""
        qpos = random.uniform(*self.config.start_height, 1)
        return self.begin(qpos, torch.full_like(qpos, self.config.start_velocity))

    def control(self, state: State, action: Tensor) -> Tensor:
        """Share (N, 1) of the motor's largest force."""
        return (self._weight + self.config.force * action) / self._largest

    def observe(self, state: State) -> Tensor:
        """See the module's table."""
        return torch.cat((state.qpos, state.qvel, self.time_left(state)), -1)

    def time_left(self, state: State) -> Tensor:
        """Seconds (N, 1) until the episode's end."""
        return self.control_timestep * (self.max_episode_steps - state.elapsed[..., None]).to(self.dtype)

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each."""
        config = self.config
        last = (next_state.elapsed == self.max_episode_steps).to(self.dtype)
        miss = next_state.qpos[..., 0] - config.target_height
        return {
            "effort": -config.effort_weight * action[..., 0].square(),
            "height": -config.height_weight * last * miss.square(),
            "velocity": -config.velocity_weight * last * next_state.qvel[..., 0].square(),
        }

    def terminated(self, state: State) -> Tensor:
        """After the last step."""
        return state.elapsed == self.max_episode_steps

    def metrics(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """height [m] and velocity [m/s]."""
        return {"height": next_state.qpos[..., 0], "velocity": next_state.qvel[..., 0]}

    def best(self, qpos: Tensor, qvel: Tensor) -> tuple[Tensor, Tensor]:
        """The optimal actions (N, 20) and return (N,) of episodes that begin at qpos (N, 1) and qvel (N, 1), as in the
        module's docstring."""
        config, h, count = self.config, self.control_timestep, self.max_episode_steps
        push = config.force / self._mass
        left = count - torch.arange(count, dtype=self.dtype, device=self.device) - 0.5
        reach = torch.stack((h**2 * push * left, torch.full_like(left, h * push)))
        miss = torch.cat((qpos + count * h * qvel - config.target_height, qvel), -1)
        weights = self.tensor([config.height_weight, config.velocity_weight])
        gram = reach @ reach.T + config.effort_weight * torch.diag(1.0 / weights)
        dual = torch.linalg.solve(gram, miss.T)
        return -(reach.T @ dual).T, -config.effort_weight * (miss.T * dual).sum(0)
