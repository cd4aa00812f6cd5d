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
        self._fields = fields
        options = {"slots": 1, "device": device, "gradient": True}
        self._worlds, self._precision, self._device = worlds, precision, device
        self._groups = Workspace(fields, rows=groups_of(worlds, precision), precision=precision, **options)
        self._rows = self._groups
        if precision.lanes > 1:
            self._rows = Workspace(fields, rows=worlds, precision=precision.single, **options)
        self.rows, self.rows_bar = self._rows.slots[0], self._rows.gradients

    def part(self, first: int, last: int) -> SimpleNamespace:
        """The arrays of groups ``first`` to ``last``."""
        return self._groups.part(first, last)

    def gradient_part(self, first: int, last: int) -> tuple[wp.array, wp.array]:
        """Of these groups: the gradients of everything side by side (groups, n), and that of "health" among them."""
        return self._groups.flat_gradient(first, last), self.part(first, last).health.grad

    def columns_to(self, name: str) -> int:
        """Scalars of a world up to and with those of a field."""
        names = [f.name for f in self._fields]
        return sum(f.reals for f in self._fields[: names.index(name) + 1])

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


# Written in C++: Warp's own indexing of strided arrays takes five times as long, as long as a simulation step.
_ADDRESSES = """
    auto* group = groups.data + (size_t)g * (groups.strides[0] / sizeof(*groups.data));
    const size_t pitch = rows.strides[0] / sizeof(*rows.data);
"""
_ENTER = """
    for (int k = 0; k < lanes; ++k) {
        const int w = g * lanes + k < worlds ? g * lanes + k : worlds - 1;
        const auto* row = rows.data + (size_t)w * pitch;
        for (int c = 0; c < columns; ++c) group[(size_t)c * lanes + k] = row[c];
    }
"""
_LEAVE = """
    for (int k = 0; k < lanes && g * lanes + k < worlds; ++k) {
        auto* row = rows.data + (size_t)(g * lanes + k) * pitch;
        for (int c = 0; c < columns; ++c) row[c] = group[(size_t)c * lanes + k];
    }
"""


@functools.cache
def exchange_kernels(real: type) -> SimpleNamespace:
    """Kernels ``enter`` and ``leave``, one thread a group. ``rows``: (worlds, n); ``groups``: (groups, n, lanes).

    Lanes beyond the last world repeat it, and are left behind.
    """

    def kernel(body):
        @wp.func_native(_ADDRESSES + body)
        def move(
            g: int, worlds: int, lanes: int, columns: int, rows: wp.array2d(dtype=real), groups: wp.array3d(dtype=real)
        ): ...

        @wp.kernel(module="unique", enable_backward=False)
        def exchange(
            first: int,
            worlds: int,
            lanes: int,
            columns: int,
            rows: wp.array2d(dtype=real),
            groups: wp.array3d(dtype=real),
        ):
            move(first + wp.tid(), worlds, lanes, columns, rows, groups)

        return exchange

    return SimpleNamespace(enter=kernel(_ENTER), leave=kernel(_LEAVE))
