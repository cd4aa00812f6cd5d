"""Central differences over several step sizes, world by world."""

from collections.abc import Callable

import torch

# Losses here are of order 10, so a difference over 1e-6 is itself known to about 1e-9: derivatives below this floor
# are compared in absolute terms.
FLOOR = 1e-3


def directional_error(
    loss: Callable[[torch.Tensor], torch.Tensor],
    value: torch.Tensor,
    gradient: torch.Tensor,
    *,
    directions: int,
    seed: int,
    steps: tuple[float, ...] = (1e-5, 1e-6, 1e-7),
    scale: float = 1.0,
) -> torch.Tensor:
    """Relative error (directions, N) of ``gradient`` along random directions, at each world's best step size.

    ``loss`` maps a tensor like ``value`` (N, ...) to one number per world (N,). The error is relative to the
    derivative expected along a random direction, scale |gradient|.
    """
    generator = torch.Generator().manual_seed(seed)
    errors = []
    for _ in range(directions):
        direction = scale * torch.randn(value.shape, generator=generator, dtype=value.dtype)
        ours = (gradient * direction).flatten(1).sum(1) if value.dim() > 1 else gradient * direction
        size = scale * (gradient.flatten(1).norm(dim=1) if value.dim() > 1 else gradient.abs())
        best = torch.full_like(ours, float("inf"))
        for step in steps:
            with torch.no_grad():
                difference = (loss(value + step * direction) - loss(value - step * direction)) / (2 * step)
            best = torch.minimum(best, (difference - ours).abs() / (size + FLOOR))
        errors.append(best)
    return torch.stack(errors)
