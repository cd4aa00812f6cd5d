"""From joint space to contact space and back, with adjoints written by hand.

For laws that solve for impulses. A row is a contact or a joint limit.
``condense``: factor the mass matrix and form, per row, the velocity at the step's start J v, the velocity that
it would have at the step's end without impulses c = J (v - h M^-1 b), and the Delassus matrix
G = J M^-1 J^T (Schwarke et al. 2025, Eq. 9-11, with the sign of c corrected). G lies in three arrays: ``delassus``, 3x3
blocks between contacts; ``coupling`` (nlimit, nc), 3-vectors, the velocity that a limit's impulse gives a contact; and
``stops`` (nlimit, nlimit), numbers between limits.
``apply``: v+ = v + M^-1 (J^T p - h b) (Eq. 15).

With M = L^T D L, everything is written in X = L^-T J^T, which is as sparse as the path from the row to the
root, and q = L^-T b: G = X^T D^-1 X, M^-1 J^T p = L^-1 D^-1 X p.
"""

import functools
from types import SimpleNamespace

import warp as wp

from diffenvs.sim.precision import Precision
from diffenvs.sim.tree import tree_functions
from diffenvs.sim.velocity import velocity_functions


@functools.cache
def constraint_kernels(precision: Precision) -> SimpleNamespace:
    """Kernels ``condense``, ``condense_adjoint``, ``apply`` and ``apply_adjoint``."""
    real, vec3, mat33 = precision.real, precision.vec3, precision.mat33
    t = tree_functions(precision)
    factor, factor_adjoint = t.factor, t.factor_adjoint
    solve_transposed, solve_transposed_adjoint = t.solve_transposed, t.solve_transposed_adjoint
    v = velocity_functions(precision)
    sum_impulses, add_impulses = v.sum_impulses, v.add_impulses
    change_velocity, change_velocity_adjoint = v.change_velocity, v.change_velocity_adjoint

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def condense(
        ncontact: int,
        nv: int,
        nrow: int,
        timestep: wp.float64,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        common: wp.array2d(dtype=int),
        mass_matrix: wp.array2d(dtype=real),
        bias: wp.array2d(dtype=real),
        jacobian: wp.array2d(dtype=vec3),
        qvel: wp.array2d(dtype=real),
        lower: wp.array2d(dtype=real),
        bias_reduced: wp.array2d(dtype=real),
        reduced: wp.array2d(dtype=vec3),
        contact_velocity: wp.array2d(dtype=vec3),
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        coupling: wp.array3d(dtype=vec3),
        stops: wp.array3d(dtype=real),
    ):
        w = wp.tid()
        step = real(timestep)
        for k in range(start[nv]):
            lower[w, k] = mass_matrix[w, k]
        factor(w, nv, start, column, lower)
        for d in range(nv):
            bias_reduced[w, d] = bias[w, d]
        solve_transposed(w, nv, start, column, lower, bias_reduced)
        for c in range(nrow):
            s = chain_start[c]
            n = chain_start[c + 1] - s
            for k in range(n):
                reduced[w, s + k] = jacobian[w, s + k]
            now = vec3()
            drift = vec3()
            for k in range(n):
                d = chain_dof[s + k]
                row = start[d]
                x = reduced[w, s + k]
                for m in range(k + 1, n):
                    reduced[w, s + m] = reduced[w, s + m] - lower[w, row + m - k] * x
                now = now + jacobian[w, s + k] * qvel[w, d]
                drift = drift + x * (bias_reduced[w, d] / lower[w, row])
            contact_velocity[w, c] = now
            free_velocity[w, c] = now - drift * step
        for a in range(ncontact):
            for b in range(a, ncontact):
                n = common[a, b]
                sa = chain_start[a + 1] - n
                sb = chain_start[b + 1] - n
                block = mat33()
                for k in range(n):
                    x = reduced[w, sa + k] / lower[w, start[chain_dof[sa + k]]]
                    block = block + wp.outer(x, reduced[w, sb + k])
                delassus[w, a, b] = block
                if a != b:
                    delassus[w, b, a] = wp.transpose(block)
        for a in range(ncontact, nrow):
            for b in range(ncontact):
                n = common[a, b]
                sa = chain_start[a + 1] - n
                sb = chain_start[b + 1] - n
                column_block = vec3()
                for k in range(n):
                    column_block = column_block + reduced[w, sb + k] * (
                        reduced[w, sa + k][2] / lower[w, start[chain_dof[sa + k]]]
                    )
                coupling[w, a - ncontact, b] = column_block
            for b in range(a, nrow):
                n = common[a, b]
                sa = chain_start[a + 1] - n
                sb = chain_start[b + 1] - n
                entry = real(0.0)
                for k in range(n):
                    entry = entry + reduced[w, sb + k][2] * (reduced[w, sa + k][2] / lower[w, start[chain_dof[sa + k]]])
                stops[w, a - ncontact, b - ncontact] = entry
                if a != b:
                    stops[w, b - ncontact, a - ncontact] = entry

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def apply(
        substep: int,
        nv: int,
        nrow: int,
        timestep: wp.float64,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        bias_reduced: wp.array2d(dtype=real),
        reduced: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
        qvel: wp.array2d(dtype=real),
        change: wp.array2d(dtype=real),
        scaled: wp.array2d(dtype=real),
        qvel_next: wp.array2d(dtype=real),
        total: wp.array2d(dtype=vec3),
    ):
        """Also sums the impulses over the substeps of a control step in ``total``."""
        w = wp.tid()
        step = real(timestep)
        sum_impulses(w, nrow, substep, impulse, total)
        for d in range(nv):
            change[w, d] = -step * bias_reduced[w, d]
        add_impulses(w, nrow, chain_start, chain_dof, reduced, impulse, change)
        change_velocity(w, nv, start, column, lower, change, qvel, change, scaled, qvel_next)

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def apply_adjoint(
        nv: int,
        nrow: int,
        timestep: wp.float64,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        lower: wp.array2d(dtype=real),
        bias_reduced: wp.array2d(dtype=real),
        reduced: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
        change: wp.array2d(dtype=real),
        scaled: wp.array2d(dtype=real),
        qvel_next_bar: wp.array2d(dtype=real),
        change_bar: wp.array2d(dtype=real),
        lower_bar: wp.array2d(dtype=real),
        bias_reduced_bar: wp.array2d(dtype=real),
        reduced_bar: wp.array2d(dtype=vec3),
        impulse_bar: wp.array2d(dtype=vec3),
        qvel_bar: wp.array2d(dtype=real),
    ):
        """Writes the adjoints of lower, bias_reduced, reduced and impulse; adds to that of qvel."""
        w = wp.tid()
        step = real(timestep)
        change_velocity_adjoint(
            w, nv, start, column, lower, change, scaled, qvel_next_bar, change_bar, lower_bar, qvel_bar
        )
        for d in range(nv):
            bias_reduced_bar[w, d] = -step * change_bar[w, d]
        for c in range(nrow):
            p = impulse[w, c]
            p_bar = vec3()
            for k in range(chain_start[c], chain_start[c + 1]):
                g = change_bar[w, chain_dof[k]]
                reduced_bar[w, k] = p * g
                p_bar = p_bar + reduced[w, k] * g
            impulse_bar[w, c] = p_bar

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def condense_adjoint(
        ncontact: int,
        nv: int,
        nrow: int,
        timestep: wp.float64,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        common: wp.array2d(dtype=int),
        jacobian: wp.array2d(dtype=vec3),
        qvel: wp.array2d(dtype=real),
        lower: wp.array2d(dtype=real),
        bias_reduced: wp.array2d(dtype=real),
        reduced: wp.array2d(dtype=vec3),
        contact_velocity_bar: wp.array2d(dtype=vec3),
        free_velocity_bar: wp.array2d(dtype=vec3),
        delassus_bar: wp.array3d(dtype=mat33),
        coupling_bar: wp.array3d(dtype=vec3),
        stops_bar: wp.array3d(dtype=real),
        lower_bar: wp.array2d(dtype=real),
        bias_reduced_bar: wp.array2d(dtype=real),
        reduced_bar: wp.array2d(dtype=vec3),
        mass_matrix_bar: wp.array2d(dtype=real),
        bias_bar: wp.array2d(dtype=real),
        jacobian_bar: wp.array2d(dtype=vec3),
        qvel_bar: wp.array2d(dtype=real),
    ):
        """Takes what ``apply_adjoint`` left in lower_bar, bias_reduced_bar and reduced_bar further to the inputs."""
        w = wp.tid()
        step = real(timestep)
        for a in range(ncontact):
            for b in range(a, ncontact):
                g = delassus_bar[w, a, b]
                if a != b:
                    g = g + wp.transpose(delassus_bar[w, b, a])
                g_transposed = wp.transpose(g)
                n = common[a, b]
                sa = chain_start[a + 1] - n
                sb = chain_start[b + 1] - n
                for k in range(n):
                    s = start[chain_dof[sa + k]]
                    inverse = real(1.0) / lower[w, s]
                    ga = (g * reduced[w, sb + k]) * inverse
                    gb = (g_transposed * reduced[w, sa + k]) * inverse
                    lower_bar[w, s] = lower_bar[w, s] - wp.dot(reduced[w, sa + k], ga) * inverse
                    reduced_bar[w, sa + k] = reduced_bar[w, sa + k] + ga
                    reduced_bar[w, sb + k] = reduced_bar[w, sb + k] + gb
        for a in range(ncontact, nrow):
            for b in range(ncontact):
                along_b = coupling_bar[w, a - ncontact, b]
                n = common[a, b]
                sa = chain_start[a + 1] - n
                sb = chain_start[b + 1] - n
                for k in range(n):
                    s = start[chain_dof[sa + k]]
                    inverse = real(1.0) / lower[w, s]
                    x_a = reduced[w, sa + k][2]
                    ga_n = wp.dot(along_b, reduced[w, sb + k]) * inverse
                    lower_bar[w, s] = lower_bar[w, s] - x_a * ga_n * inverse
                    reduced_bar[w, sa + k] = reduced_bar[w, sa + k] + vec3(real(0.0), real(0.0), ga_n)
                    reduced_bar[w, sb + k] = reduced_bar[w, sb + k] + along_b * (x_a * inverse)
            for b in range(a, nrow):
                g_n = stops_bar[w, a - ncontact, b - ncontact]
                if a != b:
                    g_n = g_n + stops_bar[w, b - ncontact, a - ncontact]
                n = common[a, b]
                sa = chain_start[a + 1] - n
                sb = chain_start[b + 1] - n
                for k in range(n):
                    s = start[chain_dof[sa + k]]
                    inverse = real(1.0) / lower[w, s]
                    x_a = reduced[w, sa + k][2]
                    x_b = reduced[w, sb + k][2]
                    lower_bar[w, s] = lower_bar[w, s] - x_a * x_b * g_n * inverse * inverse
                    reduced_bar[w, sa + k] = reduced_bar[w, sa + k] + vec3(real(0.0), real(0.0), g_n * x_b * inverse)
                    reduced_bar[w, sb + k] = reduced_bar[w, sb + k] + vec3(real(0.0), real(0.0), g_n * x_a * inverse)
        for c in range(nrow):
            s = chain_start[c]
            n = chain_start[c + 1] - s
            c_bar = free_velocity_bar[w, c]
            now_bar = contact_velocity_bar[w, c] + c_bar
            drift_bar = c_bar * (-step)
            for r in range(n):
                k = n - 1 - r
                d = chain_dof[s + k]
                row = start[d]
                x = reduced[w, s + k]
                inverse = real(1.0) / lower[w, row]
                ratio = bias_reduced[w, d] * inverse
                along = wp.dot(x, drift_bar) * inverse
                bias_reduced_bar[w, d] = bias_reduced_bar[w, d] + along
                lower_bar[w, row] = lower_bar[w, row] - along * ratio
                x_bar = reduced_bar[w, s + k] + drift_bar * ratio
                for m in range(k + 1, n):
                    above = reduced_bar[w, s + m]
                    x_bar = x_bar - above * lower[w, row + m - k]
                    lower_bar[w, row + m - k] = lower_bar[w, row + m - k] - wp.dot(x, above)
                reduced_bar[w, s + k] = x_bar
                jacobian_bar[w, s + k] = jacobian_bar[w, s + k] + x_bar + now_bar * qvel[w, d]
                qvel_bar[w, d] = qvel_bar[w, d] + wp.dot(jacobian[w, s + k], now_bar)
        solve_transposed_adjoint(w, nv, start, column, lower, bias_reduced, bias_reduced_bar, lower_bar)
        for d in range(nv):
            bias_bar[w, d] = bias_bar[w, d] + bias_reduced_bar[w, d]
        factor_adjoint(w, nv, start, column, lower, lower_bar, mass_matrix_bar)

    return SimpleNamespace(
        condense=condense, condense_adjoint=condense_adjoint, apply=apply, apply_adjoint=apply_adjoint
    )
