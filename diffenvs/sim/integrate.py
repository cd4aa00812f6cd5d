"""Configuration update of the Moreau midpoint step: q+ = q (+) h/2 (v + v+) (Schwarke et al. 2025, Alg. 2)."""

import functools

import warp as wp

from diffenvs.sim.kinematics import FREE, HINGE, SLIDE, pose_functions
from diffenvs.sim.precision import Precision
from diffenvs.sim.spatial import spatial


@functools.cache
def integrate_kernel(precision: Precision) -> wp.Kernel:
    """Kernel: positions after the step; angular velocities are in body axes, so the rotation is on the right."""
    real, vec4 = precision.real, precision.vec4
    s = spatial(precision)
    quat_mul, quat_exp = s.quat_mul, s.quat_exp
    f = pose_functions(precision)
    read_vec3, angular_index = f.read_vec3, f.angular_index
    free = wp.constant(FREE)
    slide = wp.constant(SLIDE)
    hinge = wp.constant(HINGE)

    @wp.kernel(module="unique", enable_backward=True, module_options=precision.options)
    def integrate(
        nlink: int,
        half_timestep: wp.float64,
        link_joint: wp.array(dtype=int),
        link_qpos: wp.array(dtype=int),
        link_dof: wp.array(dtype=int),
        qpos: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        qvel_next: wp.array2d(dtype=real),
        qpos_next: wp.array2d(dtype=real),
    ):
        w = wp.tid()
        half = real(half_timestep)
        for i in range(nlink):
            kind = link_joint[i]
            qa = link_qpos[i]
            va = link_dof[i]
            if kind == hinge or kind == slide:
                qpos_next[w, qa] = qpos[w, qa] + half * (qvel[w, va] + qvel_next[w, va])
            else:
                if kind == free:
                    for k in range(3):
                        qpos_next[w, qa + k] = qpos[w, qa + k] + half * (qvel[w, va + k] + qvel_next[w, va + k])
                ra = angular_index(kind, va)
                ka = angular_index(kind, qa)
                q = wp.normalize(vec4(qpos[w, ka], qpos[w, ka + 1], qpos[w, ka + 2], qpos[w, ka + 3]))
                r = half * (read_vec3(qvel, w, ra) + read_vec3(qvel_next, w, ra))
                turned = quat_mul(q, quat_exp(r))
                for k in range(4):
                    qpos_next[w, ka + k] = turned[k]

    return integrate
