"""What everybody simulates: the quadruped on its four feet, bobbing a little so that no solver rests."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from diffenvs.registry import locate
from diffenvs.sim.load import load_model, mujoco_model
from diffenvs.sim.model import Model

GRAVITY = 9.81  # [m/s²], as in the robot's file


@dataclass(frozen=True, eq=False)
class Scene:
    """The robot and what it is told.

    timestep [s]: the simulation step, and the time between two targets. settle_steps: steps from the home pose to the
    start of the timed window; load_steps: the last of them, over which the load of the feet is averaged.
    swing: share of the home pose by which every joint target swings. frequency [Hz] of that swing.
    """

    model: Model
    timestep: float = 0.01
    settle_steps: int = 80
    load_steps: int = 20
    swing: float = 0.1
    frequency: float = 2.0

    @property
    def weight(self) -> float:
        """m g [N]."""
        return float(self.model.link_mass.sum()) * GRAVITY

    @property
    def home_targets(self) -> np.ndarray:
        """Joint targets of the home pose (nu,) [rad]."""
        return self.model.home[7:]

    def targets(self, worlds: int, steps: int) -> np.ndarray:
        """Joint targets (worlds, steps, nu) [rad]; every world in another phase, as worlds in training are."""
        time = self.timestep * np.arange(steps)
        phase = np.arange(worlds) / worlds
        swing = np.sin(2.0 * np.pi * (self.frequency * time[None] + phase[:, None]))
        return self.home_targets * (1.0 + self.swing * swing[..., None])

    def mujoco_model(self) -> mujoco.MjModel:
        """The same robot and floor, compiled by MuJoCo at this step."""
        return mujoco_model(self.model, timestep=self.timestep)


def quadruped() -> Scene:
    """The robot of DiffQuadruped-v0."""
    return Scene(load_model(locate("quadruped.xml")))


def window(worlds: int) -> int:
    """Steps of a timed window: one SHAC window where the batch is small, fewer where a step takes long."""
    return max(2, min(32, 2048 // worlds))
