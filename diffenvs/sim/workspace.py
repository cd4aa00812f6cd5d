"""Scratch memory of the kernels: one contiguous block per world and substep, one gradient block per world."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import warp as wp

from diffenvs.sim.precision import Precision


@dataclass(frozen=True)
class Field:
    """One array of a workspace: ``dtype`` per entry, ``shape`` per world (without the world axis)."""

    name: str
    dtype: Any
    shape: tuple[int, ...]

    @property
    def reals(self) -> int:
        """Scalars per world."""
        size = int(getattr(self.dtype, "_length_", 1))
        for n in self.shape:
            size *= n
        return size


class Workspace:
    """Arrays of shape (worlds, *shape) cut from one block per slot, so that a world's data lie side by side.

    slots: a list of namespaces, one per substep, with an array per field. With ``gradient``, all slots share one
    gradient block (``array.grad``): the adjoints of substeps run one after another.
    """

    def __init__(
        self,
        fields: list[Field],
        *,
        worlds: int,
        slots: int,
        precision: Precision,
        device: str,
        gradient: bool = False,
    ):
        self._fields = fields
        self._width = max(1, sum(f.reals for f in fields))
        self._worlds = worlds
        self._precision = precision
        self._device = device
        self._blocks = [self._block() for _ in range(slots)]
        self._gradient = self._block() if gradient else None
        self.slots = [self._cut(block) for block in self._blocks]

    def _block(self) -> wp.array:
        return wp.zeros((max(1, self._worlds), self._width), dtype=self._precision.real, device=self._device)

    def _cut(self, block: wp.array) -> SimpleNamespace:
        arrays = {}
        offset = 0
        for field in self._fields:
            grad = self._view(self._gradient, field, offset, None) if self._gradient is not None else None
            arrays[field.name] = self._view(block, field, offset, grad)
            offset += field.reals
        return SimpleNamespace(**arrays)

    def _view(self, block: wp.array, field: Field, offset: int, grad: wp.array | None) -> wp.array:
        item = block.strides[1]
        entry = item * int(getattr(field.dtype, "_length_", 1))
        strides = [entry]
        for n in reversed(field.shape[1:]):
            strides.insert(0, strides[0] * n)
        if not field.shape:
            strides = []
        return wp.array(
            ptr=block.ptr + offset * item,
            dtype=field.dtype,
            shape=(self._worlds, *field.shape),
            strides=(block.strides[0], *strides),
            device=self._device,
            copy=False,
            grad=grad,
        )

    def gradient_rows(self, first: int, last: int) -> wp.array:
        """The gradient block of worlds ``first`` to ``last``, to be zeroed before an adjoint runs."""
        return self._gradient[first:last]
