"""A simulator that goes substep by substep and notes on which side of every kink it was."""

import numpy as np
import torch
from torch import Tensor

from diffenvs.bridge import Motion, Simulator
from diffenvs.parameters import Parameters
from diffenvs.sim.branches import Branches


class Witness:
    """Stands in for `simulator` with worlds in pairs: world i and world i + pairs. Same numbers, no graph."""

    def __init__(self, simulator: Simulator, pairs: int):
        self._substeps = simulator.substeps
        self._pairs = pairs
        self._simulator = Simulator(
            simulator.model,
            simulator.law,
            2 * pairs,
            control_timestep=simulator.timestep,
            timestep=simulator.timestep,
            dtype=simulator.dtype,
            device=str(simulator.device),
            in_one_part=True,
        )
        self._branches = Branches(self._simulator.program)
        self._apart: dict[str, np.ndarray] = {}
        self._after: list[dict[str, np.ndarray]] = []
        self._contacts = np.zeros(3, np.int64)

    def begin(self) -> None:
        """A new window: nothing has come apart yet."""
        self._apart, self._after = {}, []

    def simulate(self, qpos: Tensor, qvel: Tensor, control: Tensor, parameters: Parameters) -> Motion:
        """As `Simulator.simulate`."""
        with torch.no_grad():
            for _ in range(self._substeps):
                motion = self._simulator.simulate(qpos, qvel, control, parameters)
                qpos, qvel = motion.qpos, motion.qvel
                self._look()
        self._after.append(dict(self._apart))
        return motion

    def apart(self) -> dict[str, Tensor]:
        """Whether the two of a pair were on different sides of a kink in the window's first steps.

        By kind of kink, (T, pairs) bool; entry h - 1 belongs to the first h steps.
        """
        device = self._simulator.device
        return {k: torch.from_numpy(np.stack([a[k] for a in self._after])).to(device) for k in self._apart}

    @property
    def contact(self) -> tuple[float, float]:
        """Shares of all contacts in all substeps and windows: touching the ground, and of these sliding."""
        seen, touching, sliding = (int(n) for n in self._contacts)
        return touching / max(seen, 1), sliding / max(touching, 1)

    def _look(self) -> None:
        sides = self._branches.read()
        for kind, side in sides.items():
            apart = (side[: self._pairs] != side[self._pairs :]).any(1)
            self._apart[kind] = self._apart[kind] | apart if kind in self._apart else apart
        touching = self._branches.depth() >= 0.0
        sliding = touching & sides["slip"][:, : touching.shape[1]]
        self._contacts += (touching.size, touching.sum(), sliding.sum())
