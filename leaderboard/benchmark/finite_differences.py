"""MuJoCo's own derivatives: finite differences of a step, the whole Jacobian at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import mujoco
import numpy as np

from leaderboard.benchmark.contestant import Course, Prepared
from leaderboard.benchmark.mujoco_c import place, settle, watch
from leaderboard.benchmark.scene import Scene, window
from leaderboard.benchmark.standing import require_standing

EPSILON = 1e-6


@dataclass(frozen=True)
class Differences:
    """`mjd_transitionFD` before every step of a rollout, one world after the other."""

    worlds: int = 1
    peer: ClassVar[str] = "differences"
    precision: ClassVar[str] = "float64"
    label: ClassVar[str] = "mjd_transitionFD"
    threads: ClassVar[int] = 1

    def prepare(self, scene: Scene) -> Prepared:
        """Two courses: the step and its Jacobian by one-sided and by central differences."""
        settled = settle(scene, scene.mujoco_model())
        targets = scene.targets(self.worlds, window(self.worlds))
        evidence = require_standing(watch(scene, settled, targets))
        model, data = settled.model, mujoco.MjData(settled.model)
        size = 2 * model.nv
        by_state, by_control = np.zeros((size, size)), np.zeros((size, model.nu))

        def course(name: str, central: bool) -> Course:
            def run() -> None:
                for world in targets:
                    place(settled, data)
                    for target in world:
                        data.ctrl[:] = target
                        mujoco.mjd_transitionFD(model, data, EPSILON, central, by_state, by_control, None, None)
                        mujoco.mj_step(model, data)

            return Course(name, run, targets.shape[0] * targets.shape[1])

        courses = (course("step + Jacobian, one-sided", False), course("step + Jacobian, central", True))
        return Prepared(courses, evidence)
