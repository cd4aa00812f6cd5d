"""Tree-sparse factorisation M = L^T D L and its solves, each with its adjoint.

Row d of the packed matrix holds entry (d, d) followed by (d, ancestor) from the nearest ancestor to the root, so
the factor has no fill-in (Featherstone 2008, section 6.5). The factorisation overwrites its input, which a
generated adjoint cannot follow: the adjoints here are written by hand, as the forward loops run backwards.
"""

import functools
from types import SimpleNamespace

import warp as wp

from diffenvs.sim.precision import Precision


@functools.cache
def tree_functions(precision: Precision) -> SimpleNamespace:
    """Warp functions on packed matrices (``start``: first index of a row, ``column``: its dofs)."""
    real = precision.real

    @wp.func
    def factor(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
    ):
        """In place: M -> D on the diagonal entries, L elsewhere."""
        for r in range(nv):
            d = nv - 1 - r
            s = start[d]
            n = start[d + 1] - s
            inverse = real(1.0) / lower[w, s]
            for k in range(1, n):
                scaled = lower[w, s + k] * inverse
                t = start[column[s + k]]
                for m in range(k, n):
                    lower[w, t + m - k] = lower[w, t + m - k] - scaled * lower[w, s + m]
            for k in range(1, n):
                lower[w, s + k] = lower[w, s + k] * inverse

    @wp.func
    def factor_adjoint(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        lower_bar: wp.array2d(dtype=real),
        matrix_bar: wp.array2d(dtype=real),
    ):
        """From the adjoint of (D, L), in ``lower_bar``, to that of M; entry (i, j) and (j, i) are one number."""
        for d in range(nv):
            s = start[d]
            n = start[d + 1] - s
            pivot = lower[w, s]
            pivot_bar = lower_bar[w, s]
            for k in range(1, n):
                t = start[column[s + k]]
                lk = lower[w, s + k]
                for m in range(k, n):
                    g = lower_bar[w, t + m - k]
                    lm = lower[w, s + m]
                    pivot_bar = pivot_bar - g * lk * lm
                    lower_bar[w, s + k] = lower_bar[w, s + k] - g * pivot * lm
                    lower_bar[w, s + m] = lower_bar[w, s + m] - g * pivot * lk
            for k in range(1, n):
                scaled_bar = lower_bar[w, s + k] / pivot
                pivot_bar = pivot_bar - scaled_bar * lower[w, s + k]
                lower_bar[w, s + k] = scaled_bar
            lower_bar[w, s] = pivot_bar
        for k in range(start[nv]):
            matrix_bar[w, k] = matrix_bar[w, k] + lower_bar[w, k]

    @wp.func
    def solve_transposed(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        x: wp.array2d(dtype=real),
    ):
        """In place: x -> L^-T x."""
        for r in range(nv):
            d = nv - 1 - r
            s = start[d]
            value = x[w, d]
            for k in range(1, start[d + 1] - s):
                c = column[s + k]
                x[w, c] = x[w, c] - lower[w, s + k] * value

    @wp.func
    def solve_transposed_adjoint(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        x: wp.array2d(dtype=real),
        x_bar: wp.array2d(dtype=real),
        lower_bar: wp.array2d(dtype=real),
    ):
        """``x`` holds the result; ``x_bar`` goes from its adjoint to that of the right-hand side, in place."""
        for d in range(nv):
            s = start[d]
            g = x_bar[w, d]
            for k in range(1, start[d + 1] - s):
                c = x_bar[w, column[s + k]]
                g = g - lower[w, s + k] * c
                lower_bar[w, s + k] = lower_bar[w, s + k] - x[w, d] * c
            x_bar[w, d] = g

    @wp.func
    def solve_lower(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        x: wp.array2d(dtype=real),
    ):
        """In place: x -> L^-1 x."""
        for d in range(nv):
            s = start[d]
            value = x[w, d]
            for k in range(1, start[d + 1] - s):
                value = value - lower[w, s + k] * x[w, column[s + k]]
            x[w, d] = value

    @wp.func
    def solve_lower_adjoint(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        x: wp.array2d(dtype=real),
        x_bar: wp.array2d(dtype=real),
        lower_bar: wp.array2d(dtype=real),
    ):
        """``x`` holds the result; ``x_bar`` goes from its adjoint to that of the right-hand side, in place."""
        for r in range(nv):
            d = nv - 1 - r
            s = start[d]
            g = x_bar[w, d]
            for k in range(1, start[d + 1] - s):
                c = column[s + k]
                x_bar[w, c] = x_bar[w, c] - lower[w, s + k] * g
                lower_bar[w, s + k] = lower_bar[w, s + k] - g * x[w, c]

    return SimpleNamespace(
        factor=factor,
        factor_adjoint=factor_adjoint,
        solve_transposed=solve_transposed,
        solve_transposed_adjoint=solve_transposed_adjoint,
        solve_lower=solve_lower,
        solve_lower_adjoint=solve_lower_adjoint,
    )
