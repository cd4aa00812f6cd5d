"""Gauss-Seidel sweeps for contact with Coulomb friction, and their adjoint, written by hand.

Schwarke et al. 2025, Alg. 1 and 2: per contact j, with the step size r = 1 / (1 + sum_k det G_jk),
    p_j <- prox(p_j - r (c_j + sum_k w_jk G_jk p_k)),   w_jj = 1,  w_jk = weight(d_k),
from p_j = -G_jj^-1 c_j, and p_j <- weight(d_j) p_j after the last sweep. A law is its weight over the penetration
depth d: a step (hard) or a sigmoid (smoothed). prox clips the tangential part to the friction cone (Eq. 14).

The adjoint runs the sweeps backwards from the stored value of every impulse before every update, so it is the
exact derivative of the finite number of sweeps.
"""

import functools

import warp as wp

from diffenvs.sim.contact.law import LawKernels
from diffenvs.sim.precision import Precision


@functools.cache
def sweep_kernels(precision: Precision, weight: wp.Function, slope: wp.Function, included: wp.Function):
    """``weight(depth, coefficients)``, its derivative ``slope``, and whether a contact takes part at all."""
    real, vec3, mat33 = precision.real, precision.vec3, precision.mat33

    @wp.func
    def project(q: vec3, mu: real) -> vec3:
        if q[2] <= real(0.0):
            return vec3()
        t = wp.sqrt(q[0] * q[0] + q[1] * q[1])
        if t <= mu * q[2]:
            return q
        scale = mu * q[2] / t
        return vec3(scale * q[0], scale * q[1], q[2])

    @wp.func
    def project_adjoint(q: vec3, mu: real, g: vec3) -> vec3:
        if q[2] <= real(0.0):
            return vec3()
        t = wp.sqrt(q[0] * q[0] + q[1] * q[1])
        if t <= mu * q[2]:
            return g
        ex = q[0] / t
        ey = q[1] / t
        along = ex * g[0] + ey * g[1]
        scale = mu * q[2] / t
        return vec3(scale * (g[0] - ex * along), scale * (g[1] - ey * along), g[2] + mu * along)

    @wp.func
    def project_adjoint_friction(q: vec3, mu: real, g: vec3) -> real:
        if q[2] <= real(0.0):
            return real(0.0)
        t = wp.sqrt(q[0] * q[0] + q[1] * q[1])
        if t <= mu * q[2]:
            return real(0.0)
        return q[2] * (q[0] * g[0] + q[1] * g[1]) / t

    @wp.func
    def cofactor(m: mat33) -> mat33:
        a = vec3(m[0, 0], m[0, 1], m[0, 2])
        b = vec3(m[1, 0], m[1, 1], m[1, 2])
        c = vec3(m[2, 0], m[2, 1], m[2, 2])
        return wp.matrix_from_rows(wp.cross(b, c), wp.cross(c, a), wp.cross(a, b))

    @wp.func
    def residual(
        w: int,
        j: int,
        ncontact: int,
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        scale: wp.array2d(dtype=real),
        raw: wp.array2d(dtype=vec3),
    ) -> vec3:
        u = free_velocity[w, j]
        for k in range(ncontact):
            share = wp.where(k == j, real(1.0), scale[w, k])
            u = u + delassus[w, j, k] * (raw[w, k] * share)
        return u

    @wp.kernel(module="unique", enable_backward=False)
    def impulses(
        first: int,
        ncontact: int,
        sweeps: int,
        step: real,
        coefficients: wp.array(dtype=real),
        friction: wp.array(dtype=real),
        depth: wp.array2d(dtype=real),
        contact_velocity: wp.array2d(dtype=vec3),
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        scale: wp.array2d(dtype=real),
        relaxation: wp.array2d(dtype=real),
        history: wp.array2d(dtype=vec3),
        raw: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
    ):
        w = first + wp.tid()
        for j in range(ncontact):
            scale[w, j] = weight(depth[w, j], coefficients)
            raw[w, j] = vec3()
            if included(depth[w, j]):
                total = real(1.0)
                for k in range(ncontact):
                    if included(depth[w, k]):
                        total = total + wp.determinant(delassus[w, j, k])
                relaxation[w, j] = real(1.0) / total
                raw[w, j] = -(wp.inverse(delassus[w, j, j]) * free_velocity[w, j])
        for i in range(sweeps):
            for j in range(ncontact):
                if included(depth[w, j]):
                    p = raw[w, j]
                    history[w, i * ncontact + j] = p
                    u = residual(w, j, ncontact, free_velocity, delassus, scale, raw)
                    raw[w, j] = project(p - u * relaxation[w, j], friction[w])
        for j in range(ncontact):
            impulse[w, j] = raw[w, j] * scale[w, j]

    @wp.kernel(module="unique", enable_backward=False)
    def adjoint(
        first: int,
        ncontact: int,
        sweeps: int,
        step: real,
        coefficients: wp.array(dtype=real),
        friction: wp.array(dtype=real),
        depth: wp.array2d(dtype=real),
        contact_velocity: wp.array2d(dtype=vec3),
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        scale: wp.array2d(dtype=real),
        relaxation: wp.array2d(dtype=real),
        history: wp.array2d(dtype=vec3),
        raw: wp.array2d(dtype=vec3),
        impulse_bar: wp.array2d(dtype=vec3),
        raw_bar: wp.array2d(dtype=vec3),
        scale_bar: wp.array2d(dtype=real),
        relaxation_bar: wp.array2d(dtype=real),
        friction_bar: wp.array(dtype=real),
        depth_bar: wp.array2d(dtype=real),
        contact_velocity_bar: wp.array2d(dtype=vec3),
        free_velocity_bar: wp.array2d(dtype=vec3),
        delassus_bar: wp.array3d(dtype=mat33),
    ):
        """Rolls ``raw`` back to the initial guess while it goes; adds to friction_bar, writes the other adjoints."""
        w = first + wp.tid()
        mu = friction[w]
        mu_bar = real(0.0)
        for j in range(ncontact):
            raw_bar[w, j] = impulse_bar[w, j] * scale[w, j]
            scale_bar[w, j] = wp.dot(impulse_bar[w, j], raw[w, j])
            relaxation_bar[w, j] = real(0.0)
            free_velocity_bar[w, j] = vec3()
            contact_velocity_bar[w, j] = vec3()
            for k in range(ncontact):
                delassus_bar[w, j, k] = mat33()
        for r in range(sweeps * ncontact):
            n = sweeps * ncontact - 1 - r
            j = n % ncontact
            if included(depth[w, j]):
                p = history[w, n]
                raw[w, j] = p
                u = residual(w, j, ncontact, free_velocity, delassus, scale, raw)
                q = p - u * relaxation[w, j]
                g = raw_bar[w, j]
                q_bar = project_adjoint(q, mu, g)
                mu_bar = mu_bar + project_adjoint_friction(q, mu, g)
                u_bar = q_bar * (-relaxation[w, j])
                relaxation_bar[w, j] = relaxation_bar[w, j] - wp.dot(q_bar, u)
                free_velocity_bar[w, j] = free_velocity_bar[w, j] + u_bar
                for k in range(ncontact):
                    back = wp.transpose(delassus[w, j, k]) * u_bar
                    if k == j:
                        delassus_bar[w, j, k] = delassus_bar[w, j, k] + wp.outer(u_bar, raw[w, k])
                        raw_bar[w, k] = q_bar + back
                    else:
                        s = scale[w, k]
                        delassus_bar[w, j, k] = delassus_bar[w, j, k] + wp.outer(u_bar, raw[w, k] * s)
                        raw_bar[w, k] = raw_bar[w, k] + back * s
                        scale_bar[w, k] = scale_bar[w, k] + wp.dot(back, raw[w, k])
        for j in range(ncontact):
            if included(depth[w, j]):
                y = wp.transpose(wp.inverse(delassus[w, j, j])) * raw_bar[w, j]
                free_velocity_bar[w, j] = free_velocity_bar[w, j] - y
                delassus_bar[w, j, j] = delassus_bar[w, j, j] - wp.outer(y, raw[w, j])
                total_bar = -relaxation_bar[w, j] * relaxation[w, j] * relaxation[w, j]
                for k in range(ncontact):
                    if included(depth[w, k]):
                        delassus_bar[w, j, k] = delassus_bar[w, j, k] + cofactor(delassus[w, j, k]) * total_bar
            depth_bar[w, j] = scale_bar[w, j] * slope(depth[w, j], coefficients)
        friction_bar[w] = friction_bar[w] + mu_bar

    return LawKernels(impulses, adjoint)
