"""A control step as a recorded sequence of kernel launches, forward and backward.

``Program`` owns every buffer that its backward pass reads, indexed by substep; nothing is shared between substeps
but the gradient blocks. It knows nothing of torch: its arrays are filled, it is run, its arrays are read. Whoever does
these three keeps other threads out meanwhile.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import warp as wp

from diffenvs.sim.constraint import constraint_kernels
from diffenvs.sim.contact.law import ContactLaw
from diffenvs.sim.dynamics import dynamics_kernel
from diffenvs.sim.force import force_kernels
from diffenvs.sim.integrate import integrate_kernel
from diffenvs.sim.kinematics import sphere_kernel
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision
from diffenvs.sim.tables import Tables, parameter_fields
from diffenvs.sim.workspace import Field, Workspace


class Program:
    """One control step of ``substeps`` simulation steps of ``timestep`` seconds, for ``worlds`` worlds.

    Input arrays: ``qpos[0]``, ``qvel[0]``, ``control``, ``parameters``; outputs: ``qpos[-1]``, ``qvel[-1]``,
    ``spheres`` (contact sphere centres after the step) and ``impulse`` (summed over the substeps). Seeds of the
    backward pass: ``qpos_bar[-1]``, ``qvel_bar[-1]``, ``spheres_bar``; results: ``qpos_bar[0]``, ``qvel_bar[0]``,
    ``control_bar`` and ``parameters_bar``.

    Every world is one thread of a kernel, so that world i depends neither on the number of worlds nor on the
    number of CPU threads.
    """

    def __init__(
        self,
        model: Model,
        law: ContactLaw,
        *,
        worlds: int,
        substeps: int,
        timestep: float,
        precision: Precision,
        device: str = "cpu",
        threads: int = 1,
    ):
        self.model, self.law, self.precision = model, law, precision
        self.worlds, self.substeps, self.timestep, self.device = worlds, substeps, timestep, device
        self.tables = Tables(model, law, precision, device)
        self._allocate()
        bounds = np.linspace(0, worlds, max(1, min(threads, worlds)) + 1).astype(int)
        self._ranges = [(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        self._pool: ThreadPoolExecutor | None = None
        self._recorded: dict[str, list[list]] = {}

    def _allocate(self) -> None:
        p, model, n = self.precision, self.model, self.worlds
        real, vec3, vec6, mat33 = p.real, p.vec3, p.vec6, p.mat33
        nl, nv, nu, nc = model.nlink, model.nv, model.nu, model.ncontact
        npair, nchain = self.tables.npair, self.tables.nchain

        def workspace(fields, slots, gradient=False):
            return Workspace(
                [Field(*f) for f in fields],
                worlds=n,
                slots=slots,
                precision=p,
                device=self.device,
                gradient=gradient,
            )

        pose = [("origin", vec3, ()), ("rotation", mat33, (nl,)), ("position", vec3, (nl,))]
        motion = [(k, vec3, (nl,)) for k in ("omega", "velocity", "alpha", "acceleration")]
        subtree = [
            ("subtree_mass", real, (nl,)),
            ("subtree_moment", vec3, (nl,)),
            ("subtree_inertia", vec6, (nl,)),
        ]
        wrench = [("torque", vec3, (nl,)), ("force", vec3, (nl,))]
        axes = [(k, vec3, (nv,)) for k in ("axis_angular", "axis_linear", "momentum_angular", "momentum_linear")]
        result = [
            ("point", vec3, (nc,)),
            ("mass_matrix", real, (npair,)),
            ("bias", real, (nv,)),
            ("jacobian", vec3, (nchain,)),
            ("depth", real, (nc,)),
        ]
        self._dynamics = workspace(pose + motion + subtree + wrench + axes + result, self.substeps, gradient=True)
        adjoined = [
            ("lower", real, (npair,)),
            ("bias_reduced", real, (nv,)),
            ("reduced", vec3, (nchain,)),
            ("contact_velocity", vec3, (nc,)),
            ("free_velocity", vec3, (nc,)),
            ("delassus", mat33, (nc, nc)),
            ("scale", real, (nc,)),
            ("relaxation", p.vec2, (nc,)),
            ("raw", vec3, (nc,)),
            ("impulse", vec3, (nc,)),
            ("change", real, (nv,)),
        ]
        history = ("history", vec3, (max(1, self.law.sweeps) * nc,))
        self.solver = workspace([*adjoined, history, ("scaled", real, (nv,))], self.substeps)
        self._solver_bar = workspace(adjoined, 1)
        self._pose = workspace(pose, 1, gradient=True)

        def zeros(dtype, *shape):
            return wp.zeros((n, *shape), dtype=dtype, device=self.device)

        def chain(width):
            values = [zeros(real, width) for _ in range(self.substeps + 1)]
            for a in values:
                a.grad = zeros(real, width)
            return values

        self.qpos, self.qvel = chain(model.nq), chain(model.nv)
        self.qpos_bar, self.qvel_bar = [a.grad for a in self.qpos], [a.grad for a in self.qvel]
        self.control = zeros(real, nu)
        self.control.grad = self.control_bar = zeros(real, nu)
        self.spheres = zeros(vec3, nc)
        self.spheres.grad = self.spheres_bar = zeros(vec3, nc)
        self.impulse = zeros(vec3, nc)
        # where the recomputation of a backward pass sums what nobody asks for
        self._impulse_again = zeros(vec3, nc)
        fields = parameter_fields(model, p)
        self.parameters = SimpleNamespace(**{f.name: zeros(f.dtype, *f.shape) for f in fields})
        self.parameters_bar = SimpleNamespace(**{f.name: zeros(f.dtype, *f.shape) for f in fields})

    def forward(self) -> None:
        """Run the control step; only the last substep's scratch is kept."""
        self._run("forward", self._record_forward)

    def spheres_only(self) -> None:
        """``spheres`` of the configuration in ``qpos[-1]``, without a step."""
        self._run("spheres", self._record_spheres)

    def backward(self, *, parameters: bool) -> None:
        """Recompute every substep from the inputs, then run the adjoints from the seeds to the inputs.

        Parameters' adjoints (but friction's) are computed only when ``parameters`` is true.
        """
        key = "backward_with_parameters" if parameters else "backward"
        self._run(key, lambda first, last: self._record_backward(first, last, parameters))

    def equations(self) -> tuple[np.ndarray, ...]:
        """Packed mass matrix, bias, packed contact Jacobian and depth of the last substep that ran."""
        x = self._dynamics.slots[0]
        return x.mass_matrix.numpy(), x.bias.numpy(), x.jacobian.numpy(), x.depth.numpy()

    def _run(self, key: str, record) -> None:
        if key not in self._recorded:
            self._recorded[key] = [record(first, last) for first, last in self._ranges]
        lists = self._recorded[key]
        if len(lists) == 1:
            _launch_all(lists[0])
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(lists) - 1, thread_name_prefix="diffenvs")
        pending = [self._pool.submit(_launch_all, commands) for commands in lists[1:]]
        _launch_all(lists[0])
        for future in pending:
            future.result()

    # recording

    def _record_forward(self, first: int, last: int) -> list:
        commands = []
        for s in range(self.substeps):
            # scratch of the first substep serves all: nobody reads it after this pass, and it stays in cache
            commands += self._record_substep(first, last, s, 0, self.impulse)
        return commands + self._record_spheres(first, last)

    def _record_spheres(self, first: int, last: int) -> list:
        return [self._sphere_command(first, last, adjoint=False)]

    def _record_substep(self, first: int, last: int, s: int, slot: int, total: wp.array) -> list:
        x, y = self._dynamics.slots[slot], self.solver.slots[slot]
        n, t = last - first, self.tables
        law = self.law.kernels(self.precision)
        tail = [y.change, y.scaled, self.qvel[s + 1], total]
        impulses = self._command(law.impulses, n, [first, *self._law_arguments(slot), y.impulse])
        if self.law.needs_delassus:
            k = constraint_kernels(self.precision)
            arguments = [
                first,
                *t.tree(self.timestep),
                t.common,
                x.mass_matrix,
                x.bias,
                x.jacobian,
                self.qvel[s],
            ]
            arguments += [y.lower, y.bias_reduced, y.reduced, y.contact_velocity, y.free_velocity, y.delassus]
            before = self._command(k.condense, n, arguments)
            arguments = [first, s, *t.tree(self.timestep), y.lower, y.bias_reduced, y.reduced, y.impulse]
            after = self._command(k.apply, n, [*arguments, self.qvel[s], *tail])
        else:
            k = force_kernels(self.precision)
            arguments = [first, *t.chains(), x.jacobian, self.qvel[s], y.contact_velocity]
            before = self._command(k.contact_motion, n, arguments)
            arguments = [first, s, *t.tree(self.timestep), x.mass_matrix, x.bias, x.jacobian, y.impulse]
            after = self._command(k.accelerate, n, [*arguments, self.qvel[s], y.lower, y.bias_reduced, *tail])
        return [
            self._command(dynamics_kernel(self.precision), n, self._dynamics_arguments(first, s, slot, False)),
            *(before, impulses, after),
            self._command(integrate_kernel(self.precision), n, [first, *t.integrate(self.timestep), *self._state(s)]),
        ]

    def _record_backward(self, first: int, last: int, parameters: bool) -> list:
        n = last - first
        commands = []
        for s in range(self.substeps):
            commands += self._record_substep(first, last, s, s, self._impulse_again)
        commands += self._record_spheres(first, last)
        cleared = [*self.qpos_bar[:-1], *self.qvel_bar[:-1], self.control_bar]
        cleared += vars(self.parameters_bar).values() if parameters else [self.parameters_bar.friction]
        commands += [_Zero(a[first:last]) for a in cleared if a.size > 0]
        commands += [_Zero(self._pose.gradient_rows(first, last))]
        commands += [self._sphere_command(first, last, adjoint=True, parameters=parameters)]
        for s in reversed(range(self.substeps)):
            integrate = [first, *self.tables.integrate(self.timestep), *self._state(s)]
            dynamics = self._dynamics_arguments(first, s, s, parameters)
            commands += [
                _Zero(self._dynamics.gradient_rows(first, last)),
                self._command(integrate_kernel(self.precision), n, integrate, adjoint=True),
                *self._record_contact_adjoint(first, n, s),
                self._command(dynamics_kernel(self.precision), n, dynamics, adjoint=True),
            ]
        return commands

    def _record_contact_adjoint(self, first: int, n: int, s: int) -> list:
        """From the adjoint of qvel[s + 1] to those of qvel[s] and of what the dynamics kernel gave."""
        t, x, y, bar = self.tables, self._dynamics.slots[s], self.solver.slots[s], self._solver_bar.slots[0]
        tree, next_bar, qvel_bar = t.tree(self.timestep), self.qvel_bar[s + 1], self.qvel_bar[s]
        given = [x.mass_matrix.grad, x.bias.grad, x.jacobian.grad, qvel_bar]
        law = [first, *self._law_arguments(s), bar.impulse, bar.raw, bar.scale, bar.relaxation]
        law += [
            self.parameters_bar.friction,
            x.depth.grad,
            bar.contact_velocity,
            bar.free_velocity,
            bar.delassus,
        ]
        law = self._command(self.law.kernels(self.precision).adjoint, n, law)
        if self.law.needs_delassus:
            k = constraint_kernels(self.precision)
            after = [
                first,
                *tree,
                y.lower,
                y.bias_reduced,
                y.reduced,
                y.impulse,
                y.change,
                y.scaled,
                next_bar,
            ]
            after += [bar.change, bar.lower, bar.bias_reduced, bar.reduced, bar.impulse, qvel_bar]
            before = [first, *tree, t.common, x.jacobian, self.qvel[s], y.lower, y.bias_reduced, y.reduced]
            before += [bar.contact_velocity, bar.free_velocity, bar.delassus]
            before += [bar.lower, bar.bias_reduced, bar.reduced, *given]
            return [
                self._command(k.apply_adjoint, n, after),
                law,
                self._command(k.condense_adjoint, n, before),
            ]
        k = force_kernels(self.precision)
        after = [first, *tree, x.jacobian, y.impulse, y.lower, y.bias_reduced, y.change, y.scaled]
        after += [next_bar, bar.change, bar.lower, bar.impulse, *given]
        before = [
            first,
            *t.chains(),
            x.jacobian,
            self.qvel[s],
            bar.contact_velocity,
            x.jacobian.grad,
            qvel_bar,
        ]
        return [
            self._command(k.accelerate_adjoint, n, after),
            law,
            self._command(k.contact_motion_adjoint, n, before),
        ]

    def _state(self, s: int) -> list:
        return [self.qpos[s], self.qvel[s], self.qvel[s + 1], self.qpos[s + 1]]

    def _law_arguments(self, slot: int) -> list:
        x, y = self._dynamics.slots[slot], self.solver.slots[slot]
        return [
            self.model.ncontact,
            self.law.sweeps,
            self.timestep,
            self.tables.coefficients,
            self.parameters.friction,
            x.depth,
            y.contact_velocity,
            y.free_velocity,
            y.delassus,
            y.scale,
            y.relaxation,
            y.history,
            y.raw,
        ]

    def _parameter_arrays(self, with_gradient: bool) -> SimpleNamespace:
        """The parameter arrays; those handed to an adjoint carry a gradient only where it is wanted."""
        arrays = {}
        for name, value in vars(self.parameters).items():
            grad = getattr(self.parameters_bar, name) if with_gradient else None
            arrays[name] = wp.array(
                ptr=value.ptr,
                dtype=value.dtype,
                shape=value.shape,
                strides=value.strides,
                device=self.device,
                copy=False,
                grad=grad,
            )
        return SimpleNamespace(**arrays)

    def _dynamics_arguments(self, first: int, s: int, slot: int, with_gradient: bool) -> list:
        t, x, q = self.tables, self._dynamics.slots[slot], self._parameter_arrays(with_gradient)
        return [
            first,
            *t.dynamics(self.timestep),
            *(q.mass, q.com, q.inertia, q.link_pos, q.damping, q.stiffness, q.armature, q.kp, q.kd),
            *(q.contact_pos, q.contact_radius, self.qpos[s], self.qvel[s], self.control),
            *(x.origin, x.rotation, x.position, x.omega, x.velocity, x.alpha, x.acceleration),
            *(x.subtree_mass, x.subtree_moment, x.subtree_inertia, x.torque, x.force),
            *(x.axis_angular, x.axis_linear, x.momentum_angular, x.momentum_linear),
            *(x.point, x.mass_matrix, x.bias, x.jacobian, x.depth),
        ]

    def _sphere_command(self, first: int, last: int, *, adjoint: bool, parameters: bool = False):
        x, q = self._pose.slots[0], self._parameter_arrays(parameters)
        arguments = [
            *(first, *self.tables.spheres(), q.link_pos, q.contact_pos, self.qpos[-1], self.qvel[-1]),
            *(x.origin, x.rotation, x.position, self.spheres),
        ]
        return self._command(sphere_kernel(self.precision), last - first, arguments, adjoint=adjoint)

    def _command(self, kernel: wp.Kernel, n: int, arguments: list, *, adjoint: bool = False):
        grads = {}
        if adjoint:
            grads["adj_inputs"] = [a.grad if isinstance(a, wp.array) else None for a in arguments]
        return wp.launch(kernel, dim=n, inputs=arguments, device=self.device, record_cmd=True, adjoint=adjoint, **grads)


class _Zero:
    """Zeroing of an array in the place of a launch."""

    def __init__(self, array: wp.array):
        self._array = array

    def launch(self) -> None:
        self._array.zero_()


def _launch_all(commands: list) -> None:
    for command in commands:
        command.launch()
