"""What a contact law is: a frozen value that turns velocities and depths of rows into impulses.

A row is a contact with the ground or a joint limit; the contacts come first. The row of a limit has a normal direction
only: its tangential velocity is zero, and friction finds nothing to do.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import warp as wp

from diffenvs.sim.precision import Precision


@dataclass(frozen=True)
class LawKernels:
    """The two kernels of a law for one precision; both take the arguments listed in ``impulse_arguments``."""

    impulses: wp.Kernel
    adjoint: wp.Kernel


class ContactLaw(Protocol):
    """Interface of a law. Nothing outside this folder asks which law it has.

    name: as in ``CONTACT``.
    max_timestep: longest simulation step [s] that the law allows; infinite for impulses, which are stable at any. A
        law with a finite one is a force and has a ``require_stable`` as `Soft` has it.
    needs_delassus: whether the law reads the Delassus matrix.
    sweeps: solver sweeps, 0 without a solver.
    coefficients: the numbers that the kernels read.
    kernels: the law in Warp.
    """

    name: ClassVar[str]
    needs_delassus: ClassVar[bool]

    @property
    def max_timestep(self) -> float: ...

    @property
    def sweeps(self) -> int: ...

    @property
    def coefficients(self) -> tuple[float, ...]: ...

    def kernels(self, precision: Precision) -> LawKernels: ...


def require_positive(law: str, name: str, value: float, below: float = float("inf")) -> None:
    """Raise ValueError unless ``value`` is a finite number above zero and below ``below``."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0.0 < value < below):
        limit = "" if below == float("inf") else f" and below {below:g}"
        raise ValueError(f"{law}: {name} is {value!r}, expected a finite number above 0{limit}.")


def require_count(law: str, name: str, value: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{law}: {name} is {value!r}, expected an integer of at least 1.")
