"""What happened in a window of experience, and returns of finished episodes gathered over windows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.parallel import Alone


@dataclass(frozen=True)
class Window:
    """Record of T steps of N worlds, without a graph; every tensor has shape (T, N)."""

    rewards: Tensor
    terminated: Tensor
    truncated: Tensor
    nonfinite: Tensor
    metrics: dict[str, Tensor]

    @classmethod
    def of(cls, rollout) -> Window:
        """The record of a finished rollout."""
        flags = rollout.terminated, rollout.truncated, rollout.nonfinite
        return cls(rollout.rewards.detach(), *flags, rollout.metrics)

    def of_all(self, ranks: Alone) -> Window:
        """The record of all processes' worlds, from that of this one's."""
        own = [self.rewards, self.terminated, self.truncated, self.nonfinite, *self.metrics.values()]
        rewards, terminated, truncated, nonfinite, *metrics = ranks.gather_each(own, 1)
        return Window(rewards, terminated, truncated, nonfinite, dict(zip(self.metrics, metrics, strict=True)))


class EpisodeStatistics:
    """Return and length of each world's last finished episode.

    Averaging over worlds, not over episodes, keeps a world that falls often from outweighing the others.

    Args:
        num_envs: number of worlds.
        partial: the first episodes are entered midway (staggered), so their returns are not counted.
    """

    def __init__(self, num_envs: int, *, partial: bool, dtype: torch.dtype, device: torch.device) -> None:
        self.running = torch.zeros(2, num_envs, dtype=dtype, device=device)  # return, length
        self.last = torch.zeros(2, num_envs, dtype=dtype, device=device)
        self.partial = torch.full((num_envs,), partial, device=device)
        self.counted = torch.zeros(num_envs, dtype=torch.bool, device=device)

    def update(self, window: Window) -> None:
        """Adds a window."""
        ended = window.terminated | window.truncated
        steps = torch.stack([window.rewards, torch.ones_like(window.rewards)], 1)
        if not bool(ended.any()):
            self.running += steps.sum(0)
            return
        for step, end in zip(steps, ended, strict=True):
            self.running += step
            self.last = torch.where(end & ~self.partial, self.running, self.last)
            self.counted |= end & ~self.partial
            self.partial &= ~end
            self.running.masked_fill_(end, 0.0)

    def means(self) -> tuple[float | None, float | None]:
        """Mean return and length [control steps] over worlds with a finished episode; None without any."""
        if not bool(self.counted.any()):
            return None, None
        episode_return, length = self.last[:, self.counted].mean(1).tolist()
        return episode_return, length

    def state_dict(self) -> dict[str, Tensor]:
        """Everything needed to continue."""
        return {"running": self.running, "last": self.last, "partial": self.partial, "counted": self.counted}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continues from :meth:`state_dict`."""
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])
