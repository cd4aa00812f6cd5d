"""The seam between torch and Warp: one autograd Function per control step.

Only the inputs are saved for the backward pass, which recomputes the step and then runs its adjoint. Torch's
version counters therefore catch an in-place edit of a state or parameter between forward and backward, and any
number of rollouts can be alive on one simulator.
"""

import math
import os
import threading
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import warp as wp

from diffenvs.parameters import Parameters
from diffenvs.sim.contact import ContactLaw
from diffenvs.sim.lanes import precision_for
from diffenvs.sim.mobility import lightest
from diffenvs.sim.model import Model
from diffenvs.sim.program import Program
from diffenvs.sim.tables import parameter_defaults

# below this many simulation steps per call, a thread hand-over (30 to 60 us) costs more than it saves
_STEPS_WORTH_A_THREAD = 1024


@dataclass(frozen=True, eq=False)
class Motion:
    """What a control step gives.

    qpos (N, nq), qvel (N, nv): the next state, MuJoCo conventions.
    feet (N, nc, 3) [m]: world positions of the contact spheres' centres.
    finite (N,) bool: worlds whose state is finite and whose velocities are below `diffenvs.sim.launches.SPEED_LIMIT`.
    """

    qpos: torch.Tensor
    qvel: torch.Tensor
    feet: torch.Tensor
    finite: torch.Tensor


class Simulator:
    """A batch of worlds of one model under one contact law.

    control_timestep, timestep [s]: the step of the controller, and the longest simulation step wanted; the law may
    ask for a shorter one. dtype: torch.float32 or torch.float64. threads: CPU threads, by default all cores where
    the batch is large enough. in_one_part: as `Program` has it. Raises ValueError for a bad device, dtype, number of
    worlds or threads, and where the step is too long for the law.
    """

    def __init__(
        self,
        model: Model,
        law: ContactLaw,
        num_worlds: int,
        *,
        control_timestep: float,
        timestep: float,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        threads: int | None = None,
        in_one_part: bool = False,
    ):
        self.device = check_device(device)
        names = {torch.float32: "float32", torch.float64: "float64"}
        if dtype not in names:
            raise ValueError(f"dtype is {dtype!r}, expected torch.float32 or torch.float64.")
        if not isinstance(num_worlds, int) or num_worlds < 1:
            raise ValueError(f"num_worlds is {num_worlds!r}, expected an integer of at least 1.")
        self.model, self.law, self.num_worlds, self.dtype = model, law, num_worlds, dtype
        # the small slack keeps 0.02 / 0.005 at four substeps
        self.substeps = max(1, math.ceil(control_timestep / min(timestep, law.max_timestep) - 1e-9))
        self.timestep = control_timestep / self.substeps
        precision = precision_for(names[dtype], self.device.type)
        if math.isfinite(law.max_timestep):
            # a force, unlike an impulse, has a step beyond which it throws the robot about
            masses = lightest(model, law, precision, str(self.device))
            law.require_stable(self.timestep, *masses, model.name)
        self.program = Program(
            model,
            law,
            worlds=num_worlds,
            substeps=self.substeps,
            timestep=self.timestep,
            precision=precision,
            device=str(self.device),
            threads=_threads(threads, num_worlds * self.substeps, self.device),
            in_one_part=in_one_part,
        )
        p = self.program

        def view(array):
            # memory shared with Warp; torch's own graph never runs through it
            return wp.to_torch(array, requires_grad=False)

        given = ("qpos", "qvel", "control", *Parameters.names())
        found = ("qpos", "qvel", "spheres")
        self._inputs, self._inputs_bar = [[view(getattr(x, n)) for n in given] for x in (p.inputs, p.inputs_bar)]
        self._outputs, self._outputs_bar = [[view(getattr(x, n)) for n in found] for x in (p.outputs, p.outputs_bar)]
        self._impulse, self._health, self._health_bar = (
            view(a) for a in (p.outputs.impulse, p.outputs.health, p.inputs_bar.health)
        )
        self._lock = threading.Lock()
        self.nonfinite_gradients = 0
        self._checked: Parameters | None = None

    def default_parameters(self) -> Parameters:
        """The model's own values in every world."""
        values = parameter_defaults(self.model)
        n = self.num_worlds

        def rows(value):
            t = torch.tensor(value, dtype=self.dtype, device=self.device)
            return t.expand(n, *t.shape).clone()

        return Parameters(*[rows(values[name]) for name in Parameters.names()])

    def simulate(self, qpos: torch.Tensor, qvel: torch.Tensor, control: torch.Tensor, parameters: Parameters) -> Motion:
        """One control step, out of place. Differentiable in every argument.

        qpos (N, nq), qvel (N, nv), control (N, nu). Raises ValueError for a wrong shape or dtype of these or of a
        parameter.
        """
        m, n = self.model, self.num_worlds
        for name, value, width in (("qpos", qpos, m.nq), ("qvel", qvel, m.nv), ("control", control, m.nu)):
            if value.shape != (n, width) or value.dtype != self.dtype:
                raise ValueError(
                    f"simulate: {name} has shape {tuple(value.shape)} and {value.dtype}, "
                    f"expected {(n, width)} and {self.dtype}."
                )
        self._require_parameters(parameters)
        qpos, qvel, feet, finite = _ControlStep.apply(self, qpos, qvel, control, *parameters.tensors())
        return Motion(qpos, qvel, feet, finite)

    def feet(self, qpos: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        """World positions (N, nc, 3) [m] of the contact spheres' centres at ``qpos`` (N, nq); no gradient."""
        self._require_parameters(parameters)
        with torch.no_grad(), self._exclusive():
            for buffer, t in zip(self._inputs[3:], parameters.tensors(), strict=True):
                buffer.copy_(t)
            last_qpos, last_qvel, spheres = self._outputs
            last_qpos.copy_(qpos)
            last_qvel.zero_()
            self.program.spheres_only()
            return spheres.clone()

    def contact_impulses(self) -> torch.Tensor:
        """Impulse (N, nc, 3) [N s] on every contact sphere, world axes, over the last control step; no gradient."""
        return self._impulse[:, : self.model.ncontact].clone()

    def limit_impulses(self) -> torch.Tensor:
        """Impulse (N, nlimit) [N m s | N s] of every joint limit over the last control step, towards the middle of the
        joint's range; no gradient."""
        return self._impulse[:, self.model.ncontact :, 2].clone()

    @contextmanager
    def _exclusive(self):
        """One thread at a time between filling the buffers and reading them; on CUDA, in torch's stream."""
        with self._lock:
            if self.device.type == "cuda":
                with wp.ScopedStream(wp.stream_from_torch(torch.cuda.current_stream(self.device))):
                    yield
            else:
                yield

    def _require_parameters(self, parameters: Parameters) -> None:
        if parameters is self._checked:
            return
        # the copy into the buffers would broadcast one row to all worlds, and round another dtype, in silence
        for name, value, buffer in zip(Parameters.names(), parameters.tensors(), self._inputs[3:], strict=True):
            if value.shape != buffer.shape or value.dtype != buffer.dtype:
                raise ValueError(
                    f"simulate: parameter {name!r} has shape {tuple(value.shape)} and {value.dtype}, "
                    f"expected {tuple(buffer.shape)} and {buffer.dtype}."
                )
        self._checked = parameters

    def _load(self, tensors: Iterable[torch.Tensor]) -> None:
        """State, control and parameters into the program."""
        # always copied: `.data`, NumPy views and fused optimisers change a tensor without telling its version
        for buffer, t in zip(self._inputs, tensors, strict=True):
            buffer.copy_(t.detach())


class _ControlStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, simulator: Simulator, qpos, qvel, control, *parameters):
        ctx.simulator = simulator
        ctx.save_for_backward(qpos, qvel, control, *parameters)
        with simulator._exclusive():
            simulator._load((qpos, qvel, control, *parameters))
            simulator.program.forward()
            # a number that is not finite compares as false
            finite = simulator._health == 1.0
            ctx.mark_non_differentiable(finite)
            return *(buffer.clone() for buffer in simulator._outputs), finite

    @staticmethod
    def backward(ctx, *seeds):
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the physics has first derivatives only, but create_graph=True asks for a graph of the gradient."
            )
        s: Simulator = ctx.simulator
        # state, control and friction come with every backward pass, the other parameters at a price
        wanted = (True, True, True, *ctx.needs_input_grad[4:])
        with s._exclusive():
            s._load(ctx.saved_tensors)
            for buffer, seed in zip(s._outputs_bar, seeds[:3], strict=True):
                buffer.copy_(seed)
            s.program.backward(parameters=any(wanted[4:]))
            grads = [bar.clone() if want else None for bar, want in zip(s._inputs_bar, wanted, strict=True)]
            good = s._health_bar == 0.0
        if not bool(good.all()):
            # such a world says nothing useful; it is counted, and its rows are zero in place of NaN
            s.nonfinite_gradients += int((~good).sum())
            grads = [g if g is None else _rows_where(good, g) for g in grads]
        return None, *grads


def _rows_where(mask: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return torch.where(mask.view(-1, *[1] * (value.dim() - 1)), value, torch.zeros_like(value))


def check_device(device: str | torch.device) -> torch.device:
    """The torch device named; raises ValueError where this machine does not have it."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise ValueError(f"device is {device!r}, expected 'cpu' or 'cuda'.")
    if found.type == "cuda" and not (torch.cuda.is_available() and wp.is_cuda_available()):
        raise ValueError(f"device is {device!r}, but no CUDA GPU is available here; use device='cpu'.")
    return found


def _threads(threads: int | None, steps: int, device: torch.device) -> int:
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads is {threads!r}, expected an integer of at least 1, or None for all cores.")
    if device.type != "cpu":
        return 1
    if threads is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cores if steps >= _STEPS_WORTH_A_THREAD else 1
    return threads
