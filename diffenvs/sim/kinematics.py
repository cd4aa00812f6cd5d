"""Forward kinematics: from qpos to the pose of every link, and to the centres of the contact spheres.

Poses are in world axes about a moving origin, the position of the first link where that link floats, so that a
robot far from the world's origin loses no digits.
"""

import functools
from types import SimpleNamespace

import warp as wp

from diffenvs.sim.precision import Precision
from diffenvs.sim.spatial import spatial

FREE = 0
BALL = 1
SLIDE = 2
HINGE = 3


@functools.cache
def pose_functions(precision: Precision) -> SimpleNamespace:
    """Warp functions that place one link in a configuration advanced by ``half`` seconds of its velocity."""
    real, vec3, vec4, mat33 = precision.real, precision.vec3, precision.vec4, precision.mat33
    s = spatial(precision)
    quat_mul, quat_exp, quat_matrix, axis_angle_matrix = (
        s.quat_mul,
        s.quat_exp,
        s.quat_matrix,
        s.axis_angle_matrix,
    )
    free = wp.constant(FREE)
    slide = wp.constant(SLIDE)
    hinge = wp.constant(HINGE)

    @wp.func
    def read_vec3(a: wp.array2d(dtype=real), w: int, k: int) -> vec3:
        return vec3(a[w, k], a[w, k + 1], a[w, k + 2])

    @wp.func
    def angular_index(kind: int, k: int) -> int:
        """First index of the rotational part of a free or ball joint whose numbers begin at k."""
        if kind == free:
            return k + 3
        return k

    @wp.func
    def joint_rotation(
        kind: int,
        axis: vec3,
        w: int,
        qa: int,
        va: int,
        half: real,
        qpos: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        qpos0: wp.array(dtype=real),
    ) -> mat33:
        if kind == hinge:
            return axis_angle_matrix(axis, qpos[w, qa] + half * qvel[w, va] - qpos0[qa])
        if kind == slide:
            return mat33(
                real(1.0),
                real(0.0),
                real(0.0),
                real(0.0),
                real(1.0),
                real(0.0),
                real(0.0),
                real(0.0),
                real(1.0),
            )
        k = angular_index(kind, qa)
        q = wp.normalize(vec4(qpos[w, k], qpos[w, k + 1], qpos[w, k + 2], qpos[w, k + 3]))
        return quat_matrix(quat_mul(q, quat_exp(half * read_vec3(qvel, w, angular_index(kind, va)))))

    @wp.func
    def parent_rotation(rotation: wp.array2d(dtype=mat33), w: int, p: int) -> mat33:
        if p >= 0:
            return rotation[w, p]
        return mat33(real(1.0), real(0.0), real(0.0), real(0.0), real(1.0), real(0.0), real(0.0), real(0.0), real(1.0))

    @wp.func
    def parent_position(position: wp.array2d(dtype=vec3), origin: wp.array(dtype=vec3), w: int, p: int) -> vec3:
        if p >= 0:
            return position[w, p]
        return -origin[w]

    @wp.func
    def place_origin(
        kind: int,
        w: int,
        half: real,
        qpos: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        origin: wp.array(dtype=vec3),
    ):
        if kind == free:
            origin[w] = read_vec3(qpos, w, 0) + half * read_vec3(qvel, w, 0)
        else:
            origin[w] = vec3()

    @wp.func
    def place_link(
        i: int,
        p: int,
        kind: int,
        axis: vec3,
        w: int,
        qa: int,
        va: int,
        half: real,
        qpos: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        qpos0: wp.array(dtype=real),
        link_rotation: wp.array(dtype=mat33),
        link_pos: wp.array2d(dtype=vec3),
        origin: wp.array(dtype=vec3),
        rotation: wp.array2d(dtype=mat33),
        position: wp.array2d(dtype=vec3),
    ):
        turn = joint_rotation(kind, axis, w, qa, va, half, qpos, qvel, qpos0)
        if kind == free:
            rotation[w, i] = turn
            position[w, i] = read_vec3(qpos, w, qa) + half * read_vec3(qvel, w, va) - origin[w]
        else:
            frame = parent_rotation(rotation, w, p)
            rest = frame * link_rotation[i]
            anchor = parent_position(position, origin, w, p) + frame * link_pos[w, i]
            rotation[w, i] = rest * turn
            if kind == slide:
                position[w, i] = anchor + (rest * axis) * (qpos[w, qa] + half * qvel[w, va] - qpos0[qa])
            else:
                position[w, i] = anchor

    return SimpleNamespace(
        read_vec3=read_vec3, angular_index=angular_index, place_origin=place_origin, place_link=place_link
    )


@functools.cache
def sphere_kernel(precision: Precision) -> wp.Kernel:
    """Kernel: world positions of the contact spheres' centres, and whether the state is finite."""
    real, vec3, mat33 = precision.real, precision.vec3, precision.mat33
    f = pose_functions(precision)
    place_origin, place_link = f.place_origin, f.place_link

    @wp.kernel(module="unique", enable_backward=True, module_options=precision.options)
    def contact_spheres(
        nlink: int,
        ncontact: int,
        link_parent: wp.array(dtype=int),
        link_joint: wp.array(dtype=int),
        link_qpos: wp.array(dtype=int),
        link_dof: wp.array(dtype=int),
        link_rotation: wp.array(dtype=mat33),
        link_axis: wp.array(dtype=vec3),
        qpos0: wp.array(dtype=real),
        contact_link: wp.array(dtype=int),
        link_pos: wp.array2d(dtype=vec3),
        contact_pos: wp.array2d(dtype=vec3),
        qpos: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        origin: wp.array(dtype=vec3),
        rotation: wp.array2d(dtype=mat33),
        position: wp.array2d(dtype=vec3),
        spheres: wp.array2d(dtype=vec3),
    ):
        w = wp.tid()
        place_origin(link_joint[0], w, real(0.0), qpos, qvel, origin)
        for i in range(nlink):
            place_link(
                i,
                link_parent[i],
                link_joint[i],
                link_axis[i],
                w,
                link_qpos[i],
                link_dof[i],
                real(0.0),
                qpos,
                qvel,
                qpos0,
                link_rotation,
                link_pos,
                origin,
                rotation,
                position,
            )
        for c in range(ncontact):
            b = contact_link[c]
            spheres[w, c] = origin[w] + position[w, b] + rotation[w, b] * contact_pos[w, c]

    return contact_spheres
