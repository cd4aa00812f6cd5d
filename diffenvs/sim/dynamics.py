"""Equations of motion in generalised coordinates: mass matrix, bias forces, Jacobian of contacts and joint limits.

Everything is expressed in world axes about one origin per world (see ``kinematics``), where the inertia of a
subtree is the plain sum of the inertias of its links. Composite rigid bodies give the mass matrix and recursive
Newton-Euler the bias (Featherstone, Rigid Body Dynamics Algorithms, 2008, ch. 5 and 6).

A joint limit is a contact of one direction: its "normal" velocity is that of its joint towards the middle of the range,
and its depth [rad | m] is how far the joint is beyond the nearer end. The other end would add nothing: hard and soft
laws act on depths above zero, which both ends cannot have at once, and the smoothed law would weight it by
sigmoid(-kappa range / 2) at most, 1e-7 for a range of 6 degrees at kappa 300. In the middle of the range, where the
sides change, the force of the smoothed law jumps by as little.

The adjoint of this kernel is generated. For it to be right, loops are flat, every array slot is written once or
accumulated with ``atomic_add`` before it is read, and no local variable is carried across a loop.
"""

import functools

import warp as wp

from diffenvs.sim.kinematics import BALL, FREE, HINGE, SLIDE, pose_functions
from diffenvs.sim.precision import Precision
from diffenvs.sim.spatial import spatial


@functools.cache
def dynamics_kernel(precision: Precision) -> wp.Kernel:
    """Kernel: state at the middle of the step -> packed mass matrix, bias, Jacobian and depth of rows."""
    real, vec3, vec6, mat33 = precision.real, precision.vec3, precision.vec6, precision.mat33
    s = spatial(precision)
    sym_mul, sym_rotate, sym_offset = s.sym_mul, s.sym_rotate, s.sym_offset
    f = pose_functions(precision)
    read_vec3, angular_index, place_origin, place_link = (
        f.read_vec3,
        f.angular_index,
        f.place_origin,
        f.place_link,
    )
    free = wp.constant(FREE)
    ball = wp.constant(BALL)
    slide = wp.constant(SLIDE)
    hinge = wp.constant(HINGE)

    @wp.func
    def parent_vec3(a: wp.array2d(dtype=vec3), w: int, p: int, otherwise: vec3) -> vec3:
        if p >= 0:
            return a[w, p]
        return otherwise

    @wp.func
    def move(
        w: int,
        i: int,
        wb: vec3,
        ub: vec3,
        jw: vec3,
        ju: vec3,
        aw: vec3,
        au: vec3,
        omega: wp.array2d(dtype=vec3),
        velocity: wp.array2d(dtype=vec3),
        alpha: wp.array2d(dtype=vec3),
        acceleration: wp.array2d(dtype=vec3),
    ):
        """Twist and bias acceleration of link i: base (wb, ub) plus joint twist (jw, ju)."""
        omega[w, i] = wb + jw
        velocity[w, i] = ub + ju
        alpha[w, i] = aw + wp.cross(wb, jw)
        acceleration[w, i] = au + wp.cross(wb, ju) + wp.cross(ub, jw)

    @wp.kernel(module="unique", enable_backward=True, module_options=precision.options)
    def dynamics(
        nlink: int,
        nv: int,
        nu: int,
        npair: int,
        ncontact: int,
        nlimit: int,
        ncontactchain: int,
        nchain: int,
        half_timestep: wp.float64,
        gravity_world: wp.vec3d,
        link_parent: wp.array(dtype=int),
        link_joint: wp.array(dtype=int),
        link_qpos: wp.array(dtype=int),
        link_dof: wp.array(dtype=int),
        link_rotation: wp.array(dtype=mat33),
        link_axis: wp.array(dtype=vec3),
        dof_link: wp.array(dtype=int),
        dof_qpos: wp.array(dtype=int),
        qpos0: wp.array(dtype=real),
        qpos_spring: wp.array(dtype=real),
        actuator_dof: wp.array(dtype=int),
        actuator_gain: wp.array(dtype=real),
        actuator_limit: wp.array(dtype=real),
        pair_row: wp.array(dtype=int),
        pair_col: wp.array(dtype=int),
        contact_link: wp.array(dtype=int),
        limit_dof: wp.array(dtype=int),
        limit_low: wp.array(dtype=real),
        limit_high: wp.array(dtype=real),
        chain_row: wp.array(dtype=int),
        chain_dof: wp.array(dtype=int),
        mass: wp.array2d(dtype=real),
        com: wp.array2d(dtype=vec3),
        inertia: wp.array2d(dtype=vec6),
        link_pos: wp.array2d(dtype=vec3),
        damping: wp.array2d(dtype=real),
        stiffness: wp.array2d(dtype=real),
        armature: wp.array2d(dtype=real),
        kp: wp.array2d(dtype=real),
        kd: wp.array2d(dtype=real),
        contact_pos: wp.array2d(dtype=vec3),
        contact_radius: wp.array2d(dtype=real),
        qpos: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        control: wp.array2d(dtype=real),
        origin: wp.array(dtype=vec3),
        rotation: wp.array2d(dtype=mat33),
        position: wp.array2d(dtype=vec3),
        omega: wp.array2d(dtype=vec3),
        velocity: wp.array2d(dtype=vec3),
        alpha: wp.array2d(dtype=vec3),
        acceleration: wp.array2d(dtype=vec3),
        subtree_mass: wp.array2d(dtype=real),
        subtree_moment: wp.array2d(dtype=vec3),
        subtree_inertia: wp.array2d(dtype=vec6),
        torque: wp.array2d(dtype=vec3),
        force: wp.array2d(dtype=vec3),
        axis_angular: wp.array2d(dtype=vec3),
        axis_linear: wp.array2d(dtype=vec3),
        momentum_angular: wp.array2d(dtype=vec3),
        momentum_linear: wp.array2d(dtype=vec3),
        point: wp.array2d(dtype=vec3),
        mass_matrix: wp.array2d(dtype=real),
        bias: wp.array2d(dtype=real),
        jacobian: wp.array2d(dtype=vec3),
        depth: wp.array2d(dtype=real),
    ):
        w = wp.tid()
        half = real(half_timestep)
        gravity = vec3(real(gravity_world[0]), real(gravity_world[1]), real(gravity_world[2]))
        place_origin(link_joint[0], w, half, qpos, qvel, origin)

        # outward: poses, motion axes, twists, bias accelerations; then the link's own inertia and force
        for i in range(nlink):
            p = link_parent[i]
            kind = link_joint[i]
            va = link_dof[i]
            place_link(
                i,
                p,
                kind,
                link_axis[i],
                w,
                link_qpos[i],
                va,
                half,
                qpos,
                qvel,
                qpos0,
                link_rotation,
                link_pos,
                origin,
                rotation,
                position,
            )
            turned = rotation[w, i]
            x = position[w, i]
            wb = parent_vec3(omega, w, p, vec3())
            ub = parent_vec3(velocity, w, p, vec3())
            aw = parent_vec3(alpha, w, p, vec3())
            au = parent_vec3(acceleration, w, p, -gravity)

            if kind == hinge:
                # a hinge's axis is fixed in the link as well as in its parent, so the turned frame gives it
                axis = turned * link_axis[i]
                arm = wp.cross(x, axis)
                axis_angular[w, va] = axis
                axis_linear[w, va] = arm
                qd = qvel[w, va]
                move(w, i, wb, ub, axis * qd, arm * qd, aw, au, omega, velocity, alpha, acceleration)
            if kind == slide:
                track = turned * link_axis[i]
                axis_angular[w, va] = vec3()
                axis_linear[w, va] = track
                move(
                    w,
                    i,
                    wb,
                    ub,
                    vec3(),
                    track * qvel[w, va],
                    aw,
                    au,
                    omega,
                    velocity,
                    alpha,
                    acceleration,
                )
            if kind == free or kind == ball:
                ra = angular_index(kind, va)
                for k in range(3):
                    column = vec3(turned[0, k], turned[1, k], turned[2, k])
                    axis_angular[w, ra + k] = column
                    axis_linear[w, ra + k] = wp.cross(x, column)
                spin = turned * read_vec3(qvel, w, ra)
                if kind == free:
                    for k in range(3):
                        axis_angular[w, va + k] = vec3()
                        axis_linear[w, va + k] = vec3(
                            wp.where(k == 0, real(1.0), real(0.0)),
                            wp.where(k == 1, real(1.0), real(0.0)),
                            wp.where(k == 2, real(1.0), real(0.0)),
                        )
                    move(
                        w,
                        i,
                        wb,
                        ub + read_vec3(qvel, w, va),
                        spin,
                        wp.cross(x, spin),
                        aw,
                        au,
                        omega,
                        velocity,
                        alpha,
                        acceleration,
                    )
                else:
                    move(
                        w,
                        i,
                        wb,
                        ub,
                        spin,
                        wp.cross(x, spin),
                        aw,
                        au,
                        omega,
                        velocity,
                        alpha,
                        acceleration,
                    )

            m = mass[w, i]
            c = x + turned * com[w, i]
            h = m * c
            about_origin = sym_rotate(turned, inertia[w, i]) + sym_offset(m, c)
            subtree_mass[w, i] = m
            subtree_moment[w, i] = h
            subtree_inertia[w, i] = about_origin
            wi = omega[w, i]
            ui = velocity[w, i]
            ai = alpha[w, i]
            bi = acceleration[w, i]
            angular = sym_mul(about_origin, wi) + wp.cross(h, ui)
            linear = m * ui + wp.cross(wi, h)
            torque[w, i] = sym_mul(about_origin, ai) + wp.cross(h, bi) + wp.cross(wi, angular) + wp.cross(ui, linear)
            force[w, i] = m * bi + wp.cross(ai, h) + wp.cross(wi, linear)

        # inward: sums over subtrees
        for j in range(nlink):
            i = nlink - 1 - j
            p = link_parent[i]
            if p >= 0:
                wp.atomic_add(subtree_mass, w, p, subtree_mass[w, i])
                wp.atomic_add(subtree_moment, w, p, subtree_moment[w, i])
                wp.atomic_add(subtree_inertia, w, p, subtree_inertia[w, i])
                wp.atomic_add(torque, w, p, torque[w, i])
                wp.atomic_add(force, w, p, force[w, i])

        for d in range(nv):
            b = dof_link[d]
            sa = axis_angular[w, d]
            sl = axis_linear[w, d]
            hb = subtree_moment[w, b]
            momentum_angular[w, d] = sym_mul(subtree_inertia[w, b], sa) + wp.cross(hb, sl)
            momentum_linear[w, d] = subtree_mass[w, b] * sl + wp.cross(sa, hb)
            qa = dof_qpos[d]
            passive = damping[w, d] * qvel[w, d]
            bias[w, d] = wp.dot(sa, torque[w, b]) + wp.dot(sl, force[w, b]) + passive
            if qa >= 0:
                stretch = qpos[w, qa] + half * qvel[w, d] - qpos_spring[qa]
                wp.atomic_add(bias, w, d, stiffness[w, d] * stretch)

        # The position part of the PD law is taken at mid-step, like every other position of this integrator:
        # taken at the step's start it would feed energy into an undamped spring.
        for a in range(nu):
            d = actuator_dof[a]
            qa = dof_qpos[d]
            error = control[w, a] - qpos[w, qa] - half * qvel[w, d]
            effort = actuator_gain[a] * control[w, a] + kp[w, a] * error - kd[w, a] * qvel[w, d]
            wp.atomic_add(bias, w, d, -wp.clamp(effort, -actuator_limit[a], actuator_limit[a]))

        # Joint damping acts at the end of the step, as in MuJoCo: (M + h D) (v+ - v) = J^T p - h (b + D v). At its
        # start, h D lambda_max(M^-1) < 2 would bound the step.
        for k in range(npair):
            row = pair_row[k]
            col = pair_col[k]
            entry = wp.dot(axis_angular[w, col], momentum_angular[w, row]) + wp.dot(
                axis_linear[w, col], momentum_linear[w, row]
            )
            if row == col:
                mass_matrix[w, k] = entry + armature[w, row] + real(2.0) * half * damping[w, row]
            else:
                mass_matrix[w, k] = entry

        for c in range(ncontact):
            b = contact_link[c]
            r = contact_radius[w, c]
            centre = position[w, b] + rotation[w, b] * contact_pos[w, c]
            depth[w, c] = r - centre[2] - origin[w][2]
            point[w, c] = centre - vec3(real(0.0), real(0.0), r)

        for k in range(ncontactchain):
            d = chain_dof[k]
            jacobian[w, k] = axis_linear[w, d] + wp.cross(axis_angular[w, d], point[w, chain_row[k]])

        for c in range(nlimit):
            d = limit_dof[c]
            angle = qpos[w, dof_qpos[d]] + half * qvel[w, d]
            depth[w, ncontact + c] = wp.max(limit_low[c] - angle, angle - limit_high[c])

        for k in range(ncontactchain, nchain):
            c = chain_row[k] - ncontact
            d = limit_dof[c]
            angle = qpos[w, dof_qpos[d]] + half * qvel[w, d]
            # 1 below the middle of the range, where the low end is the nearer, and -1 above it
            side = real(1.0) - real(2.0) * wp.step(limit_low[c] + limit_high[c] - angle - angle)
            # the joints further up do not move a joint's angle
            jacobian[w, k] = vec3(real(0.0), real(0.0), wp.where(chain_dof[k] == d, side, real(0.0)))

    return dynamics
