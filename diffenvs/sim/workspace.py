"""Memory of the kernels: one contiguous block per world and slot, one gradient block per world."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from diffenvs.sim.precision import Precision

# [bytes] of the widest vector register
_ALIGNMENT = 64


@dataclass(frozen=True)
class Field:
    """One array of a workspace: ``dtype`` per entry, ``shape`` per world (without the world axis)."""

    name: str
    dtype: Any
    shape: tuple[int, ...]

    @property
    def reals(self) -> int:
        """Scalars per world."""
        return int(getattr(self.dtype, "_length_", 1)) * math.prod(self.shape)


class Workspace:
    """Arrays of shape (rows, *shape) cut from one block per slot, so that a row's data lie side by side.

    A row is a world, or a group of as many worlds as ``precision`` has lanes: then an entry of an array is followed
    by the next after that many copies of its type. slots: a list of namespaces with an array per field. With
    ``gradient``, all slots share one gradient block (``array.grad``): the adjoints of substeps run one after another.
    """

    def __init__(
        self,
        fields: list[Field],
        *,
        rows: int,
        slots: int,
        precision: Precision,
        device: str,
        gradient: bool = False,
    ):
        self._fields = fields
        self.width = sum(f.reals for f in fields)
        self._rows = rows
        self._precision = precision
        self._device = device
        self.blocks = [self._block() for _ in range(slots)]
        self.gradient = self._block() if gradient else None
        self.slots = [self._cut(block, 0, rows) for block in self.blocks]
        self.gradients = None if self.gradient is None else self._cut(self.gradient, 0, rows)

    def _block(self) -> wp.array:
        """Zeros (rows, width, lanes)."""
        p = self._precision
        shape = (max(1, self._rows), max(1, self.width), p.lanes)
        size = wp.types.type_size_in_bytes(p.real)
        owner = wp.zeros(math.prod(shape) + _ALIGNMENT // size, dtype=p.real, device=self._device)
        start = owner.ptr + -owner.ptr % _ALIGNMENT
        block = wp.array(ptr=start, dtype=p.real, shape=shape, device=self._device, copy=False)
        # views do not keep the memory that they look at
        block.owner = owner
        return block

    def part(self, first: int, last: int) -> SimpleNamespace:
        """The first slot's arrays, of rows ``first`` to ``last`` only."""
        return self._cut(self.blocks[0], first, last)

    def gradient_rows(self, first: int, last: int) -> wp.array:
        """The gradient block of rows ``first`` to ``last``, to be zeroed before an adjoint runs."""
        return self.gradient[first:last]

    def flat_gradient(self, first: int, last: int) -> wp.array:
        """The gradients of all fields side by side, of rows ``first`` to ``last``: (last - first, width)."""
        return self._view(self.gradient, Field("all", self._precision.real, (self.width,)), 0, first, last, None)

    def _cut(self, block: wp.array, first: int, last: int) -> SimpleNamespace:
        arrays = {}
        offset = 0
        for field in self._fields:
            grad = None
            if self.gradient is not None and block is not self.gradient:
                grad = self._view(self.gradient, field, offset, first, last, None)
            arrays[field.name] = self._view(block, field, offset, first, last, grad)
            offset += field.reals
        return SimpleNamespace(**arrays)

    def _view(
        self, block: wp.array, field: Field, offset: int, first: int, last: int, grad: wp.array | None
    ) -> wp.array:
        row, scalar = block.strides[:2]
        strides = [scalar * int(getattr(field.dtype, "_length_", 1))]
        for n in reversed(field.shape[1:]):
            strides.insert(0, strides[0] * n)
        array = wp.array(
            ptr=block.ptr + first * row + offset * scalar,
            dtype=field.dtype,
            shape=(last - first, *field.shape),
            strides=(row, *(strides if field.shape else [])),
            device=self._device,
            copy=False,
            grad=grad,
        )
        array.owner = block
        return array

    def read(self, name: str) -> np.ndarray:
        """Field of the first slot (worlds, ...), one world a row; where groups are not full, of more worlds yet."""
        offset = 0
        for field in self._fields:
            if field.name == name:
                shape = (*field.shape, *getattr(field.dtype, "_shape_", ()))
                columns = self.blocks[0].numpy()[:, offset : offset + field.reals]
                return np.moveaxis(columns, 2, 1).reshape(len(columns) * self._precision.lanes, *shape)
            offset += field.reals
        raise KeyError(f"workspace has no field {name!r}")


def constants(values: np.ndarray, dtype: Any, precision: Precision, device: str) -> wp.array:
    """Array (n,) of numbers (n, ...) that all worlds share, the same in every lane."""
    values = np.asarray(values, dtype=np.float64)
    space = Workspace([Field("all", dtype, ())], rows=len(values), slots=1, precision=precision, device=device)
    if len(values) > 0:
        space.blocks[0].assign(np.repeat(values.reshape(len(values), -1, 1), precision.lanes, -1))
    return space.slots[0].all
