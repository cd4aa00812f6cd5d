"""Rotations and symmetric matrices, the lowest rung: one kernel, values against MuJoCo, every derivative on its own."""

import mujoco
import numpy as np
import pytest
import warp as wp

from diffenvs.sim.precision import FLOAT64
from diffenvs.sim.spatial import spatial

real, vec3, vec4, vec6, mat33 = FLOAT64.real, FLOAT64.vec3, FLOAT64.vec4, FLOAT64.vec6, FLOAT64.mat33
F = spatial(FLOAT64)
# rotation vector, two quaternions, angle, symmetric matrix, vector, mass
WIDTH = 3 + 4 + 4 + 1 + 6 + 3 + 1
# [rad] of the rotation vector: none, either side of where the series of its exponential ends, all but a turn
ANGLES = [0.0, 1e-12, 1e-6, 0.99e-4, 1.01e-4, 1e-2, 1.0, 3.1, 6.2]


@wp.kernel(module="unique")
def everything(x: wp.array2d(dtype=real), axis: wp.array(dtype=vec3), out: wp.array2d(dtype=real)):
    w = wp.tid()
    r = vec3(x[w, 0], x[w, 1], x[w, 2])
    a = vec4(x[w, 3], x[w, 4], x[w, 5], x[w, 6])
    b = vec4(x[w, 7], x[w, 8], x[w, 9], x[w, 10])
    s = vec6(x[w, 12], x[w, 13], x[w, 14], x[w, 15], x[w, 16], x[w, 17])
    v = vec3(x[w, 18], x[w, 19], x[w, 20])
    e = F.quat_exp(r)
    p = F.quat_mul(a, b)
    m = F.quat_matrix(a)
    t = F.axis_angle_matrix(axis[w], x[w, 11])
    u = F.sym_mul(s, v)
    g = F.sym_rotate(m, s)
    h = F.sym_offset(x[w, 21], v)
    for k in range(4):
        out[w, k] = e[k]
        out[w, 4 + k] = p[k]
    for i in range(3):
        for j in range(3):
            out[w, 8 + 3 * i + j] = m[i, j]
            out[w, 17 + 3 * i + j] = t[i, j]
        out[w, 26 + i] = u[i]
    for k in range(6):
        out[w, 29 + k] = g[k]
        out[w, 35 + k] = h[k]


def rows():
    """Inputs (N, 22) and axes (N, 3): one row per angle of the rotation vector."""
    rng = np.random.default_rng(0)
    x, axis = rng.normal(size=(len(ANGLES), WIDTH)), rng.normal(size=(len(ANGLES), 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    x[:, :3] = np.array(ANGLES)[:, None] * axis
    x[:, 3:7] /= np.linalg.norm(x[:, 3:7], axis=1, keepdims=True)
    return x, axis


def evaluate(x, axis, seed=None):
    """Outputs (N, 41); with ``seed`` (N, 41), the gradient (N, 22) of their inner product with it."""
    given = wp.array(x, dtype=real, device="cpu", requires_grad=True)
    out = wp.zeros((len(x), 41), dtype=real, device="cpu", requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(everything, len(x), inputs=[given, wp.array(axis, dtype=vec3, device="cpu"), out], device="cpu")
    if seed is None:
        return out.numpy().copy()
    tape.backward(grads={out: wp.array(seed, dtype=real, device="cpu")})
    return given.grad.numpy().copy()


def full(s):
    return np.array([[s[0], s[3], s[4]], [s[3], s[1], s[5]], [s[4], s[5], s[2]]])


def test_values_are_mujocos():
    x, axis = rows()
    for row, direction, angle, out in zip(x, axis, ANGLES, evaluate(x, axis), strict=True):
        quat, matrix, product = np.zeros(4), np.zeros(9), np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, direction, angle)
        np.testing.assert_allclose(out[:4], quat, rtol=0, atol=1e-15)
        mujoco.mju_mulQuat(product, row[3:7], row[7:11])
        np.testing.assert_allclose(out[4:8], product, rtol=0, atol=1e-14)
        mujoco.mju_quat2Mat(matrix, row[3:7])
        np.testing.assert_allclose(out[8:17], matrix, rtol=0, atol=1e-14)
        rotation = matrix.reshape(3, 3).copy()
        mujoco.mju_axisAngle2Quat(quat, direction, row[11])
        mujoco.mju_quat2Mat(matrix, quat)
        np.testing.assert_allclose(out[17:26], matrix, rtol=0, atol=1e-14)
        inertia, v = full(row[12:18]), row[18:21]
        np.testing.assert_allclose(out[26:29], inertia @ v, rtol=0, atol=1e-14)
        np.testing.assert_allclose(full(out[29:35]), rotation @ inertia @ rotation.T, rtol=0, atol=1e-13)
        np.testing.assert_allclose(full(out[35:41]), row[21] * (v @ v * np.eye(3) - np.outer(v, v)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("column", range(41))
def test_every_derivative_is_that_of_differences(column):
    """Also at no rotation, and on both sides of where the series of the exponential gives way to its formula."""
    x, axis = rows()
    seed = np.zeros((len(x), 41))
    seed[:, column] = 1.0
    gradient = evaluate(x, axis, seed)
    h = 1e-6
    for k in range(WIDTH):
        step = h * np.eye(WIDTH)[k]
        slope = (evaluate(x + step, axis) - evaluate(x - step, axis))[:, column] / (2.0 * h)
        np.testing.assert_allclose(gradient[:, k], slope, rtol=0, atol=1e-8)
