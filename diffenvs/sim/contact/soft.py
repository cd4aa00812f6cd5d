"""Soft contact: a spring and a damper under every foot."""

import functools
from dataclasses import dataclass
from typing import ClassVar

import warp as wp

from diffenvs.sim.contact.law import LawKernels, require_positive
from diffenvs.sim.precision import Precision


@dataclass(frozen=True)
class Soft:
    """Penalty forces of a linear spring and damper with regularised Coulomb friction.

    Schwarke et al. 2025, Eq. 17-18: where the depth d >= 0,
        f_n = stiffness d - damping min(v_n, 0),   f_t = -v_t/|v_t| min(friction_stiffness |v_t|, mu f_n).

    Gradient: exact almost everywhere; one-sided where the foot touches or leaves, where friction saturates, and
    where an approaching foot turns.

    stiffness [N/m], damping [N s/m], friction_stiffness [N s/m], timestep [s]: the longest simulation step.
    Raises ValueError unless each is above 0.
    """

    stiffness: float = 1.2e4
    damping: float = 30.0
    friction_stiffness: float = 900.0
    timestep: float = 0.0005

    name: ClassVar[str] = "soft"
    needs_delassus: ClassVar[bool] = False
    sweeps: ClassVar[int] = 0

    def __post_init__(self):
        for name in ("stiffness", "damping", "friction_stiffness", "timestep"):
            require_positive("Soft", name, getattr(self, name))

    @property
    def max_timestep(self) -> float:
        """[s]: springs of this stiffness need a short step."""
        return self.timestep

    @property
    def coefficients(self) -> tuple[float, ...]:
        """Numbers that the kernels read."""
        return (float(self.stiffness), float(self.damping), float(self.friction_stiffness))

    def kernels(self, precision: Precision) -> LawKernels:
        """The law in Warp."""
        return soft_kernels(precision)


@functools.cache
def soft_kernels(precision: Precision) -> LawKernels:
    """Force at the step's start velocity, times the step; each contact by itself."""
    real, vec2, vec3, mat33 = precision.real, precision.vec2, precision.vec3, precision.mat33

    @wp.func
    def normal_force(d: real, vn: real, coefficients: wp.array(dtype=real)) -> real:
        return coefficients[0] * d - coefficients[1] * wp.min(vn, real(0.0))

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def impulses(
        first: int,
        ncontact: int,
        sweeps: int,
        timestep: wp.float64,
        coefficients: wp.array(dtype=real),
        friction: wp.array(dtype=real),
        depth: wp.array2d(dtype=real),
        contact_velocity: wp.array2d(dtype=vec3),
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
        scale: wp.array2d(dtype=real),
        relaxation: wp.array2d(dtype=vec2),
        history: wp.array2d(dtype=vec3),
        raw: wp.array2d(dtype=vec3),
        impulse: wp.array2d(dtype=vec3),
    ):
        w = first + wp.tid()
        step = real(timestep)
        for j in range(ncontact):
            v = contact_velocity[w, j]
            fn = normal_force(depth[w, j], v[2], coefficients)
            bound = friction[w] * fn
            speed2 = v[0] * v[0] + v[1] * v[1]
            # compared as squares: |v_t| is divided by only where it cannot be zero
            slides = wp.step(bound * bound - coefficients[2] * coefficients[2] * speed2)
            drag = (real(1.0) - slides) * coefficients[2] + slides * bound / wp.sqrt(speed2 + (real(1.0) - slides))
            p = vec3(-drag * v[0], -drag * v[1], fn) * (step * (real(1.0) - wp.step(depth[w, j])))
            impulse[w, j] = p

    @wp.kernel(module="unique", enable_backward=False, module_options=precision.options)
    def adjoint(
        first: int,
        ncontact: int,
        sweeps: int,
        timestep: wp.float64,
        coefficients: wp.array(dtype=real),
        friction: wp.array(dtype=real),
        depth: wp.array2d(dtype=real),
        contact_velocity: wp.array2d(dtype=vec3),
        free_velocity: wp.array2d(dtype=vec3),
        delassus: wp.array3d(dtype=mat33),
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
    ):
        w = first + wp.tid()
        step = real(timestep)
        mu_bar = real(0.0)
        for j in range(ncontact):
            inside = real(1.0) - wp.step(depth[w, j])
            g = impulse_bar[w, j] * (step * inside)
            v = contact_velocity[w, j]
            fn = normal_force(depth[w, j], v[2], coefficients)
            mu = friction[w]
            bound = mu * fn
            drag = coefficients[2]
            speed2 = v[0] * v[0] + v[1] * v[1]
            along = v[0] * g[0] + v[1] * g[1]
            slides = wp.step(bound * bound - drag * drag * speed2)
            sticks = real(1.0) - slides
            inverse = slides / wp.sqrt(speed2 + sticks)
            ratio = bound * inverse
            common = ratio * along * inverse * inverse
            factor = sticks * drag + ratio
            fn_bar = g[2] - mu * along * inverse
            mu_bar = mu_bar - fn * along * inverse
            vn_bar = -coefficients[1] * fn_bar * wp.step(v[2])
            d_bar = coefficients[0] * fn_bar
            v_bar = vec3(common * v[0] - factor * g[0], common * v[1] - factor * g[1], vn_bar)
            depth_bar[w, j] = d_bar
            contact_velocity_bar[w, j] = v_bar
            free_velocity_bar[w, j] = vec3()
        friction_bar[w] = friction_bar[w] + mu_bar

    return LawKernels(impulses, adjoint)
