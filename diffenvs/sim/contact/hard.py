"""Hard contact: what a real floor does."""

import functools
from dataclasses import dataclass
from typing import ClassVar

import warp as wp

from diffenvs.sim.contact.law import LawKernels, require_count
from diffenvs.sim.contact.sweeps import sweep_kernels
from diffenvs.sim.precision import Precision


@dataclass(frozen=True)
class Hard:
    """Inelastic contact with Coulomb friction: impulses where the sphere touches (d >= 0), none elsewhere.
    A joint that reaches the end of its range stops there likewise.

    The weight of a contact in ``sweeps`` is the unit step of its penetration depth d at mid-step (Schwarke et al.
    2025, Alg. 2). There is no position stabilisation.

    Gradient: exact between changes of the set of touching contacts, and blind to those changes: the derivative of
    the step is taken as zero, so *whether* a foot lands carries no gradient.

    sweeps: Gauss-Seidel sweeps. Raises ValueError unless it is an integer of at least 1.
    """

    sweeps: int = 10

    name: ClassVar[str] = "hard"
    needs_delassus: ClassVar[bool] = True

    def __post_init__(self):
        require_count("Hard", "sweeps", self.sweeps)

    @property
    def max_timestep(self) -> float:
        """[s]: an impulse-level law is stable at any step."""
        return float("inf")

    @property
    def coefficients(self) -> tuple[float, ...]:
        """Numbers that the kernels read: none; Warp arrays want at least one."""
        return (0.0,)

    def kernels(self, precision: Precision) -> LawKernels:
        """The law in Warp."""
        return hard_kernels(precision)


@functools.cache
def hard_kernels(precision: Precision) -> LawKernels:
    """Sweeps with a step as weight."""
    real = precision.real

    @wp.func
    def weight(depth: real, coefficients: wp.array(dtype=real)) -> real:
        return real(1.0) - wp.step(depth)

    @wp.func
    def slope(depth: real, coefficients: wp.array(dtype=real)) -> real:
        return real(0.0)

    @wp.func
    def included(depth: real) -> real:
        return real(1.0) - wp.step(depth)

    return sweep_kernels(precision, weight, slope, included)
