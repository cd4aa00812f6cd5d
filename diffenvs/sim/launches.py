"""The kernel launches of a control step, forward and backward, for one part of a program's worlds."""

from types import SimpleNamespace

import warp as wp

from diffenvs.sim.constraint import constraint_kernels
from diffenvs.sim.contact.law import ContactLaw
from diffenvs.sim.dynamics import dynamics_kernel
from diffenvs.sim.exchange import Port
from diffenvs.sim.force import force_kernels
from diffenvs.sim.health import gradient_health_kernel, state_health_kernel
from diffenvs.sim.integrate import integrate_kernel
from diffenvs.sim.kinematics import sphere_kernel
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision
from diffenvs.sim.scratch import Scratch
from diffenvs.sim.tables import Tables, parameter_fields

# [m/s | rad/s] a world beyond it has blown up: what follows would be finite for a while, and meaningless
SPEED_LIMIT = 1e4


class Launches:
    """Lists of recorded launches for groups ``first`` to ``last`` of the two ports, with scratch for as many."""

    def __init__(
        self,
        model: Model,
        law: ContactLaw,
        tables: Tables,
        inputs: Port,
        outputs: Port,
        scratch: Scratch,
        *,
        first: int,
        last: int,
        substeps: int,
        timestep: float,
        precision: Precision,
        device: str,
    ):
        self.model, self.law, self.tables, self.scratch = model, law, tables, scratch
        self.substeps, self.timestep, self.precision, self.device = substeps, timestep, precision, device
        self._first, self._last, self._n = first, last, last - first
        self._in, self._out = inputs, outputs
        self._inputs, self._outputs = inputs.part(first, last), outputs.part(first, last)
        self._states = [self._inputs, *(w.slots[0] for w in scratch.between), self._outputs]
        self._parameters = [f.name for f in parameter_fields(model, precision)]

    def forward(self) -> list:
        """From the inputs to the outputs; only the last substep's scratch is kept."""
        commands = self._in.enter(self._first, self._last)
        for s in range(self.substeps):
            # scratch of the first substep serves all: nobody reads it after this pass, and it stays in cache
            commands += self.substep(s, 0, self._outputs.impulse)
        model, last = self.model, self._outputs
        health = [model.nq, model.nv, SPEED_LIMIT, last.qpos, last.qvel, last.health]
        commands += [self._spheres(), self._command(state_health_kernel(self.precision), health)]
        return commands + self._out.leave(self._first, self._last)

    def spheres_only(self) -> list:
        """Spheres of the configuration in the outputs."""
        enter = self._in.enter(self._first, self._last) + self._out.enter(self._first, self._last)
        return [*enter, self._spheres(), *self._out.leave(self._first, self._last)]

    def backward(self, parameters: bool) -> list:
        """From the seeds in the outputs' gradient to the inputs' gradient, through a recomputation of the step."""
        first, last, scratch = self._first, self._last, self.scratch
        commands = self._in.enter(first, last) + self._out.enter(first, last, gradient=True)
        for s in range(self.substeps):
            commands += self.substep(s, s, scratch.total)
        commands += [self._spheres(), _Zero(self._in.gradient_rows(first, last))]
        commands += [_Zero(w.gradient_rows(0, self._n)) for w in (*scratch.between, scratch.pose)]
        commands += [self._spheres(adjoint=True, parameters=parameters)]
        for s in reversed(range(self.substeps)):
            integrate = [*self.tables.integrate(self.timestep), *self._state(s)]
            commands += [
                _Zero(scratch.dynamics.gradient_rows(0, self._n)),
                self._command(integrate_kernel(self.precision), integrate, adjoint=True),
                *self._contact_adjoint(s),
                self._command(dynamics_kernel(self.precision), self._dynamics(s, s, parameters), adjoint=True),
            ]
        columns = self._in.columns_to(self._parameters[-1] if parameters else "friction")
        values, health = self._in.gradient_part(first, last)
        commands += [self._command(gradient_health_kernel(self.precision), [columns, values, health])]
        return commands + self._in.leave(first, last, gradient=True, columns=columns)

    def substep(self, s: int, slot: int, total: wp.array) -> list:
        """Substep s with the scratch of a slot; impulses are summed in ``total``."""
        x, y, t = self.scratch.dynamics.slots[slot], self.scratch.solver.slots[slot], self.tables
        law = self.law.kernels(self.precision)
        qvel, tree = self._states[s].qvel, t.tree(self.timestep)
        tail = [y.change, y.scaled, self._states[s + 1].qvel, total]
        impulses = self._command(law.impulses, [*self._law(slot), y.impulse])
        if self.law.needs_delassus:
            k = constraint_kernels(self.precision)
            arguments = [
                self.model.ncontact,
                *tree,
                t.common,
                x.mass_matrix,
                x.bias,
                x.jacobian,
                qvel,
                y.lower,
                y.bias_reduced,
            ]
            arguments += [y.reduced, y.contact_velocity, y.free_velocity]
            arguments += [y.delassus, y.coupling, y.stops]
            before = self._command(k.condense, arguments)
            arguments = [s, *tree, y.lower, y.bias_reduced, y.reduced, y.impulse, qvel, *tail]
            after = self._command(k.apply, arguments)
        else:
            k = force_kernels(self.precision)
            before = self._command(k.contact_motion, [*t.chains(), x.jacobian, qvel, y.contact_velocity])
            arguments = [s, *tree, x.mass_matrix, x.bias, x.jacobian, y.impulse, qvel, y.lower, y.bias_reduced]
            after = self._command(k.accelerate, [*arguments, *tail])
        integrate = [*t.integrate(self.timestep), *self._state(s)]
        return [
            self._command(dynamics_kernel(self.precision), self._dynamics(s, slot, False)),
            *(before, impulses, after),
            self._command(integrate_kernel(self.precision), integrate),
        ]

    def _contact_adjoint(self, s: int) -> list:
        """From the adjoint of qvel after substep s to those of qvel before and of what the dynamics kernel gave."""
        scratch, t = self.scratch, self.tables
        x, y, bar = scratch.dynamics.slots[s], scratch.solver.slots[s], scratch.solver_bar.slots[0]
        tree, qvel = t.tree(self.timestep), self._states[s].qvel
        next_bar, qvel_bar = self._states[s + 1].qvel.grad, qvel.grad
        given = [x.mass_matrix.grad, x.bias.grad, x.jacobian.grad, qvel_bar]
        law = [*self._law(s), bar.impulse, bar.raw, bar.scale, bar.relaxation, self._inputs.friction.grad]
        law += [x.depth.grad, bar.contact_velocity, bar.free_velocity]
        law += [bar.delassus, bar.coupling, bar.stops]
        law = self._command(self.law.kernels(self.precision).adjoint, law)
        if self.law.needs_delassus:
            k = constraint_kernels(self.precision)
            after = [*tree, y.lower, y.bias_reduced, y.reduced, y.impulse, y.change, y.scaled, next_bar]
            after += [bar.change, bar.lower, bar.bias_reduced, bar.reduced, bar.impulse, qvel_bar]
            before = [self.model.ncontact, *tree, t.common, x.jacobian, qvel, y.lower, y.bias_reduced, y.reduced]
            before += [bar.contact_velocity, bar.free_velocity]
            before += [bar.delassus, bar.coupling, bar.stops]
            before += [bar.lower, bar.bias_reduced, bar.reduced, *given]
            return [self._command(k.apply_adjoint, after), law, self._command(k.condense_adjoint, before)]
        k = force_kernels(self.precision)
        after = [*tree, x.jacobian, y.impulse, y.lower, y.bias_reduced, y.change, y.scaled]
        after += [next_bar, bar.change, bar.lower, bar.impulse, *given]
        before = [*t.chains(), x.jacobian, qvel, bar.contact_velocity, x.jacobian.grad, qvel_bar]
        return [self._command(k.accelerate_adjoint, after), law, self._command(k.contact_motion_adjoint, before)]

    def _state(self, s: int) -> list:
        now, after = self._states[s], self._states[s + 1]
        return [now.qpos, now.qvel, after.qvel, after.qpos]

    def _law(self, slot: int) -> list:
        x, y = self.scratch.dynamics.slots[slot], self.scratch.solver.slots[slot]
        sizes = (self.model.ncontact, self.model.nrow, self.law.sweeps, self.timestep)
        return [
            *(*sizes, self.tables.coefficients, self._inputs.friction),
            *(x.depth, y.contact_velocity, y.free_velocity, y.delassus, y.coupling, y.stops),
            *(y.scale, y.relaxation, y.history, y.raw),
        ]

    def _parameter_arrays(self, with_gradient: bool) -> SimpleNamespace:
        """The parameter arrays; those handed to an adjoint carry a gradient only where it is wanted."""
        arrays = {}
        for name in self._parameters:
            value = getattr(self._inputs, name)
            arrays[name] = wp.array(
                ptr=value.ptr,
                dtype=value.dtype,
                shape=value.shape,
                strides=value.strides,
                device=self.device,
                copy=False,
                grad=value.grad if with_gradient else None,
            )
        return SimpleNamespace(**arrays)

    def _dynamics(self, s: int, slot: int, with_gradient: bool) -> list:
        t, x, q = self.tables, self.scratch.dynamics.slots[slot], self._parameter_arrays(with_gradient)
        return [
            *t.dynamics(self.timestep),
            *(q.mass, q.com, q.inertia, q.link_pos, q.damping, q.stiffness, q.armature, q.kp, q.kd),
            *(q.contact_pos, q.contact_radius, self._states[s].qpos, self._states[s].qvel, self._inputs.control),
            *(x.origin, x.rotation, x.position, x.omega, x.velocity, x.alpha, x.acceleration),
            *(x.subtree_mass, x.subtree_moment, x.subtree_inertia, x.torque, x.force),
            *(x.axis_angular, x.axis_linear, x.momentum_angular, x.momentum_linear),
            *(x.point, x.mass_matrix, x.bias, x.jacobian, x.depth),
        ]

    def _spheres(self, *, adjoint: bool = False, parameters: bool = False):
        x, q, after = self.scratch.pose.slots[0], self._parameter_arrays(parameters), self._outputs
        arguments = [
            *(*self.tables.spheres(), q.link_pos, q.contact_pos, after.qpos, after.qvel),
            *(x.origin, x.rotation, x.position, after.spheres),
        ]
        return self._command(sphere_kernel(self.precision), arguments, adjoint=adjoint)

    def _command(self, kernel: wp.Kernel, arguments: list, *, adjoint: bool = False):
        options = {"dim": self._n, "inputs": arguments, "device": self.device, "record_cmd": True, "adjoint": adjoint}
        if adjoint:
            options["adj_inputs"] = [a.grad if isinstance(a, wp.array) else None for a in arguments]
        return wp.launch(kernel, **options)


class _Zero:
    """Zeroing of an array in the place of a launch."""

    def __init__(self, array: wp.array):
        self._array = array

    def launch(self) -> None:
        self._array.zero_()
