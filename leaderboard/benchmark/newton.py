"""Newton's differentiable solvers, with a tape over the window: Featherstone and semi-implicit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import warp as wp

from leaderboard.benchmark.contestant import Course, Missing, Prepared
from leaderboard.benchmark.scene import Scene
from leaderboard.benchmark.standing import Evidence, Invalid, require_standing

STEPS = 4  # of 0.01 s in a window: the tape keeps a state for every simulation step
# Penalty contact as in our soft law: spring [N/m], damper [N s/m], friction damper [N s/m]
STIFFNESS, DAMPING, FRICTION_DAMPING = 1.2e4, 30.0, 900.0


@dataclass(frozen=True)
class Newton:
    """One solver, at the fewest of `substeps` (simulation steps in 0.01 s) at which the robot stands.

    solver: the class's name in `newton.solvers`. Its gradient is timed, not judged.
    """

    solver: str
    worlds: int
    substeps: tuple[int, ...]
    peer: ClassVar[str] = "newton"
    precision: ClassVar[str] = "float32"
    threads: ClassVar[int] = 1

    @property
    def label(self) -> str:
        return f"Newton, {self.solver}"

    def prepare(self, scene: Scene) -> Prepared:
        """Forward, and forward + backward by `wp.Tape`, both with collision detection once in 0.01 s."""
        try:
            import newton
        except ImportError as error:
            raise Missing(f"newton: {error}") from error
        refusals = []
        for substeps in self.substeps:
            try:
                return self._prepare(newton, scene, substeps)
            except Invalid as error:
                refusals.append(str(error))
        raise Invalid("; ".join(refusals))

    def _prepare(self, newton: Any, scene: Scene, substeps: int) -> Prepared:
        solver = getattr(newton.solvers, self.solver)
        alone = _Window(newton, solver, scene, 1, substeps)
        load, finite = alone.settle(scene)
        window = _Window(newton, solver, scene, self.worlds, substeps)
        window.start(alone)
        contacts, height = window.watch()
        evidence = Evidence(load, contacts, height / float(scene.model.home[2]), substeps, finite)
        require_standing(evidence)
        evidence = Evidence(load, contacts, evidence.height, substeps, window.gradient_is_finite())
        require_standing(evidence)
        work = self.worlds * STEPS
        courses = (
            Course("forward", window.forward, work),
            Course("forward + backward", window.forward_backward, work),
        )
        return Prepared(courses, evidence)


class _Window:
    """N robots on one floor for STEPS steps of 0.01 s."""

    def __init__(self, newton: Any, solver: Callable, scene: Scene, worlds: int, substeps: int):
        robot, self._shank, self._foot, self._radius = _robot(newton, scene)
        world = newton.ModelBuilder()
        world.replicate(robot, worlds)
        world.add_ground_plane(cfg=robot.default_shape_cfg)
        self._model = world.finalize(requires_grad=True)
        self._solver = solver(self._model)
        self._collision = newton.CollisionPipeline(self._model, requires_grad=True)
        self._worlds, self._substeps, self._step = worlds, substeps, scene.timestep / substeps
        self._states = [self._model.state() for _ in range(STEPS * substeps + 1)]
        newton.eval_fk(self._model, self._model.joint_q, self._model.joint_qd, self._states[0])
        self._contacts = [self._collision.contacts() for _ in range(STEPS)]
        self._controls = [self._model.control() for _ in range(STEPS)]
        self._tell(scene.targets(worlds, STEPS))

    def _tell(self, targets: np.ndarray) -> None:
        """targets (N, STEPS, nu): the drives' last coordinates of each world."""
        for control, target in zip(self._controls, targets.swapaxes(0, 1), strict=True):
            values = control.joint_target_q.numpy().reshape(self._worlds, -1)
            values[:, -target.shape[1] :] = target
            control.joint_target_q = wp.array(values.ravel(), dtype=wp.float32, requires_grad=True)

    def settle(self, scene: Scene) -> tuple[float, bool]:
        """Come to stand; mean force of the feet over m g, and whether all stayed finite.

        No contact force can be read, but the ground's is the only one besides gravity: it follows from the momentum.
        """
        self._tell(np.tile(scene.home_targets, (self._worlds, STEPS, 1)))
        windows, watched = -(-scene.settle_steps // STEPS), -(-scene.load_steps // STEPS)
        momenta = []
        for _ in range(windows):
            self.forward()
            self._copy(self._states[-1], self._states[0], 1)
            momenta.append(self._vertical_momentum())
        force = (momenta[-1] - momenta[-1 - watched]) / (watched * STEPS * scene.timestep)
        return 1.0 + force / scene.weight, bool(np.isfinite(self._states[0].body_q.numpy()).all())

    def _vertical_momentum(self) -> float:
        """Of all bodies where the window begins [N s]; velocities are those of the centres of mass."""
        return float(self._model.body_mass.numpy() @ self._states[0].body_qd.numpy()[:, 2])

    def start(self, alone: _Window) -> None:
        """Begin every world where the settled robot stands."""
        self._copy(alone._states[0], self._states[0], self._worlds)

    def forward(self) -> None:
        """Values alone."""
        for step, (contacts, control) in enumerate(zip(self._contacts, self._controls, strict=True)):
            first = step * self._substeps
            self._collision.collide(self._states[first], contacts)
            for i in range(first, first + self._substeps):
                self._states[i].clear_forces()
                self._solver.step(self._states[i], self._states[i + 1], control, contacts, self._step)

    def forward_backward(self) -> None:
        """Values on a tape, then the adjoint from the last bodies' poses and velocities."""
        tape = wp.Tape()
        with tape:
            self.forward()
        last = self._states[-1]
        seeds = {a: wp.ones_like(a, requires_grad=False) for a in (last.body_q, last.body_qd)}
        tape.backward(grads=seeds)
        tape.zero()

    def gradient_is_finite(self) -> bool:
        """Whether the targets' gradient is finite and not zero throughout."""
        tape = wp.Tape()
        with tape:
            self.forward()
        last = self._states[-1]
        tape.backward(grads={a: wp.ones_like(a, requires_grad=False) for a in (last.body_q, last.body_qd)})
        gradients = np.stack([control.joint_target_q.grad.numpy() for control in self._controls])
        tape.zero()
        return bool(np.isfinite(gradients).all() and np.abs(gradients).max() > 0.0)

    def watch(self) -> tuple[tuple[int, int], float]:
        """Fewest and most feet in the ground, lowest base [m], over the window."""
        self.forward()
        touching = np.stack([(depth > 0.0).sum(-1) for depth in self._depths()])
        bases = np.stack([self._bodies(s)[:, 0, 2] for s in self._ends()])
        return (int(touching.min()), int(touching.max())), float(bases.min())

    def _ends(self) -> list[Any]:
        return self._states[self._substeps :: self._substeps]

    def _bodies(self, state: Any) -> np.ndarray:
        """Poses (N, bodies, 7): position, quaternion x y z w."""
        return state.body_q.numpy().reshape(self._worlds, -1, 7)

    def _depths(self) -> list[np.ndarray]:
        """Depth of every foot (N, nc) [m] after each step of 0.01 s."""
        depths = []
        for state in self._ends():
            pose = self._bodies(state)[:, self._shank]
            x, y, z, w = np.moveaxis(pose[..., 3:], -1, 0)
            up = np.stack((2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)), -1)
            depths.append(self._radius - pose[..., 2] - (up * self._foot).sum(-1))
        return depths

    @staticmethod
    def _copy(source: Any, target: Any, times: int) -> None:
        for name in ("body_q", "body_qd", "joint_q", "joint_qd"):
            rows = getattr(source, name).numpy()
            getattr(target, name).assign(np.concatenate([rows] * times))


def _robot(newton: Any, scene: Scene) -> tuple[Any, list[int], np.ndarray, np.ndarray]:
    """Builder of one robot at its home pose; of its feet the bodies, places (nc, 3) [m] on them and radii (nc,) [m]."""
    model = scene.model
    robot = newton.ModelBuilder()
    contact = SimpleNamespace(ke=STIFFNESS, kd=DAMPING, kf=FRICTION_DAMPING, mu=model.friction)
    for name, value in vars(contact).items():
        setattr(robot.default_shape_cfg, name, value)
    robot.add_mjcf(model.xml, enable_self_collisions=False)
    x, y, z, w, a, b, c = (*model.home[:3], *model.home[3:7])
    robot.joint_q[:] = [x, y, z, a, b, c, w, *model.home[7:]]
    flag = newton.ShapeFlags.COLLIDE_SHAPES
    feet = [shape for shape, flags in enumerate(robot.shape_flags) if flags & flag]
    places = np.array([list(robot.shape_transform[shape])[:3] for shape in feet])
    radii = np.array([robot.shape_scale[shape][0] for shape in feet])
    return robot, [robot.shape_body[shape] for shape in feet], places, radii
