"""MuJoCo in C: `mj_step` in a loop, which is the reference, and `mujoco.rollout` over threads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import mujoco
import numpy as np
from mujoco import rollout

from leaderboard.benchmark.contestant import Course, Prepared
from leaderboard.benchmark.scene import Scene, window
from leaderboard.benchmark.standing import Evidence, require_standing


@dataclass(frozen=True, eq=False)
class Settled:
    """A standing robot: its state as MuJoCo packs it, the load of its feet over m g."""

    model: mujoco.MjModel
    state: np.ndarray
    load: float


STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS


def settle(scene: Scene, model: mujoco.MjModel) -> Settled:
    """The robot after it came to stand from its home pose."""
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = scene.model.home, scene.home_targets
    loads = []
    for _ in range(scene.settle_steps):
        mujoco.mj_step(model, data)
        loads.append(normal_force(model, data) / scene.weight)
    state = np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return Settled(model, state, float(np.mean(loads[-scene.load_steps :])))


def normal_force(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Sum of the contacts' normal forces [N]; the floor is level."""
    force, total = np.zeros(6), 0.0
    for contact in range(data.ncon):
        mujoco.mj_contactForce(model, data, contact, force)
        total += force[0]
    return total


def place(settled: Settled, data: mujoco.MjData) -> None:
    """Put the standing robot into `data`, the solver's warm start with it gone to zero."""
    mujoco.mj_setState(settled.model, data, settled.state, STATE)
    data.qacc_warmstart[:] = 0.0


def watch(scene: Scene, settled: Settled, targets: np.ndarray) -> Evidence:
    """What MuJoCo's robot does under targets (worlds, steps, nu)."""
    model, data, contacts, heights = settled.model, mujoco.MjData(settled.model), [], []
    for world in targets:
        place(settled, data)
        for control in world:
            data.ctrl[:] = control
            mujoco.mj_step(model, data)
            contacts.append(data.ncon)
            heights.append(data.qpos[2])
    finite = bool(np.isfinite(heights).all() and np.isfinite(data.qvel).all())
    height = float(min(heights)) / float(scene.model.home[2])
    return Evidence(settled.load, (min(contacts), max(contacts)), height, 1, finite)


@dataclass(frozen=True)
class Stepped:
    """Worlds one after the other in a Python loop, which costs some tenths of a microsecond a step for itself."""

    worlds: int = 32
    peer: ClassVar[str] = "mujoco"
    precision: ClassVar[str] = "float64"
    label: ClassVar[str] = "mj_step loop"
    threads: ClassVar[int] = 1

    def prepare(self, scene: Scene) -> Prepared:
        """One course: forward."""
        settled = settle(scene, scene.mujoco_model())
        targets = scene.targets(self.worlds, window(self.worlds))
        evidence = require_standing(watch(scene, settled, targets))
        data = mujoco.MjData(settled.model)

        def forward() -> None:
            model, control, step = settled.model, data.ctrl, mujoco.mj_step
            for world in targets:
                place(settled, data)
                for target in world:
                    control[:] = target
                    step(model, data)

        return Prepared((Course("forward", forward, targets.shape[0] * targets.shape[1]),), evidence)


@dataclass(frozen=True)
class Rolled:
    """Worlds shared out over threads, the loop in C."""

    worlds: int
    threads: int
    peer: ClassVar[str] = "mujoco"
    precision: ClassVar[str] = "float64"
    label: ClassVar[str] = "mujoco.rollout"

    def prepare(self, scene: Scene) -> Prepared:
        """One course: forward."""
        settled = settle(scene, scene.mujoco_model())
        targets = scene.targets(self.worlds, window(self.worlds))
        evidence = require_standing(watch(scene, settled, targets))
        model, steps = settled.model, targets.shape[1]
        start = np.tile(settled.state, (self.worlds, 1))
        data = [mujoco.MjData(model) for _ in range(self.threads)]
        state = np.zeros((self.worlds, steps, len(settled.state)))
        sensor = np.zeros((self.worlds, steps, model.nsensordata))
        roll = rollout.Rollout(nthread=self.threads)

        def forward() -> None:
            roll.rollout(model, data, start, targets, state=state, sensordata=sensor)

        forward()
        # the same rollout again, as this interface gives it: time, then qpos, in a row
        height = float(state[..., 3].min()) / float(scene.model.home[2])
        require_standing(replace(evidence, height=height))
        return Prepared((Course("forward", forward, self.worlds * steps),), evidence)
