"""The end of a simulation step, the same for every law: from impulses to the velocity after it."""

import functools
from types import SimpleNamespace

import warp as wp

from diffenvs.sim.precision import Precision
from diffenvs.sim.tree import tree_functions


@functools.cache
def velocity_functions(precision: Precision) -> SimpleNamespace:
    """Warp functions; matrices are factored and packed as in ``tree``, contacts' columns lie along their paths."""
    real, vec3 = precision.real, precision.vec3
    t = tree_functions(precision)
    solve_lower, solve_lower_adjoint = t.solve_lower, t.solve_lower_adjoint

    @wp.func
    def sum_impulses(
        w: int,
        nrow: int,
        substep: int,
        impulse: wp.array2d(dtype=vec3),
        total: wp.array2d(dtype=vec3),
    ):
        """Over the substeps of a control step."""
        for c in range(nrow):
            if substep == 0:
                total[w, c] = impulse[w, c]
            else:
                total[w, c] = total[w, c] + impulse[w, c]

    @wp.func
    def add_impulses(
        w: int,
        nrow: int,
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        columns: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
        right: wp.array2d(dtype=real),
    ):
        """right += columns p."""
        for c in range(nrow):
            p = impulse[w, c]
            for k in range(chain_start[c], chain_start[c + 1]):
                d = chain_dof[k]
                right[w, d] = right[w, d] + wp.dot(columns[w, k], p)

    @wp.func
    def change_velocity(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        right: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        change: wp.array2d(dtype=real),
        scaled: wp.array2d(dtype=real),
        qvel_next: wp.array2d(dtype=real),
    ):
        """scaled = D^-1 right; change = L^-1 scaled; v+ = v + change. ``right`` and ``change`` may be one array."""
        for d in range(nv):
            y = right[w, d] / lower[w, start[d]]
            scaled[w, d] = y
            change[w, d] = y
        solve_lower(w, nv, start, column, lower, change)
        for d in range(nv):
            qvel_next[w, d] = qvel[w, d] + change[w, d]

    @wp.func
    def change_velocity_adjoint(
        w: int,
        nv: int,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        change: wp.array2d(dtype=real),
        scaled: wp.array2d(dtype=real),
        qvel_next_bar: wp.array2d(dtype=real),
        right_bar: wp.array2d(dtype=real),
        lower_bar: wp.array2d(dtype=real),
        qvel_bar: wp.array2d(dtype=real),
    ):
        """Writes the adjoints of right and lower, adds to that of qvel."""
        for k in range(start[nv]):
            lower_bar[w, k] = real(0.0)
        for d in range(nv):
            g = qvel_next_bar[w, d]
            qvel_bar[w, d] = qvel_bar[w, d] + g
            right_bar[w, d] = g
        solve_lower_adjoint(w, nv, start, column, lower, change, right_bar, lower_bar)
        for d in range(nv):
            s = start[d]
            y_bar = right_bar[w, d] / lower[w, s]
            lower_bar[w, s] = -y_bar * scaled[w, d]
            right_bar[w, d] = y_bar

    return SimpleNamespace(
        sum_impulses=sum_impulses,
        add_impulses=add_impulses,
        change_velocity=change_velocity,
        change_velocity_adjoint=change_velocity_adjoint,
    )
