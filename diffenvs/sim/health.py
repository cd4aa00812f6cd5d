"""Which worlds are still well: judged where their numbers are, in one pass."""

import functools

import warp as wp

from diffenvs.sim.precision import Precision


@functools.cache
def state_health_kernel(precision: Precision) -> wp.Kernel:
    """Kernel: 1 for a world whose numbers are finite and whose velocities are below ``limit``; else 0, or NaN."""
    real = precision.real

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def state_health(
        nq: int,
        nv: int,
        limit: wp.float64,
        qpos: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real),
        health: wp.array(dtype=real),
    ):
        w = wp.tid()
        # what is not finite survives a sum, and a product with zero; a maximum might drop it
        total = real(0.0)
        fastest = real(0.0)
        for k in range(nq):
            total = total + qpos[w, k]
        for k in range(nv):
            total = total + qvel[w, k]
            fastest = wp.max(fastest, wp.abs(qvel[w, k]))
        health[w] = wp.step(fastest - real(limit)) + real(0.0) * total

    return state_health


@functools.cache
def gradient_health_kernel(precision: Precision) -> wp.Kernel:
    """Kernel: 0 for a world whose first ``columns`` numbers are finite, NaN for another."""
    real = precision.real

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def gradient_health(columns: int, values: wp.array2d(dtype=real), health: wp.array(dtype=real)):
        w = wp.tid()
        total = real(0.0)
        for k in range(columns):
            total = total + values[w, k]
        health[w] = real(0.0) * total

    return gradient_health
