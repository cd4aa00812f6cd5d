"""The step of a law that gives forces: no contact space is needed, only velocities at the contacts.

``contact_motion``: J v. ``accelerate``: v+ = v + M^-1 (J^T p - h b) by one factorisation and one solve. The adjoints
are written by hand; see ``tree``.
"""

import functools
from types import SimpleNamespace

import warp as wp

from diffenvs.sim.precision import Precision
from diffenvs.sim.tree import tree_functions
from diffenvs.sim.velocity import velocity_functions


@functools.cache
def force_kernels(precision: Precision) -> SimpleNamespace:
    """Kernels ``contact_motion``, ``contact_motion_adjoint``, ``accelerate`` and ``accelerate_adjoint``."""
    real, vec3 = precision.real, precision.vec3
    t = tree_functions(precision)
    factor, factor_adjoint = t.factor, t.factor_adjoint
    solve_transposed, solve_transposed_adjoint = t.solve_transposed, t.solve_transposed_adjoint
    v = velocity_functions(precision)
    sum_impulses, add_impulses = v.sum_impulses, v.add_impulses
    change_velocity, change_velocity_adjoint = v.change_velocity, v.change_velocity_adjoint

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def contact_motion(
        nrow: int,
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        jacobian: wp.array2d(dtype=vec3),
        qvel: wp.array2d(dtype=real),
        contact_velocity: wp.array2d(dtype=vec3),
    ):
        w = wp.tid()
        for c in range(nrow):
            v = vec3()
            for k in range(chain_start[c], chain_start[c + 1]):
                v = v + jacobian[w, k] * qvel[w, chain_dof[k]]
            contact_velocity[w, c] = v

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def contact_motion_adjoint(
        nrow: int,
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        jacobian: wp.array2d(dtype=vec3),
        qvel: wp.array2d(dtype=real),
        contact_velocity_bar: wp.array2d(dtype=vec3),
        jacobian_bar: wp.array2d(dtype=vec3),
        qvel_bar: wp.array2d(dtype=real),
    ):
        """Adds to the adjoints of jacobian and qvel."""
        w = wp.tid()
        for c in range(nrow):
            g = contact_velocity_bar[w, c]
            for k in range(chain_start[c], chain_start[c + 1]):
                d = chain_dof[k]
                jacobian_bar[w, k] = jacobian_bar[w, k] + g * qvel[w, d]
                qvel_bar[w, d] = qvel_bar[w, d] + wp.dot(jacobian[w, k], g)

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def accelerate(
        substep: int,
        nv: int,
        nrow: int,
        timestep: wp.float64,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        mass_matrix: wp.array2d(dtype=real),
        bias: wp.array2d(dtype=real),
        jacobian: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
        qvel: wp.array2d(dtype=real),
        lower: wp.array2d(dtype=real),
        impulse_reduced: wp.array2d(dtype=real),
        change: wp.array2d(dtype=real),
        scaled: wp.array2d(dtype=real),
        qvel_next: wp.array2d(dtype=real),
        total: wp.array2d(dtype=vec3),
    ):
        """Also sums the impulses over the substeps of a control step in ``total``."""
        w = wp.tid()
        step = real(timestep)
        sum_impulses(w, nrow, substep, impulse, total)
        for k in range(start[nv]):
            lower[w, k] = mass_matrix[w, k]
        factor(w, nv, start, column, lower)
        for d in range(nv):
            impulse_reduced[w, d] = -step * bias[w, d]
        add_impulses(w, nrow, chain_start, chain_dof, jacobian, impulse, impulse_reduced)
        solve_transposed(w, nv, start, column, lower, impulse_reduced)
        change_velocity(w, nv, start, column, lower, impulse_reduced, qvel, change, scaled, qvel_next)

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def accelerate_adjoint(
        nv: int,
        nrow: int,
        timestep: wp.float64,
        start: wp.array(dtype=int),
        column: wp.array(dtype=int),
        chain_start: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        jacobian: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
        lower: wp.array2d(dtype=real),
        impulse_reduced: wp.array2d(dtype=real),
        change: wp.array2d(dtype=real),
        scaled: wp.array2d(dtype=real),
        qvel_next_bar: wp.array2d(dtype=real),
        change_bar: wp.array2d(dtype=real),
        lower_bar: wp.array2d(dtype=real),
        impulse_bar: wp.array2d(dtype=vec3),
        mass_matrix_bar: wp.array2d(dtype=real),
        bias_bar: wp.array2d(dtype=real),
        jacobian_bar: wp.array2d(dtype=vec3),
        qvel_bar: wp.array2d(dtype=real),
    ):
        """Writes the adjoint of impulse; adds to those of mass_matrix, bias, jacobian and qvel."""
        w = wp.tid()
        step = real(timestep)
        change_velocity_adjoint(
            w, nv, start, column, lower, change, scaled, qvel_next_bar, change_bar, lower_bar, qvel_bar
        )
        solve_transposed_adjoint(w, nv, start, column, lower, impulse_reduced, change_bar, lower_bar)
        for d in range(nv):
            bias_bar[w, d] = bias_bar[w, d] - step * change_bar[w, d]
        for c in range(nrow):
            p = impulse[w, c]
            p_bar = vec3()
            for k in range(chain_start[c], chain_start[c + 1]):
                right_bar = change_bar[w, chain_dof[k]]
                jacobian_bar[w, k] = jacobian_bar[w, k] + p * right_bar
                p_bar = p_bar + jacobian[w, k] * right_bar
            impulse_bar[w, c] = p_bar
        factor_adjoint(w, nv, start, column, lower, lower_bar, mass_matrix_bar)

    return SimpleNamespace(
        contact_motion=contact_motion,
        contact_motion_adjoint=contact_motion_adjoint,
        accelerate=accelerate,
        accelerate_adjoint=accelerate_adjoint,
    )
