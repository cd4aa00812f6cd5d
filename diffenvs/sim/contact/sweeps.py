"""Gauss-Seidel sweeps for contact with Coulomb friction and joint limits, and their adjoint, written by hand.

Schwarke et al. 2025, Alg. 1 and 2, with another step size. Per contact j, with u = c_j + sum_k w_jk G_jk p_k, w_jj = 1
and w_jk = weight(d_k), first the normal part, then the tangential one, whose u_t knows of the new normal part:
    p_n <- max(p_n - r_n u_n, 0),   p_t <- clip(p_t - r_t u_t, mu p_n)   (Eq. 14),
from p_j = -R_jj^-1 c_j, and p_j <- weight(d_j) p_j after the last sweep. Joint limits follow the contacts as rows that
have a normal part only, with r_n = 1 / G_jj. A law is its weight over the depth d: a step (hard), a sigmoid (smoothed).

R_jj = G_jj + RIDGE tr(G_jj) 1, r_t = (tr R_tt^4)^(-1/4), a smooth bound, within 19 %, of the inverse of the largest
eigenvalue, and r_n = (R_nn^2 + mu^2 |R_nt|^2)^(-1/2). With 1 / R_nn the sweeps of a slipping contact, whose p_t follows
p_n, would run away where mu |R_nt| > R_nn, and their gradient with them: on that ANYmal does not learn to walk.
These steps serve any unit of mass, and a contact that can move along one or two directions only. The paper's single
step r = 1 / (1 + sum_k det G_jk) does neither: it adds kg^-3 to a pure number, and is 1 where G_jj has no inverse.
The solution of the sweeps is the same.

The adjoint runs the sweeps backwards from the stored value of every impulse before every update, so it is the
exact derivative of the finite number of sweeps.
"""

import functools

import warp as wp

from diffenvs.sim.contact.law import LawKernels
from diffenvs.sim.precision import Precision

# of a block's trace: large enough that rounding along a direction in which a contact cannot move stays small in float32
RIDGE = 1e-5
# stands for a tangential part of zero in a denominator
TINY = 1e-30


@functools.cache
def sweep_kernels(precision: Precision, weight: wp.Function, slope: wp.Function, included: wp.Function):
    """``weight(depth, coefficients)``, its derivative ``slope``, and 1 or 0: whether a contact takes part at all."""
    real, vec2, vec3, vec4, mat33 = precision.real, precision.vec2, precision.vec3, precision.vec4, precision.mat33

    @wp.func
    def ridged(block: mat33) -> mat33:
        """R of the block; zero where the contact cannot move at all."""
        e = real(RIDGE) * (block[0, 0] + block[1, 1] + block[2, 2])
        return block + wp.diag(vec3(e, e, e))

    @wp.func
    def ridged_adjoint(r_bar: mat33) -> mat33:
        e = real(RIDGE) * (r_bar[0, 0] + r_bar[1, 1] + r_bar[2, 2])
        return r_bar + wp.diag(vec3(e, e, e))

    @wp.func
    def reciprocal(x: real) -> real:
        """1 / x; zero at zero."""
        positive = wp.step(-x)
        return positive / (x + real(1.0) - positive)

    @wp.func
    def steps(r: mat33, mu: real) -> vec2:
        """r_t and r_n; zero where the contact cannot move that way: its velocity is zero whatever the impulse."""
        xx = r[0, 0] * r[0, 0] + r[0, 1] * r[0, 1]
        xy = r[0, 1] * (r[0, 0] + r[1, 1])
        yy = r[0, 1] * r[0, 1] + r[1, 1] * r[1, 1]
        largest = wp.sqrt(wp.sqrt(xx * xx + real(2.0) * xy * xy + yy * yy))
        lever2 = mu * mu * (r[0, 2] * r[0, 2] + r[1, 2] * r[1, 2])
        return vec2(reciprocal(largest), reciprocal(wp.sqrt(r[2, 2] * r[2, 2] + lever2)))

    @wp.func
    def steps_adjoint(r: mat33, mu: real, step: vec2, step_bar: vec2) -> mat33:
        """With T = R_tt: d (tr T^4)^(1/4) / dT = T^3 (tr T^4)^(-3/4)."""
        # scaled one factor at a time: fifth powers leave the range of float32
        x = r[0, 0] * step[0]
        y = r[0, 1] * step[0]
        z = r[1, 1] * step[0]
        xx = x * x + y * y
        xy = y * (x + z)
        yy = y * y + z * z
        t = -step_bar[0] * step[0] * step[0]
        txy = t * (x * xy + y * yy)
        # scaled likewise
        n = -step_bar[1] * step[1] * step[1]
        s = n * mu * mu * step[1]
        zero = real(0.0)
        xx_bar = t * (x * xx + y * xy)
        yy_bar = t * (y * xy + z * yy)
        return mat33(xx_bar, txy, s * r[0, 2], txy, yy_bar, s * r[1, 2], zero, zero, n * step[1] * r[2, 2])

    @wp.func
    def steps_adjoint_friction(r: mat33, mu: real, step: vec2, step_bar: vec2) -> real:
        lever2 = (r[0, 2] * step[1]) * (r[0, 2] * step[1]) + (r[1, 2] * step[1]) * (r[1, 2] * step[1])
        return -step_bar[1] * step[1] * mu * lever2

    @wp.func
    def proposal(p: vec3, u: vec3, block: mat33, step: vec2) -> vec3:
        """The impulse before its tangential part is clipped."""
        normal = wp.max(p[2] - step[1] * u[2], real(0.0))
        change = normal - p[2]
        return vec3(
            p[0] - step[0] * (u[0] + block[0, 2] * change),
            p[1] - step[0] * (u[1] + block[1, 2] * change),
            normal,
        )

    @wp.func
    def clip(q: vec3, mu: real) -> vec3:
        t = wp.sqrt(q[0] * q[0] + q[1] * q[1])
        scale = wp.min(real(1.0), mu * q[2] / wp.max(t, real(TINY)))
        return vec3(scale * q[0], scale * q[1], q[2])

    @wp.func
    def clip_adjoint(q: vec3, mu: real, g: vec3) -> vec4:
        """Adjoint of q, zero where it does not press, and of mu as the fourth entry."""
        t = wp.sqrt(q[0] * q[0] + q[1] * q[1])
        inverse = real(1.0) / wp.max(t, real(TINY))
        press = wp.step(-q[2])
        slip = press * wp.step(mu * q[2] - t)
        scale = wp.min(press, mu * q[2] * inverse)
        ex = q[0] * inverse
        ey = q[1] * inverse
        along = slip * (ex * g[0] + ey * g[1])
        return vec4(scale * (g[0] - ex * along), scale * (g[1] - ey * along), press * g[2] + mu * along, q[2] * along)

    @wp.func
    def residual(
        w: int,
        j: int,
        ncontact: int,
        nrow: int,
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        coupling: wp.array3d(dtype=vec3),
        scale: wp.array2d(dtype=real),
        raw: wp.array2d(dtype=vec3),
    ) -> vec3:
        """u of a contact."""
        u = free_velocity[w, j]
        for k in range(ncontact):
            share = wp.where(k == j, real(1.0), scale[w, k])
            u = u + delassus[w, j, k] * (raw[w, k] * share)
        for k in range(ncontact, nrow):
            u = u + coupling[w, k - ncontact, j] * (raw[w, k][2] * scale[w, k])
        return u

    @wp.func
    def limit_residual(
        w: int,
        j: int,
        ncontact: int,
        nrow: int,
        free_velocity: wp.array2d(dtype=vec3),
        coupling: wp.array3d(dtype=vec3),
        stops: wp.array3d(dtype=real),
        scale: wp.array2d(dtype=real),
        raw: wp.array2d(dtype=vec3),
    ) -> real:
        """u of a joint limit, along its one direction."""
        u = free_velocity[w, j][2]
        for k in range(ncontact):
            u = u + wp.dot(coupling[w, j - ncontact, k], raw[w, k]) * scale[w, k]
        for k in range(ncontact, nrow):
            share = wp.where(k == j, real(1.0), scale[w, k])
            u = u + stops[w, j - ncontact, k - ncontact] * (raw[w, k][2] * share)
        return u

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def impulses(
        ncontact: int,
        nrow: int,
        sweeps: int,
        timestep: wp.float64,
        coefficients: wp.array(dtype=real),
        friction: wp.array(dtype=real),
        depth: wp.array2d(dtype=real),
        contact_velocity: wp.array2d(dtype=vec3),
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        coupling: wp.array3d(dtype=vec3),
        stops: wp.array3d(dtype=real),
        scale: wp.array2d(dtype=real),
        relaxation: wp.array2d(dtype=vec2),
        history: wp.array2d(dtype=vec3),
        raw: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
    ):
        w = wp.tid()
        zero = real(0.0)
        for j in range(ncontact):
            scale[w, j] = weight(depth[w, j], coefficients)
            block = ridged(delassus[w, j, j])
            relaxation[w, j] = steps(block, friction[w])
            raw[w, j] = (wp.inverse(block) * free_velocity[w, j]) * (-included(depth[w, j]))
        for j in range(ncontact, nrow):
            scale[w, j] = weight(depth[w, j], coefficients)
            inverse = reciprocal(stops[w, j - ncontact, j - ncontact])
            relaxation[w, j] = vec2(zero, inverse)
            raw[w, j] = vec3(zero, zero, -inverse * free_velocity[w, j][2] * included(depth[w, j]))
        for i in range(sweeps):
            for j in range(ncontact):
                p = raw[w, j]
                history[w, i * nrow + j] = p
                u = residual(w, j, ncontact, nrow, free_velocity, delassus, coupling, scale, raw)
                q = proposal(p, u, delassus[w, j, j], relaxation[w, j])
                raw[w, j] = clip(q, friction[w]) * included(depth[w, j])
            for j in range(ncontact, nrow):
                history[w, i * nrow + j] = raw[w, j]
                along = limit_residual(w, j, ncontact, nrow, free_velocity, coupling, stops, scale, raw)
                pressed = wp.max(raw[w, j][2] - relaxation[w, j][1] * along, zero)
                raw[w, j] = vec3(zero, zero, pressed * included(depth[w, j]))
        for j in range(nrow):
            impulse[w, j] = raw[w, j] * scale[w, j]

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def adjoint(
        ncontact: int,
        nrow: int,
        sweeps: int,
        timestep: wp.float64,
        coefficients: wp.array(dtype=real),
        friction: wp.array(dtype=real),
        depth: wp.array2d(dtype=real),
        contact_velocity: wp.array2d(dtype=vec3),
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        coupling: wp.array3d(dtype=vec3),
        stops: wp.array3d(dtype=real),
        scale: wp.array2d(dtype=real),
        relaxation: wp.array2d(dtype=vec2),
        history: wp.array2d(dtype=vec3),
        raw: wp.array2d(dtype=vec3),
        impulse_bar: wp.array2d(dtype=vec3),
        raw_bar: wp.array2d(dtype=vec3),
        scale_bar: wp.array2d(dtype=real),
        relaxation_bar: wp.array2d(dtype=vec2),
        friction_bar: wp.array(dtype=real),
        depth_bar: wp.array2d(dtype=real),
        contact_velocity_bar: wp.array2d(dtype=vec3),
        free_velocity_bar: wp.array2d(dtype=vec3),
        delassus_bar: wp.array3d(dtype=mat33),
        coupling_bar: wp.array3d(dtype=vec3),
        stops_bar: wp.array3d(dtype=real),
    ):
        """Rolls ``raw`` back to the initial guess while it goes; adds to friction_bar, writes the other adjoints."""
        w = wp.tid()
        mu = friction[w]
        mu_bar = real(0.0)
        zero = real(0.0)
        for j in range(nrow):
            raw_bar[w, j] = impulse_bar[w, j] * scale[w, j]
            scale_bar[w, j] = wp.dot(impulse_bar[w, j], raw[w, j])
            relaxation_bar[w, j] = vec2()
            free_velocity_bar[w, j] = vec3()
            contact_velocity_bar[w, j] = vec3()
        for j in range(ncontact):
            for k in range(ncontact):
                delassus_bar[w, j, k] = mat33()
        for j in range(nrow - ncontact):
            for k in range(ncontact):
                coupling_bar[w, j, k] = vec3()
            for k in range(nrow - ncontact):
                stops_bar[w, j, k] = zero
        for r in range(sweeps):
            first = (sweeps - 1 - r) * nrow
            for back_to in range(nrow - ncontact):
                j = nrow - 1 - back_to
                i = j - ncontact
                raw[w, j] = history[w, first + j]
                along = limit_residual(w, j, ncontact, nrow, free_velocity, coupling, stops, scale, raw)
                inverse = relaxation[w, j][1]
                press = wp.step(inverse * along - raw[w, j][2])
                pressed_bar = press * raw_bar[w, j][2] * included(depth[w, j])
                along_bar = -inverse * pressed_bar
                relaxation_bar[w, j] = relaxation_bar[w, j] - vec2(zero, pressed_bar * along)
                free_velocity_bar[w, j] = free_velocity_bar[w, j] + vec3(zero, zero, along_bar)
                for k in range(ncontact):
                    s = scale[w, k]
                    towards = coupling[w, i, k]
                    coupling_bar[w, i, k] = coupling_bar[w, i, k] + raw[w, k] * (along_bar * s)
                    raw_bar[w, k] = raw_bar[w, k] + towards * (along_bar * s)
                    scale_bar[w, k] = scale_bar[w, k] + wp.dot(towards, raw[w, k]) * along_bar
                for k in range(ncontact, nrow):
                    entry = stops[w, i, k - ncontact]
                    normal = raw[w, k][2]
                    if k == j:
                        stops_bar[w, i, i] = stops_bar[w, i, i] + along_bar * normal
                        raw_bar[w, k] = vec3(zero, zero, pressed_bar + entry * along_bar)
                    else:
                        s = scale[w, k]
                        stops_bar[w, i, k - ncontact] = stops_bar[w, i, k - ncontact] + along_bar * normal * s
                        raw_bar[w, k] = raw_bar[w, k] + vec3(zero, zero, entry * along_bar * s)
                        scale_bar[w, k] = scale_bar[w, k] + entry * along_bar * normal
            for back_to in range(ncontact):
                j = ncontact - 1 - back_to
                p = history[w, first + j]
                raw[w, j] = p
                u = residual(w, j, ncontact, nrow, free_velocity, delassus, coupling, scale, raw)
                own = delassus[w, j, j]
                size = relaxation[w, j]
                q = proposal(p, u, own, size)
                clipped = clip_adjoint(q, mu, raw_bar[w, j] * included(depth[w, j]))
                press = wp.step(-q[2])
                mu_bar = mu_bar + clipped[3]
                change = q[2] - p[2]
                tx_bar = -size[0] * clipped[0]
                ty_bar = -size[0] * clipped[1]
                change_bar = own[0, 2] * tx_bar + own[1, 2] * ty_bar
                # a normal part held at zero depends on nothing, but its change from p does
                n_bar = press * (clipped[2] + change_bar)
                u_bar = vec3(tx_bar, ty_bar, -size[1] * n_bar)
                slide = clipped[0] * (u[0] + own[0, 2] * change) + clipped[1] * (u[1] + own[1, 2] * change)
                relaxation_bar[w, j] = relaxation_bar[w, j] - vec2(slide, n_bar * u[2])
                across = wp.outer(vec3(tx_bar, ty_bar, zero), vec3(zero, zero, change))
                free_velocity_bar[w, j] = free_velocity_bar[w, j] + u_bar
                for k in range(ncontact):
                    back = wp.transpose(delassus[w, j, k]) * u_bar
                    if k == j:
                        delassus_bar[w, j, k] = delassus_bar[w, j, k] + wp.outer(u_bar, raw[w, k]) + across
                        raw_bar[w, k] = vec3(clipped[0], clipped[1], n_bar - change_bar) + back
                    else:
                        s = scale[w, k]
                        delassus_bar[w, j, k] = delassus_bar[w, j, k] + wp.outer(u_bar, raw[w, k] * s)
                        raw_bar[w, k] = raw_bar[w, k] + back * s
                        scale_bar[w, k] = scale_bar[w, k] + wp.dot(back, raw[w, k])
                for k in range(ncontact, nrow):
                    s = scale[w, k]
                    normal = raw[w, k][2]
                    back_normal = wp.dot(coupling[w, k - ncontact, j], u_bar)
                    coupling_bar[w, k - ncontact, j] = coupling_bar[w, k - ncontact, j] + u_bar * (normal * s)
                    raw_bar[w, k] = raw_bar[w, k] + vec3(zero, zero, back_normal * s)
                    scale_bar[w, k] = scale_bar[w, k] + back_normal * normal
        for j in range(ncontact):
            block = ridged(delassus[w, j, j])
            y = (wp.transpose(wp.inverse(block)) * raw_bar[w, j]) * included(depth[w, j])
            free_velocity_bar[w, j] = free_velocity_bar[w, j] - y
            size = relaxation[w, j]
            size_bar = relaxation_bar[w, j]
            mu_bar = mu_bar + steps_adjoint_friction(block, mu, size, size_bar)
            block_bar = steps_adjoint(block, mu, size, size_bar) - wp.outer(y, raw[w, j])
            delassus_bar[w, j, j] = delassus_bar[w, j, j] + ridged_adjoint(block_bar)
            depth_bar[w, j] = scale_bar[w, j] * slope(depth[w, j], coefficients)
        for j in range(ncontact, nrow):
            i = j - ncontact
            inverse = relaxation[w, j][1]
            guess_bar = raw_bar[w, j][2] * included(depth[w, j])
            inverse_bar = relaxation_bar[w, j][1] - guess_bar * free_velocity[w, j][2]
            free_velocity_bar[w, j] = free_velocity_bar[w, j] - vec3(zero, zero, inverse * guess_bar)
            stops_bar[w, i, i] = stops_bar[w, i, i] - inverse * inverse * inverse_bar
            depth_bar[w, j] = scale_bar[w, j] * slope(depth[w, j], coefficients)
        friction_bar[w] = friction_bar[w] + mu_bar

    return LawKernels(impulses, adjoint)
