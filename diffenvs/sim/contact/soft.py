"""Soft contact: a spring and a damper under every foot, and at every joint limit."""

import functools
from dataclasses import dataclass, fields
from typing import ClassVar

import warp as wp

from diffenvs.sim.contact.law import LawKernels, require_positive
from diffenvs.sim.precision import Precision


@dataclass(frozen=True)
class Soft:
    """Penalty forces of a linear spring and damper with regularised Coulomb friction.

    Schwarke et al. 2025, Eq. 17-18: where the depth d >= 0,
        f_n = stiffness d - damping min(v_n, 0),   f_t = -v_t/|v_t| min(friction_stiffness |v_t|, mu f_n).
    A joint beyond its range by d is pushed back likewise, by limit_stiffness d - limit_damping min(v_n, 0).

    Gradient: exact almost everywhere; one-sided where the foot touches or leaves, where friction saturates, and
    where an approaching foot turns.

    stiffness [N/m], damping [N s/m], friction_stiffness [N s/m]; limit_stiffness [N m/rad | N/m], limit_damping
    [N m s/rad | N s/m]; timestep [s]: the longest simulation step.
    Raises ValueError unless each is above 0; a simulation refuses those that its step is too long for, see
    ``require_stable``.
    """

    stiffness: float = 1.2e4
    damping: float = 30.0
    friction_stiffness: float = 900.0
    limit_stiffness: float = 1000.0
    limit_damping: float = 2.0
    timestep: float = 0.0005

    name: ClassVar[str] = "soft"
    needs_delassus: ClassVar[bool] = False
    sweeps: ClassVar[int] = 0

    def __post_init__(self):
        for field in fields(self):
            require_positive("Soft", field.name, getattr(self, field.name))

    @property
    def max_timestep(self) -> float:
        """[s]: springs of this stiffness need a short step."""
        return self.timestep

    def require_stable(self, timestep: float, mass: float, sliding: float, inertia: float, robot: str) -> None:
        """Raise ValueError where the forces on the robot's feet or joints change too fast for ``timestep`` [s].

        ``mass`` and ``sliding`` [kg]: the least effective mass m of the feet, and that along the ground m_t.
        ``inertia`` [kg m^2 | kg]: that of the limited joints. Feet and limits are judged each by itself.
        With a = h^2 k / m, b = h k_d / m, c = h k_f / m_t and the step v+ = v + h f(q + h/2 v, v) / m:
        a foot that comes down at speed s is at most h s deep in the middle of its first step of contact, and leaves
        that step at (a + b - 1) s. It is thrown up faster than it came unless a + b < 2, which is also enough for it
        to settle (a + 2 b < 4, the edge of stability of the linear step). Friction turns the slip into (1 - c) of
        itself, so that it grows unless c < 2. A joint at its limit obeys what a foot does.
        """
        h = timestep
        feet, joints = "the feet", "the limited joints"
        spring = (2.0 * inertia / h - self.limit_damping) / h
        for name, value, unit, who, light, limit in (
            ("damping", self.damping, "N s/m", feet, mass, 2.0 * mass / h),
            ("stiffness", self.stiffness, "N/m", feet, mass, (2.0 * mass / h - self.damping) / h),
            ("friction_stiffness", self.friction_stiffness, "N s/m", feet, sliding, 2.0 * sliding / h),
            ("limit_damping", self.limit_damping, "N m s/rad", joints, inertia, 2.0 * inertia / h),
            ("limit_stiffness", self.limit_stiffness, "N m/rad", joints, inertia, spring),
        ):
            if value >= limit:
                mass_unit = "kg" if who is feet else "kg m^2"
                raise ValueError(
                    f"Soft: {name} is {value:g} {unit}, expected below {limit:.3g} at a simulation step of {h:g} s for "
                    f"{who} of {robot!r}, which move as lightly as {light:.3g} {mass_unit}; a shorter timestep allows "
                    "more."
                )

    @property
    def coefficients(self) -> tuple[float, ...]:
        """Numbers that the kernels read."""
        feet = float(self.stiffness), float(self.damping), float(self.friction_stiffness)
        return *feet, float(self.limit_stiffness), float(self.limit_damping)

    def kernels(self, precision: Precision) -> LawKernels:
        """The law in Warp."""
        return soft_kernels(precision)


@functools.cache
def soft_kernels(precision: Precision) -> LawKernels:
    """Force at the step's start velocity, times the step; each contact by itself."""
    real, vec2, vec3, mat33 = precision.real, precision.vec2, precision.vec3, precision.mat33

    @wp.func
    def normal_force(d: real, vn: real, first: int, coefficients: wp.array(dtype=real)) -> real:
        return coefficients[first] * d - coefficients[first + 1] * wp.min(vn, real(0.0))

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
        step = real(timestep)
        for j in range(nrow):
            v = contact_velocity[w, j]
            # a joint limit has a spring and a damper of its own, and no tangential velocity
            first = wp.where(j < ncontact, 0, 3)
            fn = normal_force(depth[w, j], v[2], first, coefficients)
            bound = friction[w] * fn
            speed2 = v[0] * v[0] + v[1] * v[1]
            # compared as squares: |v_t| is divided by only where it cannot be zero
            slides = wp.step(bound * bound - coefficients[2] * coefficients[2] * speed2)
            drag = (real(1.0) - slides) * coefficients[2] + slides * bound / wp.sqrt(speed2 + (real(1.0) - slides))
            p = vec3(-drag * v[0], -drag * v[1], fn) * (step * (real(1.0) - wp.step(depth[w, j])))
            impulse[w, j] = p

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
        w = wp.tid()
        step = real(timestep)
        mu_bar = real(0.0)
        for j in range(nrow):
            inside = real(1.0) - wp.step(depth[w, j])
            g = impulse_bar[w, j] * (step * inside)
            v = contact_velocity[w, j]
            # a joint limit has a spring and a damper of its own, and no tangential velocity
            first = wp.where(j < ncontact, 0, 3)
            fn = normal_force(depth[w, j], v[2], first, coefficients)
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
            vn_bar = -coefficients[first + 1] * fn_bar * wp.step(v[2])
            d_bar = coefficients[first] * fn_bar
            v_bar = vec3(common * v[0] - factor * g[0], common * v[1] - factor * g[1], vn_bar)
            depth_bar[w, j] = d_bar
            contact_velocity_bar[w, j] = v_bar
            free_velocity_bar[w, j] = vec3()
        friction_bar[w] = friction_bar[w] + mu_bar

    return LawKernels(impulses, adjoint)
