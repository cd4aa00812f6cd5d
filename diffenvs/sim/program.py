"""A control step as a recorded sequence of kernel launches, forward and backward.

``Program`` owns every buffer that its backward pass reads, indexed by substep; nothing is shared between substeps
but the gradient blocks. It knows nothing of torch: its arrays are filled, it is run, its arrays are read. Whoever does
these three keeps other threads out meanwhile.
"""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import warp as wp

from diffenvs.sim.constraint import constraint_kernels
from diffenvs.sim.contact.law import ContactLaw
from diffenvs.sim.dynamics import dynamics_kernel
from diffenvs.sim.exchange import Port, groups_of
from diffenvs.sim.force import force_kernels
from diffenvs.sim.health import gradient_health_kernel, state_health_kernel
from diffenvs.sim.integrate import integrate_kernel
from diffenvs.sim.kinematics import sphere_kernel
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision
from diffenvs.sim.tables import Tables, parameter_fields
from diffenvs.sim.workspace import Field, Workspace

# [m/s | rad/s] a world beyond it has blown up: what follows would be finite for a while, and meaningless
SPEED_LIMIT = 1e4


class Program:
    """One control step of ``substeps`` simulation steps of ``timestep`` seconds, for ``worlds`` worlds.

    ``inputs``, arrays with a row for each world: ``qpos``, ``qvel``, ``control`` and the physical parameters.
    ``outputs``: ``qpos``, ``qvel``, ``spheres`` (contact sphere centres after the step), ``impulse`` (summed over the
    substeps) and ``health`` (1 where the state is finite and slower than SPEED_LIMIT). ``outputs_bar`` holds the seeds
    of the backward pass, ``inputs_bar`` its results, and ``inputs_bar.health`` (0 where these are finite).

    Every world is one thread of a kernel, or one lane of a thread, and does the same arithmetic in any: world i
    depends neither on the number of worlds nor on the number of CPU threads.
    """

    # While one program is captured, Warp puts whatever else is launched or allocated into the same graph.
    _warp: ClassVar[threading.RLock] = threading.RLock()

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
        with self._warp:
            self.tables = Tables(model, law, precision, device)
            self._allocate()
        groups = groups_of(worlds, precision)
        bounds = np.linspace(0, groups, max(1, min(threads, groups)) + 1).astype(int)
        self._ranges = [(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        self._pool: ThreadPoolExecutor | None = None
        self._graphs: dict[str, list[wp.Graph]] = {}

    def _allocate(self) -> None:
        p, model = self.precision, self.model
        real, vec3, vec6, mat33 = p.real, p.vec3, p.vec6, p.mat33
        nl, nv, nu, nc = model.nlink, model.nv, model.nu, model.ncontact
        npair, nchain = self.tables.npair, self.tables.nchain

        def workspace(fields, slots, gradient=False):
            return Workspace(
                [Field(*f) for f in fields],
                rows=groups_of(self.worlds, p),
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

        state = [Field("qpos", real, (model.nq,)), Field("qvel", real, (model.nv,))]
        port = {"worlds": self.worlds, "precision": p, "device": self.device}
        control, health = Field("control", real, (nu,)), Field("health", real, ())
        parameters = parameter_fields(model, p)
        self._in = Port([*state, control, health, *parameters], **port)
        self._out = Port([*state, health, Field("spheres", vec3, (nc,)), Field("impulse", vec3, (nc,))], **port)
        self.inputs, self.inputs_bar = self._in.rows, self._in.rows_bar
        self.outputs, self.outputs_bar = self._out.rows, self._out.rows_bar
        # of the inputs, with and without parameters but for friction, which comes first among them
        columns = [f.reals for f in (*state, control, health, *parameters)]
        self._columns = {True: sum(columns), False: sum(columns[:5])}
        self._parameters = [f.name for f in parameters]
        self._between = [
            Workspace(state, rows=groups_of(self.worlds, p), slots=1, precision=p, device=self.device, gradient=True)
            for _ in range(self.substeps - 1)
        ]
        self._states = [self._in.groups, *(w.slots[0] for w in self._between), self._out.groups]
        # where the recomputation of a backward pass sums what nobody asks for
        self._impulse_again = workspace([("total", vec3, (nc,))], 1).slots[0].total

    def forward(self) -> None:
        """Run the control step; only the last substep's scratch is kept."""
        self._run("forward", self._record_forward)

    def spheres_only(self) -> None:
        """``spheres`` of the configuration in ``outputs.qpos``, without a step."""
        self._run("spheres", self._record_spheres)

    def backward(self, *, parameters: bool) -> None:
        """Recompute every substep from the inputs, then run the adjoints from the seeds to the inputs.

        Parameters' adjoints (but friction's) are computed only when ``parameters`` is true.
        """
        key = "backward_with_parameters" if parameters else "backward"
        self._run(key, lambda first, last: self._record_backward(first, last, parameters))

    def equations(self) -> tuple[np.ndarray, ...]:
        """Packed mass matrix, bias, packed contact Jacobian and depth of the last substep that ran."""
        names = ("mass_matrix", "bias", "jacobian", "depth")
        return tuple(self._dynamics.read(name)[: self.worlds] for name in names)

    def _run(self, key: str, record) -> None:
        if key not in self._graphs:
            with self._warp:
                self._graphs[key] = [self._capture(record(first, last)) for first, last in self._ranges]
        graphs = self._graphs[key]
        if len(graphs) == 1:
            wp.capture_launch(graphs[0])
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(graphs) - 1, thread_name_prefix="diffenvs")
        pending = [self._pool.submit(wp.capture_launch, graph) for graph in graphs[1:]]
        wp.capture_launch(graphs[0])
        for future in pending:
            future.result()

    def _capture(self, commands: list) -> wp.Graph:
        """The launches as one call."""
        with wp.ScopedCapture(device=self.device, force_module_load=False) as capture:
            for command in commands:
                command.launch()
        return capture.graph

    # recording

    def _record_forward(self, first: int, last: int) -> list:
        commands = self._in.enter(first, last)
        for s in range(self.substeps):
            # scratch of the first substep serves all: nobody reads it after this pass, and it stays in cache
            commands += self._record_substep(first, last, s, 0, self._out.groups.impulse)
        commands += [self._sphere_command(first, last, adjoint=False)]
        model, last_state = self.model, self._out.groups
        health = [first, model.nq, model.nv, SPEED_LIMIT, last_state.qpos, last_state.qvel, last_state.health]
        commands += [self._command(state_health_kernel(self.precision), last - first, health)]
        return commands + self._out.leave(first, last)

    def _record_spheres(self, first: int, last: int) -> list:
        enter = [*self._in.enter(first, last), *self._out.enter(first, last)]
        return [*enter, self._sphere_command(first, last, adjoint=False), *self._out.leave(first, last)]

    def _record_substep(self, first: int, last: int, s: int, slot: int, total: wp.array) -> list:
        x, y = self._dynamics.slots[slot], self.solver.slots[slot]
        n, t = last - first, self.tables
        law = self.law.kernels(self.precision)
        tail = [y.change, y.scaled, self._states[s + 1].qvel, total]
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
                self._states[s].qvel,
            ]
            arguments += [y.lower, y.bias_reduced, y.reduced, y.contact_velocity, y.free_velocity, y.delassus]
            before = self._command(k.condense, n, arguments)
            arguments = [first, s, *t.tree(self.timestep), y.lower, y.bias_reduced, y.reduced, y.impulse]
            after = self._command(k.apply, n, [*arguments, self._states[s].qvel, *tail])
        else:
            k = force_kernels(self.precision)
            arguments = [first, *t.chains(), x.jacobian, self._states[s].qvel, y.contact_velocity]
            before = self._command(k.contact_motion, n, arguments)
            arguments = [first, s, *t.tree(self.timestep), x.mass_matrix, x.bias, x.jacobian, y.impulse]
            after = self._command(k.accelerate, n, [*arguments, self._states[s].qvel, y.lower, y.bias_reduced, *tail])
        return [
            self._command(dynamics_kernel(self.precision), n, self._dynamics_arguments(first, s, slot, False)),
            *(before, impulses, after),
            self._command(integrate_kernel(self.precision), n, [first, *t.integrate(self.timestep), *self._state(s)]),
        ]

    def _record_backward(self, first: int, last: int, parameters: bool) -> list:
        n = last - first
        commands = self._in.enter(first, last) + self._out.enter(first, last, gradient=True)
        for s in range(self.substeps):
            commands += self._record_substep(first, last, s, s, self._impulse_again)
        commands += [self._sphere_command(first, last, adjoint=False)]
        commands += [_Zero(w.gradient_rows(first, last)) for w in (self._in, *self._between, self._pose)]
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
        columns = self._columns[parameters]
        health = [first, columns, self._in.all_bar, self._in.groups_bar.health]
        commands += [self._command(gradient_health_kernel(self.precision), n, health)]
        return commands + self._in.leave(first, last, gradient=True, columns=columns)

    def _record_contact_adjoint(self, first: int, n: int, s: int) -> list:
        """From the adjoint of qvel[s + 1] to those of qvel[s] and of what the dynamics kernel gave."""
        t, x, y, bar = self.tables, self._dynamics.slots[s], self.solver.slots[s], self._solver_bar.slots[0]
        tree, qvel = t.tree(self.timestep), self._states[s].qvel
        next_bar, qvel_bar = self._states[s + 1].qvel.grad, qvel.grad
        given = [x.mass_matrix.grad, x.bias.grad, x.jacobian.grad, qvel_bar]
        law = [first, *self._law_arguments(s), bar.impulse, bar.raw, bar.scale, bar.relaxation]
        law += [
            self._in.groups_bar.friction,
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
            before = [first, *tree, t.common, x.jacobian, qvel, y.lower, y.bias_reduced, y.reduced]
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
            qvel,
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
        now, after = self._states[s], self._states[s + 1]
        return [now.qpos, now.qvel, after.qvel, after.qpos]

    def _law_arguments(self, slot: int) -> list:
        x, y = self._dynamics.slots[slot], self.solver.slots[slot]
        return [
            self.model.ncontact,
            self.law.sweeps,
            self.timestep,
            self.tables.coefficients,
            self._in.groups.friction,
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
        for name in self._parameters:
            value = getattr(self._in.groups, name)
            grad = value.grad if with_gradient else None
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
            *(q.contact_pos, q.contact_radius, self._states[s].qpos, self._states[s].qvel, self._in.groups.control),
            *(x.origin, x.rotation, x.position, x.omega, x.velocity, x.alpha, x.acceleration),
            *(x.subtree_mass, x.subtree_moment, x.subtree_inertia, x.torque, x.force),
            *(x.axis_angular, x.axis_linear, x.momentum_angular, x.momentum_linear),
            *(x.point, x.mass_matrix, x.bias, x.jacobian, x.depth),
        ]

    def _sphere_command(self, first: int, last: int, *, adjoint: bool, parameters: bool = False):
        x, q = self._pose.slots[0], self._parameter_arrays(parameters)
        arguments = [
            *(first, *self.tables.spheres(), q.link_pos, q.contact_pos, self._out.groups.qpos, self._out.groups.qvel),
            *(x.origin, x.rotation, x.position, self._out.groups.spheres),
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
