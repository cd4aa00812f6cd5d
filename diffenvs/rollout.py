"""A window of control steps whose tensors carry the graph: what first-order algorithms differentiate.

Step by step for people, whole windows for speed: a step's reward is computed when it is asked for, and
`rewards` are computed for all T steps and N worlds in one batch. Both give the same numbers and the same
gradients.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from diffenvs.task import Task, stack
from diffenvs.transition import Transition

if TYPE_CHECKING:
    from diffenvs.env import DiffVecEnv


class Step:
    """Result of one control step of N worlds.

    obs: (N, obs) to act on next; a world that was restarted shows its new episode, without a graph.
    terminated, truncated, nonfinite: (N,) bool. final_obs: (N, obs) after the step and before any restart.
    """

    def __init__(self, task: Task, transition: Transition, obs: Tensor):
        self._task = task
        self._transition = transition
        self.obs = obs
        self.final_obs = transition.final_obs
        self.terminated = transition.terminated
        self.truncated = transition.truncated
        self.nonfinite = transition.nonfinite

    @cached_property
    def reward(self) -> Tensor:
        """Reward (N,), computed on the first look."""
        transition = self._transition
        return self._task.reward(transition.state, transition.action, transition.next_state)


class Rollout:
    """Made by `DiffVecEnv.rollout(horizon)`; use it in a `with` block, and keep it as long as its tensors are
    needed.

    The first observation carries no graph. Leaving the block, early or by an exception too, detaches the
    environment, which can then step or open the next window; what the rollout holds stays valid.
    """

    def __init__(self, env: "DiffVecEnv", horizon: int):
        self._env = env
        self._task = env.task
        self.horizon = horizon
        self._transitions: list[Transition] = []
        self._observations: list[Tensor] = []
        self._open = False
        self._rewards: Tensor | None = None

    def __enter__(self) -> "Rollout":
        if self._observations:
            raise RuntimeError("this rollout has been used; ask the environment for another")
        self._env.open_window(self)
        self._open = True
        self._observations.append(self._env.observation)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._open = False
        self._env.close_window()

    def __len__(self) -> int:
        """Steps taken so far, T."""
        return len(self._transitions)

    @property
    def obs(self) -> Tensor:
        """Observation to act on next, (N, obs)."""
        if not self._observations:
            raise RuntimeError("a rollout is used in a with-block: with env.rollout(horizon) as rollout: ...")
        return self._observations[-1]

    def step(self, action: Tensor) -> Step:
        """One control step.

        Args:
            action: (N, nu), clipped to [-1, 1] with gradient zero outside.

        Raises:
            ValueError, TypeError: a wrong action; nothing has changed.
            RuntimeError: outside of the with-block, or after `horizon` steps.
        """
        if not self._open:
            raise RuntimeError("a rollout steps inside its with-block only")
        if len(self) == self.horizon:
            raise RuntimeError(f"this rollout has taken its {self.horizon} steps")
        transition = self._env.advance(action)
        self._transitions.append(transition)
        self._observations.append(self._env.observation)
        self._rewards = None
        return Step(self._task, transition, self._env.observation)

    @property
    def observations(self) -> Tensor:
        """Observations the policy acted on, (T, N, obs)."""
        return torch.stack(self._observations[: len(self)])

    @property
    def actions(self) -> Tensor:
        """Actions as applied, clipped, (T, N, nu)."""
        return self._stack("action")

    @property
    def final_observations(self) -> Tensor:
        """Observations after each step and before any restart, with their graph, (T, N, obs)."""
        return self._stack("final_obs")

    @property
    def terminated(self) -> Tensor:
        """(T, N) bool."""
        return self._stack("terminated")

    @property
    def truncated(self) -> Tensor:
        """(T, N) bool."""
        return self._stack("truncated")

    @property
    def nonfinite(self) -> Tensor:
        """(T, N) bool: worlds whose physics left the finite numbers, which count as terminated."""
        return self._stack("nonfinite")

    @property
    def rewards(self) -> Tensor:
        """Rewards (T, N), computed in one batch; they carry the graph."""
        if self._rewards is None:
            self._rewards = self._task.reward(*self._window())
        return self._rewards

    @property
    def metrics(self) -> dict[str, Tensor]:
        """What the task reports, name -> (T, N), without a graph."""
        with torch.no_grad():
            return self._task.metrics(*self._window())

    def discounted_return(self, gamma: float, value: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Objective of SHAC (Xu et al. 2022, Eq. 4-5), averaged over the worlds, with its graph.

        Per world: the sum over the window of gamma^k r, with k counted from the last start of an episode,
        plus gamma^(k+1) V(final observation) where an episode is truncated and at the window's end. An
        episode that terminates ends in zero.

        Args:
            gamma: discount per control step.
            value: maps observations (M, obs) to values (M,) or (M, 1); None leaves the values out.
        """
        rewards, ended = self.rewards, self.terminated | self.truncated
        count = torch.arange(len(self), device=rewards.device)[:, None]
        starts = torch.zeros_like(ended, dtype=torch.int64)
        starts[1:] = torch.where(ended, count + 1, 0).cummax(0).values[:-1]
        discount = torch.pow(gamma, (count - starts).to(rewards.dtype))
        total = (discount * rewards).sum()
        if value is not None:
            cut = self.truncated.clone()
            cut[-1] = True
            cut &= ~self.terminated
            total = total + (gamma * discount[cut] * value(self.final_observations[cut]).reshape(-1)).sum()
        return total / rewards.shape[1]

    def _stack(self, name: str) -> Tensor:
        if not self._transitions:
            raise RuntimeError("this rollout has taken no step yet")
        return torch.stack([getattr(transition, name) for transition in self._transitions])

    def _window(self) -> tuple[Any, Tensor, Any]:
        action = self._stack("action")
        states = stack([transition.state for transition in self._transitions])
        return states, action, stack([transition.next_state for transition in self._transitions])
