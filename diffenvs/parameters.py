"""Physical parameters of every world: differentiable inputs of a simulation."""

import dataclasses
import functools
from dataclasses import dataclass

import torch

SIGNED = ("com", "inertia", "link_pos", "contact_pos", "damping", "stiffness", "kp", "kd")


@dataclass(frozen=True, eq=False)
class Parameters:
    """One value per world (N worlds); any field may require a gradient.

    friction (N,): Coulomb coefficient of every contact.
    mass (N, nlink) [kg], com (N, nlink, 3) [m, link frame]
    inertia (N, nlink, 6) [kg m^2]: xx yy zz xy xz yz about the centre of mass, link axes
    link_pos (N, nlink, 3) [m]: link origin in the parent link's frame
    damping [N m s/rad], stiffness [N m/rad], armature [kg m^2]: (N, nv)
    kp [N m/rad], kd [N m s/rad]: (N, nu), gains of position actuators
    contact_pos (N, nc, 3) [m, link frame], contact_radius (N, nc) [m]
    """

    friction: torch.Tensor
    mass: torch.Tensor
    com: torch.Tensor
    inertia: torch.Tensor
    link_pos: torch.Tensor
    damping: torch.Tensor
    stiffness: torch.Tensor
    armature: torch.Tensor
    kp: torch.Tensor
    kd: torch.Tensor
    contact_pos: torch.Tensor
    contact_radius: torch.Tensor

    @classmethod
    @functools.cache
    def names(cls) -> tuple[str, ...]:
        """Field names, in order."""
        return tuple(f.name for f in dataclasses.fields(cls))

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Field values, in order."""
        return tuple(getattr(self, name) for name in self.names())

    def replace(self, **fields: torch.Tensor) -> "Parameters":
        """A copy with some fields exchanged. Raises ValueError for a wrong name or shape."""
        for name, value in fields.items():
            if name not in self.names():
                raise ValueError(f"parameter {name!r} is unknown, expected one of {', '.join(self.names())}.")
            expected = tuple(getattr(self, name).shape)
            if tuple(value.shape) != expected:
                raise ValueError(
                    f"parameter {name!r} has shape {tuple(value.shape)}, expected {expected} (one row per world)."
                )
        return dataclasses.replace(self, **fields)

    def require_physical(self) -> None:
        """Raise ValueError, naming field and world, where a value is not finite or is negative though it cannot be."""
        for name, value in zip(self.names(), self.tensors(), strict=True):
            rows = value.detach().reshape(len(value), -1)
            wrong = ~torch.isfinite(rows)
            expected = "finite numbers"
            if name not in SIGNED:
                wrong |= rows < 0
                expected += " of at least 0"
            if wrong.any():
                world, index = wrong.nonzero()[0].tolist()
                raise ValueError(
                    f"parameter {name!r} of world {world} is {rows[world, index].item()}, expected {expected}."
                )

    def select(self, worlds: torch.Tensor) -> "Parameters":
        """The rows of some worlds (indices)."""
        return Parameters(*[t[worlds] for t in self.tensors()])

    def put(self, worlds: torch.Tensor, other: "Parameters") -> "Parameters":
        """A copy in which the rows of ``worlds`` (indices) are those of ``other``."""
        return Parameters(*[t.index_copy(0, worlds, o) for t, o in zip(self.tensors(), other.tensors(), strict=True)])
