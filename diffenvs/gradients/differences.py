"""Central differences along random directions, and what they say about a gradient."""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

STEPS = (1e-4, 1e-5, 1e-6, 1e-7)
# A difference is trusted to this many times the amount by which the step size changes it.
TRUST = 3.0
# Rounding errors of a simulated number, in units of its last place: what a few hundred operations leave.
ROUNDING = 32.0


def tolerance(horizon: int) -> float:
    """Largest relative error of a right gradient: 1e-7 for one control step, 1e-6 up to 20, 1e-5 beyond.

    Rounding errors and the difference's own grow as the window does.
    """
    return 1e-7 if horizon == 1 else 1e-6 if horizon <= 20 else 1e-5


def unit(name: str, value: Tensor) -> Tensor:
    """By how much a direction moves each entry of an input (N, ...) per unit of step.

    States [m, rad, m/s, rad/s] and actions move by one; a parameter by its own size, which is the norm of a vector or
    tensor, or, where that is zero, the world's root mean square over all entries, or, where all are zero, one.
    """
    if name in ("qpos", "qvel", "action"):
        return torch.ones_like(value)
    size = value.norm(dim=-1, keepdim=True).expand_as(value) if value.dim() > 2 else value.abs()
    typical = value.reshape(len(value), -1).square().mean(1).sqrt()
    typical = torch.where(typical > 0.0, typical, torch.ones_like(typical))
    return torch.where(size > 0.0, size, typical.view(-1, *[1] * (value.dim() - 1)))


def directions(name: str, value: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Random directions (count, N, ...) for an input (N, ...)."""
    normal = torch.randn((count, *value.shape), generator=generator, dtype=value.dtype)
    return unit(name, value) * normal.to(value.device)


def along(gradient: Tensor, direction: Tensor) -> Tensor:
    """Derivatives (D, N) along directions (D, N, ...) by a gradient (N, ...)."""
    product = gradient * direction
    return product.reshape(*product.shape[:2], -1).sum(-1)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Of D directions in N worlds, (D, N) each.

    error: |difference - derivative| / max(size, |difference|), at the better step size of the plateau; NaN where
    there is none. difference: as it stands there. right, wrong: what is certain. crossed: no two neighbouring step
    sizes stay on one side of every kink. What is none of these is too small to be told from rounding.
    """

    error: Tensor
    difference: Tensor
    right: Tensor
    wrong: Tensor
    crossed: Tensor


def judge(plus: Tensor, minus: Tensor, apart: Tensor, derivative: Tensor, size: Tensor, horizon: int) -> Judgement:
    """Compare `derivative` (D, N) with central differences over `STEPS`.

    plus, minus: (S, D, N) values on either side. apart: (S, D, N) bool, whether these two are on different sides of
    a kink. size: (N,), expected size of a derivative, |gradient * unit|.

    The plateau is the pair of neighbouring step sizes, neither of them apart, whose differences are closest to each
    other; their distance, with the rounding error of the smaller step, is the difference's doubt. Wrong is an error
    above `tolerance(horizon)` and above `TRUST` times the doubt, and any derivative that is not finite.
    """
    steps = torch.tensor(STEPS, dtype=plus.dtype, device=plus.device).view(-1, 1, 1)
    differences = (plus - minus) / (2.0 * steps)
    rounding = ROUNDING * torch.finfo(plus.dtype).eps * plus.abs().clamp(min=1.0) / steps
    doubts = torch.full_like(plus[1:], float("inf"))
    for k, (a, b) in enumerate(itertools.pairwise(range(len(STEPS)))):
        doubt = (differences[a] - differences[b]).abs() + rounding[b]
        usable = ~apart[a] & ~apart[b] & doubt.isfinite()
        doubts[k] = torch.where(usable, doubt, doubts[k])
    doubt, best = doubts.min(0)
    pair = torch.stack([differences.gather(0, (best + k)[None])[0] for k in (0, 1)])
    misses = (pair - derivative).abs()
    miss, nearer = misses.min(0)
    difference = pair.gather(0, nearer[None])[0]
    crossed = (apart[:-1] | apart[1:]).all(0)
    error = torch.where(miss > 0.0, miss / torch.maximum(size, difference.abs()), miss)
    error = torch.where(doubt.isfinite(), error, torch.nan)
    broken = ~derivative.isfinite()
    right = (error <= tolerance(horizon)) & ~broken
    wrong = broken | (~right & doubt.isfinite() & (miss > TRUST * doubt))
    return Judgement(error, difference, right, wrong, crossed & ~broken)
