"""MJX: MuJoCo in JAX, a batch by `vmap`, a rollout by `scan`, its gradient by `jax.grad`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import mujoco
import numpy as np

from leaderboard.benchmark.contestant import Course, Missing, Prepared
from leaderboard.benchmark.mujoco_c import Settled, normal_force, settle
from leaderboard.benchmark.patience import wait_for
from leaderboard.benchmark.scene import Scene, window
from leaderboard.benchmark.standing import Evidence, require_standing

# With a pool of as many threads as there are cores, two, XLA's reverse pass waited for itself without end (jax 0.10.2).
POOL_THREADS = 8


@dataclass(frozen=True)
class Solver:
    """MuJoCo's solver settings, and whether JAX can differentiate through it in reverse.

    More than one iteration is a `while` loop in MJX, which has no reverse derivative. cone, impratio: the scene's own
    are elliptic and 100; the other setting is the one that MJX's own robots train with.
    """

    iterations: int
    line_search: int
    cone: mujoco.mjtCone
    impratio: float
    reverse: bool

    def apply(self, model: mujoco.MjModel) -> mujoco.MjModel:
        """Set them in the model."""
        model.opt.iterations, model.opt.ls_iterations = self.iterations, self.line_search
        model.opt.cone, model.opt.impratio = self.cone, self.impratio
        return model

    @property
    def words(self) -> str:
        """For a table."""
        cone = mujoco.mjtCone(self.cone).name.removeprefix("mjCONE_").lower()
        return f"{self.iterations}/{self.line_search} solver iterations, {cone} cone"


# what MJX's own robots train with; the scene's cone with as few iterations; MuJoCo's default
TRAINED = Solver(1, 5, mujoco.mjtCone.mjCONE_PYRAMIDAL, 1.0, reverse=True)
ONE_ITERATION = Solver(1, 50, mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0, reverse=True)
DEFAULT = Solver(100, 50, mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0, reverse=False)


@dataclass(frozen=True)
class Mjx:
    """One setting of MJX's solver. JAX shares the work out over its pool itself."""

    worlds: int
    solver: Solver
    peer: ClassVar[str] = "mjx"
    precision: ClassVar[str] = "float32"
    threads: ClassVar[None] = None

    @property
    def label(self) -> str:
        return f"MJX, {self.solver.words}"

    def prepare(self, scene: Scene) -> Prepared:
        """Forward, and forward + backward where reverse differentiation is possible."""
        # read when JAX makes its CPU client; a value that the caller has set stays
        os.environ.setdefault("NPROC", str(POOL_THREADS))
        try:
            import jax
            from mujoco import mjx
        except ImportError as error:
            raise Missing(f"jax and mujoco-mjx: {error}") from error
        # settled by MuJoCo with enough iterations; what MJX makes of that state is what is judged
        enough = replace(self.solver, iterations=100, line_search=50)
        settled = settle(scene, enough.apply(scene.mujoco_model()))
        model = self.solver.apply(scene.mujoco_model())
        roll, loss = _programs(jax, mjx, model, settled)
        steps = window(self.worlds)
        targets = jax.numpy.asarray(scene.targets(self.worlds, steps), dtype=np.float32)
        forward, compile_forward = _compiled(jax.jit(roll), targets)
        work = self.worlds * steps
        standing = np.broadcast_to(scene.home_targets, targets.shape)
        last, _ = forward(jax.numpy.asarray(standing, dtype=np.float32))
        load = _load(jax, mjx, scene, model, last)
        evidence = require_standing(_evidence(scene, model, load, forward(targets)[1], True))
        courses = [Course("forward", _blocking(jax, forward, targets), work, compile_forward)]
        if self.solver.reverse:
            gradient, compile_gradient = _compiled(jax.jit(jax.value_and_grad(loss)), targets)
            run = _blocking(jax, gradient, targets)
            finite = bool(np.isfinite(np.asarray(run()[1])).all())
            require_standing(replace(evidence, finite=finite))
            name = "forward + backward"
            courses.append(Course(name, run, work, compile_gradient))
        return Prepared(tuple(courses), evidence)


def _programs(jax: Any, mjx: Any, model: mujoco.MjModel, settled: Settled) -> tuple[Callable, Callable]:
    """targets (N, T, nu) -> (last data, trace); targets -> scalar. The trace: heights (N, T), feet (N, T, nc)."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, settled.state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    mujoco.mj_forward(model, data)
    on_device, start = mjx.put_model(model), mjx.put_data(model, data)
    feet = _feet(model)

    def step(state: Any, control: Any) -> tuple[Any, Any]:
        state = mjx.step(on_device, state.replace(ctrl=control))
        return state, (state.qpos[2], state.geom_xpos[feet, 2])

    def roll(targets: Any) -> tuple[Any, Any]:
        return jax.vmap(lambda world: jax.lax.scan(step, start, world))(targets)

    def loss(targets: Any) -> Any:
        last, _ = roll(targets)
        return last.qpos.sum() + last.qvel.sum()

    return roll, loss


def _feet(model: mujoco.MjModel) -> np.ndarray:
    """The geoms that touch the floor."""
    return np.flatnonzero(model.geom_conaffinity)


def _compiled(program: Any, targets: Any) -> tuple[Any, float]:
    """The compiled program and the seconds that took."""
    started = time.perf_counter()
    compiled = program.lower(targets).compile()
    return compiled, time.perf_counter() - started


def _blocking(jax: Any, program: Any, targets: Any) -> Callable[[], Any]:
    """A call that waits, since JAX returns before it is done.

    With patience, should the pool wait for itself all the same.
    """
    return lambda: wait_for(lambda: jax.block_until_ready(program(targets)), "MJX's compiled program")


def _load(jax: Any, mjx: Any, scene: Scene, model: mujoco.MjModel, batch: Any) -> float:
    """Load of the first world's feet over m g, with the forces that MJX itself found."""
    data = mjx.get_data(model, jax.tree.map(lambda rows: rows[0], batch))
    return float(normal_force(model, data)) / scene.weight


def _evidence(scene: Scene, model: mujoco.MjModel, load: float, trace: Any, finite: bool) -> Evidence:
    heights, feet = (np.asarray(values) for values in trace)
    touching = (feet < model.geom_size[_feet(model), 0]).sum(-1)
    finite = finite and bool(np.isfinite(heights).all())
    height = float(heights.min()) / float(scene.model.home[2])
    return Evidence(load, (int(touching.min()), int(touching.max())), height, 1, finite)
