"""Between rows, one world each, and groups of worlds side by side in the lanes of a scalar."""

import functools
from types import SimpleNamespace

import warp as wp

from diffenvs.sim.precision import Precision
from diffenvs.sim.workspace import Field, Workspace


class Port:
    """Arrays that callers fill and read by rows, and kernels by groups; the same arrays where a group is one world.

    Every array carries a gradient of the same layout.
    """

    def __init__(self, fields: list[Field], *, worlds: int, precision: Precision, device: str):
        options = {"slots": 1, "device": device, "gradient": True}
        self._worlds, self._precision, self._device = worlds, precision, device
        self._groups = Workspace(fields, rows=groups_of(worlds, precision), precision=precision, **options)
        self._rows = self._groups
        if precision.lanes > 1:
            self._rows = Workspace(fields, rows=worlds, precision=precision.single, **options)
        self.rows, self.rows_bar = self._rows.slots[0], self._rows.gradients
        self.groups, self.groups_bar = self._groups.slots[0], self._groups.gradients

    def gradient_rows(self, first: int, last: int) -> wp.array:
        """The gradient of groups ``first`` to ``last``, to be zeroed before an adjoint runs."""
        return self._groups.gradient_rows(first, last)

    def enter(self, first: int, last: int, *, gradient: bool = False) -> list:
        """Launches that bring the worlds of groups ``first`` to ``last`` in."""
        return self._exchange("enter", first, last, gradient, self._rows.width)

    def leave(self, first: int, last: int, *, gradient: bool = False, columns: int | None = None) -> list:
        """Launches that bring them out: the first ``columns`` scalars of a world, by default all."""
        return self._exchange("leave", first, last, gradient, self._rows.width if columns is None else columns)

    def _exchange(self, name: str, first: int, last: int, gradient: bool, columns: int) -> list:
        if self._rows is self._groups:
            return []
        rows, groups = [w.gradient if gradient else w.blocks[0] for w in (self._rows, self._groups)]
        kernel = getattr(exchange_kernels(self._precision.real), name)
        arguments = [first, self._worlds, self._precision.lanes, columns, rows[:, :, 0], groups]
        return [wp.launch(kernel, dim=last - first, inputs=arguments, device=self._device, record_cmd=True)]


def groups_of(worlds: int, precision: Precision) -> int:
    """Number of scalars that hold a number of as many worlds; the last may have lanes to spare."""
    return -(-worlds // precision.lanes)


@functools.cache
def exchange_kernels(real: type) -> SimpleNamespace:
    """Kernels ``enter`` and ``leave``, one thread a group. ``rows``: (worlds, n); ``groups``: (groups, n, lanes)."""

    @wp.kernel(module="unique", enable_backward=False)
    def enter(
        first: int,
        worlds: int,
        lanes: int,
        columns: int,
        rows: wp.array2d(dtype=real),
        groups: wp.array3d(dtype=real),
    ):
        """Lanes beyond the last world repeat it."""
        g = first + wp.tid()
        for k in range(lanes):
            w = wp.min(g * lanes + k, worlds - 1)
            for c in range(columns):
                groups[g, c, k] = rows[w, c]

    @wp.kernel(module="unique", enable_backward=False)
    def leave(
        first: int,
        worlds: int,
        lanes: int,
        columns: int,
        rows: wp.array2d(dtype=real),
        groups: wp.array3d(dtype=real),
    ):
        g = first + wp.tid()
        for k in range(lanes):
            w = g * lanes + k
            if w < worlds:
                for c in range(columns):
                    rows[w, c] = groups[g, c, k]

    return SimpleNamespace(enter=enter, leave=leave)
