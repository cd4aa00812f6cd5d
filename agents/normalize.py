"""Running mean and standard deviation of observations."""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-5


class Normalizer:
    """Scales observations by running statistics and clips them.

    The statistics change only in :meth:`update`, which the algorithms call once, after an iteration: within a
    window they are constants, so the gradient through the window is that of one fixed function.

    Args:
        size: width of the observation.
        clip: bound on the normalised values.
    """

    def __init__(self, size: int, clip: float, *, dtype: torch.dtype, device: torch.device | str) -> None:
        self.clip = clip
        self.dtype = dtype
        # float64: the count reaches 1e8, where float32 would no longer add a batch to it.
        self.count = torch.zeros((), dtype=torch.float64, device=device)
        self.mean = torch.zeros(size, dtype=torch.float64, device=device)
        self.variance = torch.ones(size, dtype=torch.float64, device=device)
        self._prepare()

    def __call__(self, observation: Tensor) -> Tensor:
        """Normalised observations, same shape (..., size); differentiable."""
        return torch.addcmul(self.shift, observation, self.scale).clamp(-self.clip, self.clip)

    def update(self, observations: Tensor) -> None:
        """Merges a batch (..., size) into the statistics (Chan, Golub and LeVeque 1979, pairwise update)."""
        batch = observations.detach().reshape(-1, self.mean.numel()).double()
        count, mean = batch.shape[0], batch.mean(0)
        variance = batch.var(0, correction=0)
        total = self.count + count
        offset = mean - self.mean
        merged = self.variance * self.count + variance * count + offset**2 * (self.count * count / total)
        self.mean += offset * (count / total)
        self.variance = merged / total
        self.count = total
        self._prepare()

    def state_dict(self) -> dict[str, Tensor]:
        """Everything needed to continue: count, mean, variance."""
        return {"count": self.count, "mean": self.mean, "variance": self.variance}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continues from :meth:`state_dict`."""
        for name in ("count", "mean", "variance"):
            setattr(self, name, state[name].to(self.mean.device, torch.float64).clone())
        self._prepare()

    def _prepare(self) -> None:
        """One multiply-add per observation instead of a subtraction, a square root and a division."""
        scale = (self.variance + EPSILON).rsqrt()
        self.scale = scale.to(self.dtype)
        self.shift = (-self.mean * scale).to(self.dtype)
