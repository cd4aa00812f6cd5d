"""Analytically smoothed contact: nearly hard, with a gradient that sees the ground before it is touched."""

import functools
from dataclasses import dataclass
from typing import ClassVar

import warp as wp

from diffenvs.sim.contact.law import LawKernels, require_count, require_positive
from diffenvs.sim.contact.sweeps import sweep_kernels
from diffenvs.sim.precision import Precision


@dataclass(frozen=True)
class Smoothed:
    """The hard solver with every contact impulse scaled by sigmoid(kappa d), d the penetration depth at mid-step.

    Schwarke et al. 2025, Alg. 1 and Eq. 5. All contacts take part at any height, so there is a small force at a
    distance; a loaded foot sinks by d(t) = ln(1 + A kappa g h t) / kappa, about a centimetre a second at kappa 300.
    A joint gives way at the end of its range likewise, d in rad or m, with the same kappa in 1/rad or 1/m.

    Gradient: exact, everywhere.

    kappa [1/m | 1/rad]: sharpness; the hard law is its limit. Raises ValueError unless above 0 and below
        1e12, where float32 still holds kappa d.
    sweeps: Gauss-Seidel sweeps. Raises ValueError unless it is an integer of at least 1.
    """

    kappa: float = 300.0
    sweeps: int = 10

    name: ClassVar[str] = "smoothed"
    needs_delassus: ClassVar[bool] = True

    def __post_init__(self):
        require_positive("Smoothed", "kappa", self.kappa, below=1e12)
        require_count("Smoothed", "sweeps", self.sweeps)

    @property
    def max_timestep(self) -> float:
        """[s]: an impulse-level law is stable at any step."""
        return float("inf")

    @property
    def coefficients(self) -> tuple[float, ...]:
        """Numbers that the kernels read."""
        return (float(self.kappa),)

    def kernels(self, precision: Precision) -> LawKernels:
        """The law in Warp."""
        return smoothed_kernels(precision)


@functools.cache
def smoothed_kernels(precision: Precision) -> LawKernels:
    """Sweeps with a sigmoid as weight."""
    real = precision.real

    @wp.func
    def weight(depth: real, coefficients: wp.array(dtype=real)) -> real:
        return real(1.0) / (real(1.0) + wp.exp(-coefficients[0] * depth))

    @wp.func
    def slope(depth: real, coefficients: wp.array(dtype=real)) -> real:
        s = real(1.0) / (real(1.0) + wp.exp(-coefficients[0] * depth))
        return coefficients[0] * s * (real(1.0) - s)

    @wp.func
    def included(depth: real) -> real:
        return real(1.0)

    return sweep_kernels(precision, weight, slope, included)
