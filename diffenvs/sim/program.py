"""A control step, forward and backward, as graphs of kernel launches.

``Program`` owns every buffer that its backward pass reads, indexed by substep; nothing is shared between substeps
but the gradient blocks. It knows nothing of torch: its arrays are filled, it is run, its arrays are read. Whoever does
these three keeps other threads out meanwhile.
"""

import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import ClassVar

import numpy as np
import warp as wp

from diffenvs.sim.announce import announced
from diffenvs.sim.contact.law import ContactLaw
from diffenvs.sim.exchange import Port, groups_of
from diffenvs.sim.launches import Launches
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision
from diffenvs.sim.scratch import Scratch, scratch_fields
from diffenvs.sim.tables import Tables, parameter_fields
from diffenvs.sim.workspace import Field

# [bytes] of scratch that a thread goes through at a time: half of a core's second-level cache
_SCRATCH = 2**19

# [s] kernels from the cache are there before; those to be compiled take longer
_PATIENCE = 1.0


class Program:
    """One control step of ``substeps`` simulation steps of ``timestep`` seconds, for ``worlds`` worlds.

    ``inputs``, arrays with a row for each world: ``qpos``, ``qvel``, ``control`` and the physical parameters.
    ``outputs``: ``qpos``, ``qvel``, ``spheres`` (contact sphere centres after the step), ``impulse`` (of the contacts,
    then of the joint limits, summed over the substeps) and ``health`` (1 where the state is finite and slower than
    SPEED_LIMIT). ``outputs_bar`` holds the seeds of the backward pass, ``inputs_bar`` its results, and
    ``inputs_bar.health`` (0 where these are finite).

    Every world is one thread of a kernel, or one lane of a thread, and does the same arithmetic in any: world i
    depends neither on the number of worlds nor on the number of CPU threads. Each CPU thread takes its worlds part by
    part, as many as fit its cache, through the whole step; with ``in_one_part`` all at once, so that the scratch of
    every world can be looked at afterwards.
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
        in_one_part: bool = False,
    ):
        self.model, self.law, self.precision = model, law, precision
        self.worlds, self.substeps, self.timestep, self.device = worlds, substeps, timestep, device
        with self._warp:
            self.tables = Tables(model, law, precision, device)
            self._allocate_ports()
            groups = groups_of(worlds, precision)
            threads = 1 if in_one_part else max(1, min(threads, groups))
            self._parts = [
                self._divide(int(first), int(last), in_one_part or device != "cpu")
                for first, last in zip(*self._bounds(groups, threads), strict=True)
            ]
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0
        self._graphs: dict[str, list[Callable[[], object]]] = {}

    @property
    def scratch(self) -> Scratch:
        """That of all worlds. Raises ValueError unless ``in_one_part``."""
        if len(self._parts) != 1 or len(self._parts[0]) != 1:
            raise ValueError("the program takes its worlds part by part; make it with in_one_part=True to look inside.")
        return self._parts[0][0].scratch

    def forward(self) -> None:
        """Run the control step; only the last substep's scratch is kept."""
        self._run("forward", lambda part: part.forward())

    def spheres_only(self) -> None:
        """``spheres`` of the configuration in ``outputs.qpos``, without a step."""
        self._run("spheres", lambda part: part.spheres_only())

    def backward(self, *, parameters: bool) -> None:
        """Recompute every substep from the inputs, then run the adjoints from the seeds to the inputs.

        Parameters' adjoints (but friction's) are computed only when ``parameters`` is true.
        """
        key = "backward_with_parameters" if parameters else "backward"
        self._run(key, lambda part: part.backward(parameters))

    def equations(self) -> tuple[np.ndarray, ...]:
        """Of the last substep that ran, world by world: packed mass matrix, bias, packed Jacobian and depth of contacts
        and limits."""
        names = ("mass_matrix", "bias", "jacobian", "depth")
        return tuple(self.scratch.dynamics.read(name)[: self.worlds] for name in names)

    def _allocate_ports(self) -> None:
        p, model = self.precision, self.model
        state = [Field("qpos", p.real, (model.nq,)), Field("qvel", p.real, (model.nv,))]
        control, health = Field("control", p.real, (model.nu,)), Field("health", p.real, ())
        results = [Field("spheres", p.vec3, (model.ncontact,)), Field("impulse", p.vec3, (model.nrow,))]
        options = {"worlds": self.worlds, "precision": p, "device": self.device}
        self._in = Port([*state, control, health, *parameter_fields(model, p)], **options)
        self._out = Port([*state, health, *results], **options)
        self.inputs, self.inputs_bar = self._in.rows, self._in.rows_bar
        self.outputs, self.outputs_bar = self._out.rows, self._out.rows_bar

    @staticmethod
    def _bounds(n: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
        """First and last (exclusive) of n things in each of a number of parts of much the same size."""
        bounds = np.linspace(0, n, parts + 1).astype(int)
        return bounds[:-1], bounds[1:]

    def _divide(self, first: int, last: int, whole: bool) -> list[Launches]:
        """The parts of one thread, which share their scratch."""
        fields = scratch_fields(self.model, self.law, self.tables, self.precision)
        group = fields.reals(self.substeps) * self.precision.lanes * wp.types.type_size_in_bytes(self.precision.real)
        parts = 1 if whole else -(-(last - first) // max(1, _SCRATCH // group))
        starts, ends = self._bounds(last - first, parts)
        common = {"substeps": self.substeps, "precision": self.precision, "device": self.device}
        scratch = Scratch(fields, rows=int((ends - starts).max()), **common)
        given = (self.model, self.law, self.tables, self._in, self._out, scratch)
        return [
            Launches(*given, first=first + int(a), last=first + int(b), timestep=self.timestep, **common)
            for a, b in zip(starts, ends, strict=True)
        ]

    def _run(self, key: str, record) -> None:
        if key not in self._graphs:
            line = f"diffenvs: compiling {self.law.name} contact in {self.precision.name}, once; Warp keeps the result"
            with self._warp, announced(line, after=_PATIENCE):
                self._graphs[key] = [
                    self._capture([command for part in parts for command in record(part)]) for parts in self._parts
                ]
        graphs = self._graphs[key]
        if len(graphs) == 1:
            graphs[0]()
            return
        if self._pool is None or self._pool_process != os.getpid():
            # a process that was forked has none of the threads of the one before it, and would wait for them for ever
            self._pool_process = os.getpid()
            self._pool = ThreadPoolExecutor(len(graphs) - 1, thread_name_prefix="diffenvs")
        pending = [self._pool.submit(graph) for graph in graphs[1:]]
        graphs[0]()
        for future in pending:
            future.result()

    def _capture(self, commands: list) -> Callable[[], object]:
        """The launches as one call: a graph, or one after the other, with a warning, where it cannot be captured."""
        try:
            with ExitStack() as stack:
                if self.device != "cpu":
                    # CUDA captures on any stream but its default one; the graph then runs on its caller's stream
                    stack.enter_context(wp.ScopedStream(wp.Stream(self.device)))
                capture = stack.enter_context(wp.ScopedCapture(device=self.device, force_module_load=False))
                for command in commands:
                    command.launch()
        except RuntimeError as error:
            line = f"{self.device}: Warp captured no graph ({error}); every kernel is launched by itself"
            warnings.warn(line, RuntimeWarning, stacklevel=2)
            return partial(_launch, commands)
        return partial(wp.capture_launch, capture.graph)


def _launch(commands: list) -> None:
    for command in commands:
        command.launch()
