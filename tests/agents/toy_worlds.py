"""Small torch vector environments with rollouts, for testing agents without a simulator.

They keep the environment contract (torch tensors, SAME_STEP automatic resets, ``final_obs``, graph through a
rollout, ``state_dict``) with dynamics simple enough to know the answers.
"""

from __future__ import annotations

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor


class Rollout:
    """A window of steps with its graph."""

    def __init__(self, envs: ToyWorlds, horizon: int) -> None:
        self.envs, self.horizon, self.records = envs, horizon, []

    def __enter__(self) -> Rollout:
        self.obs = self.envs.observation
        return self

    def __exit__(self, *_) -> None:
        self.envs.state = self.envs.state.detach()
        self.envs.observation = self.envs.observation.detach()

    def step(self, action: Tensor) -> None:
        record = {"observations": self.obs, "actions": action}
        self.obs, *rest = self.envs.advance(action)
        names = ("rewards", "terminated", "truncated", "final_observations", "nonfinite")
        self.records.append(record | dict(zip(names, rest, strict=True)))

    def __getattr__(self, name: str) -> Tensor:
        return torch.stack([record[name] for record in self.records])

    @property
    def metrics(self) -> dict[str, Tensor]:
        return {"action": self.actions.detach().mean(-1)}

    def discounted_return(self, gamma: float, value=None) -> Tensor:
        total, discount = torch.zeros_like(self.rewards[0]), torch.ones_like(self.rewards[0])
        for t, record in enumerate(self.records):
            total = total + discount * record["rewards"]
            discount = discount * gamma
            ended = record["terminated"] | record["truncated"]
            cut = (ended | (t == len(self.records) - 1)) & ~record["terminated"]
            total = total + torch.where(cut, discount * value(record["final_observations"]), 0.0)
            discount = torch.where(ended, 1.0, discount)
        return total.mean()


class ToyWorlds(VectorEnv):
    """Base of the toys: ``state`` is (N, width); methods say how it begins, moves, is seen, paid, ended."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012
    width, observation_size, action_size = 1, 1, 1

    def __init__(
        self,
        num_envs: int = 1,
        *,
        contact: str = "smoothed",
        device: str = "cpu",
        dtype: str = "float32",
        array_type: str = "torch",
        threads: int | None = None,
        max_episode_steps: int = 50,
    ) -> None:
        if contact not in ("smoothed", "hard", "soft"):
            raise ValueError(f"contact is {contact!r}; expected smoothed, hard or soft")
        assert array_type == "torch"
        self.num_envs, self.contact, self.limit = num_envs, contact, max_episode_steps
        self.dtype, self.device = getattr(torch, dtype), torch.device(device)
        self.single_observation_space = gym.spaces.Box(-1e9, 1e9, (self.observation_size,))
        self.single_action_space = gym.spaces.Box(-1.0, 1.0, (self.action_size,))
        self.generator = torch.Generator()

    def initial(self, n: int) -> Tensor:
        return torch.zeros(n, self.width, dtype=self.dtype)

    def move(self, state: Tensor, action: Tensor) -> Tensor:
        return state

    def observe(self, state: Tensor) -> Tensor:
        return state

    def reward(self, state: Tensor, action: Tensor, after: Tensor) -> Tensor:
        return torch.ones_like(state[:, 0])

    def terminal(self, after: Tensor) -> Tensor:
        return torch.zeros_like(after[:, 0], dtype=torch.bool)

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.generator.manual_seed(int(sum(seed)))
        self.state = self.initial(self.num_envs)
        self.elapsed = torch.zeros(self.num_envs, dtype=torch.int64)
        if (options or {}).get("stagger"):
            self.elapsed = torch.randint(self.limit, (self.num_envs,), generator=self.generator)
        self.observation = self.observe(self.state)
        return self.observation, {}

    def advance(self, action: Tensor):
        if not bool(torch.isfinite(action).all()):
            raise ValueError("action is not finite")
        before, action = self.state, action.clamp(-1.0, 1.0)
        after = self.move(before, action)
        broken = ~torch.isfinite(after).all(-1)
        after = torch.where(broken[:, None], before.detach(), after)
        reward = self.reward(before, action, after)
        self.elapsed = self.elapsed + 1
        terminated = self.terminal(after).detach() | broken
        truncated = (self.elapsed >= self.limit) & ~terminated
        final = self.observe(after)
        ended = terminated | truncated
        self.state = torch.where(ended[:, None], self.initial(self.num_envs), after)
        self.elapsed = torch.where(ended, 0, self.elapsed)
        self.observation = self.observe(self.state)
        return self.observation, reward, terminated, truncated, final, broken

    @torch.no_grad()
    def step(self, action: Tensor):
        observation, reward, terminated, truncated, final, broken = self.advance(action)
        info = {"final_obs": final, "_final_obs": terminated | truncated, "nonfinite": broken}
        return observation, reward, terminated, truncated, info | {"metrics": {"action": action.mean(-1)}}

    def rollout(self, horizon: int) -> Rollout:
        return Rollout(self, horizon)

    def state_dict(self) -> dict[str, Tensor]:
        return {"state": self.state, "elapsed": self.elapsed, "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.state, self.elapsed = state["state"], state["elapsed"]
        self.generator.set_state(state["generator"])
        self.observation = self.observe(self.state)


class PointMass(ToyWorlds):
    """A mass in the plane, to be pushed to the origin: paid exp(-distance^2), lost beyond 3 m.

    State: position and velocity. Contact "hard" halves the push, so that a law matters.
    """

    width, observation_size, action_size = 4, 4, 2

    def initial(self, n: int) -> Tensor:
        return 2.0 * torch.rand(n, 4, dtype=self.dtype, generator=self.generator) - 1.0

    def move(self, state: Tensor, action: Tensor) -> Tensor:
        push = 2.0 if self.contact == "smoothed" else 1.0
        velocity = 0.95 * state[:, 2:] + 0.2 * push * action
        return torch.cat([state[:, :2] + 0.2 * velocity, velocity], 1)

    def reward(self, state: Tensor, action: Tensor, after: Tensor) -> Tensor:
        return (-after[:, :2].square().sum(1)).exp()

    def terminal(self, after: Tensor) -> Tensor:
        return after[:, :2].norm(dim=1) > 3.0


class Clock(ToyWorlds):
    """Pays 1 a step whatever is done, and is cut after 10; the observation is the time over 10."""

    def __init__(self, num_envs: int = 1, **options) -> None:
        super().__init__(num_envs, **{**options, "max_episode_steps": 10})

    def move(self, state: Tensor, action: Tensor) -> Tensor:
        return state + 0.1 + 0.0 * action


class Endless(Clock):
    """As ``Clock``, but the observation does not tell the time: every state is worth the same."""

    def observe(self, state: Tensor) -> Tensor:
        return 0.0 * state


class Cliff(Clock):
    """As ``Clock``, but the tenth step is a fall."""

    def terminal(self, after: Tensor) -> Tensor:
        return after[:, 0] > 0.95


class LinearQuadratic(ToyWorlds):
    """x' = 0.9 x + 0.5 u, paid -(x'^2 + 0.1 u^2)."""

    def initial(self, n: int) -> Tensor:
        return 2.0 * torch.rand(n, 1, dtype=self.dtype, generator=self.generator) - 1.0

    def move(self, state: Tensor, action: Tensor) -> Tensor:
        return 0.9 * state + 0.5 * action

    def reward(self, state: Tensor, action: Tensor, after: Tensor) -> Tensor:
        return -(after[:, 0].square() + 0.1 * action[:, 0].square())


class Brittle(PointMass):
    """A point mass whose world 0 breaks at every fifth age."""

    def move(self, state: Tensor, action: Tensor) -> Tensor:
        after = super().move(state, action)
        broken = (self.elapsed % 5 == 4) & (torch.arange(self.num_envs) == 0)
        return torch.where(broken[:, None], torch.full_like(after, torch.nan), after)


class Scattered(PointMass):
    """A point mass whose worlds begin by their own seed and age alone, so that processes can share them."""

    def initial(self, n: int) -> Tensor:
        begun = self.seeds * 0.6180339887 + self.restarts * 0.7548776662
        places = torch.tensor([1.0, 1.7320508, 2.2360680, 2.6457513], dtype=torch.float64)
        return (2.0 * (begun[:, None] * places).frac() - 1.0).to(self.dtype)

    def reset(self, *, seed=None, options=None):
        self.seeds, self.restarts = torch.tensor(seed), torch.zeros(self.num_envs, dtype=torch.int64)
        super().reset(seed=seed, options=options)
        if (options or {}).get("stagger"):
            self.elapsed = self.seeds % self.limit
        return self.observation, {}

    def advance(self, action: Tensor):
        self.restarts = self.restarts + 1
        observation, reward, terminated, truncated, *rest = super().advance(action)
        self.restarts = self.restarts - (~(terminated | truncated)).to(torch.int64)
        return observation, reward, terminated, truncated, *rest

    def state_dict(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in ("state", "elapsed", "seeds", "restarts")}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, value in state.items():
            setattr(self, name, value.clone())
        self.observation = self.observe(self.state)


for toy in (PointMass, Clock, Endless, Cliff, LinearQuadratic, Brittle, Scattered):
    gym.register(f"{toy.__name__}-v0", vector_entry_point=toy)
