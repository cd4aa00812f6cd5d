"""Rotations and symmetric matrices as Warp functions, for one precision.

Quaternions are (w, x, y, z), as in MuJoCo. A symmetric 3x3 matrix is six numbers: xx yy zz xy xz yz.
"""

import functools
from types import SimpleNamespace

import warp as wp

from diffenvs.sim.precision import Precision


@functools.cache
def spatial(precision: Precision) -> SimpleNamespace:
    """Warp functions on the vector types of ``precision``."""
    real, vec3, vec4, vec6, mat33 = (
        precision.real,
        precision.vec3,
        precision.vec4,
        precision.vec6,
        precision.mat33,
    )

    @wp.func
    def quat_mul(a: vec4, b: vec4) -> vec4:
        return vec4(
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        )

    @wp.func
    def quat_exp(r: vec3) -> vec4:
        """Unit quaternion of the rotation vector r [rad]; its series near zero keeps value and derivative."""
        t2 = wp.dot(r, r)
        near = wp.step(t2 - real(1.0e-8))
        far = real(1.0) - near
        t = wp.sqrt(t2 + near)
        k = near * (real(0.5) - t2 / real(48.0)) + far * (wp.sin(real(0.5) * t) / t)
        c = near * (real(1.0) - t2 / real(8.0)) + far * wp.cos(real(0.5) * t)
        return vec4(c, k * r[0], k * r[1], k * r[2])

    @wp.func
    def quat_matrix(q: vec4) -> mat33:
        w = q[0]
        x = q[1]
        y = q[2]
        z = q[3]
        two = real(2.0)
        one = real(1.0)
        return mat33(
            one - two * (y * y + z * z),
            two * (x * y - w * z),
            two * (x * z + w * y),
            two * (x * y + w * z),
            one - two * (x * x + z * z),
            two * (y * z - w * x),
            two * (x * z - w * y),
            two * (y * z + w * x),
            one - two * (x * x + y * y),
        )

    @wp.func
    def axis_angle_matrix(a: vec3, angle: real) -> mat33:
        """Rodrigues' formula for a unit axis."""
        s = wp.sin(angle)
        c = wp.cos(angle)
        d = real(1.0) - c
        return mat33(
            c + d * a[0] * a[0],
            d * a[0] * a[1] - s * a[2],
            d * a[0] * a[2] + s * a[1],
            d * a[0] * a[1] + s * a[2],
            c + d * a[1] * a[1],
            d * a[1] * a[2] - s * a[0],
            d * a[0] * a[2] - s * a[1],
            d * a[1] * a[2] + s * a[0],
            c + d * a[2] * a[2],
        )

    @wp.func
    def sym_mul(i: vec6, v: vec3) -> vec3:
        return vec3(
            i[0] * v[0] + i[3] * v[1] + i[4] * v[2],
            i[3] * v[0] + i[1] * v[1] + i[5] * v[2],
            i[4] * v[0] + i[5] * v[1] + i[2] * v[2],
        )

    @wp.func
    def sym_rotate(r: mat33, i: vec6) -> vec6:
        """R I R^T."""
        full = mat33(i[0], i[3], i[4], i[3], i[1], i[5], i[4], i[5], i[2])
        m = r * full * wp.transpose(r)
        return vec6(m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2])

    @wp.func
    def sym_offset(m: real, c: vec3) -> vec6:
        """Parallel-axis term m (c.c 1 - c c^T)."""
        return vec6(
            m * (c[1] * c[1] + c[2] * c[2]),
            m * (c[0] * c[0] + c[2] * c[2]),
            m * (c[0] * c[0] + c[1] * c[1]),
            -m * c[0] * c[1],
            -m * c[0] * c[2],
            -m * c[1] * c[2],
        )

    return SimpleNamespace(
        quat_mul=quat_mul,
        quat_exp=quat_exp,
        quat_matrix=quat_matrix,
        axis_angle_matrix=axis_angle_matrix,
        sym_mul=sym_mul,
        sym_rotate=sym_rotate,
        sym_offset=sym_offset,
    )
