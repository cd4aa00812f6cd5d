"""Windows from either side of a start, for differences."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs.bridge import Simulator
from diffenvs.gradients.differences import STEPS
from diffenvs.gradients.window import Start, run
from diffenvs.gradients.witness import Witness
from diffenvs.task import Task


@dataclass(frozen=True, eq=False)
class Sides:
    """What either side gave, by objective: plus, minus (T, S, D, N), S step sizes and D directions; and by kind of
    kink: apart (T, S, D, N) bool, whether the two fell on two sides of one in the first steps of the window."""

    plus: Mapping[str, Tensor]
    minus: Mapping[str, Tensor]
    apart: Mapping[str, Tensor]


class Probes:
    """Runs windows of `horizon` steps at all `STEPS` along and against `count` directions, for every world of a start.

    simulator: stood in for by a witness, which is kept for what it saw.
    """

    def __init__(self, task: Task, simulator: Simulator, start: Start, horizon: int, count: int):
        self._task, self._horizon = task, horizon
        self._shape = (len(STEPS), count, len(start.state.qpos))
        self._start = start.repeat(2 * len(STEPS) * count)
        self.witness = Witness(simulator, self._shape[0] * self._shape[1] * self._shape[2])

    def move(self, name: str, direction: Tensor) -> Sides:
        """Move one input along `direction` (D, N, ...)."""
        value = self._start.values[name]
        return self._run({**self._start.values, name: value + self._both(direction).view_as(value)}, {})

    def offset(self, directions: Mapping[str, Tensor]) -> Sides:
        """Move inputs step by step along directions (D, T, N, ...); see `window.run`."""
        moved = {}
        for name, direction in directions.items():
            both = self._both(direction)  # (2, S, D, T, N, ...)
            moved[name] = both.movedim(3, 0).reshape(self._horizon, -1, *direction.shape[3:])
        return self._run(self._start.values, moved)

    def _both(self, direction: Tensor) -> Tensor:
        steps = torch.tensor(STEPS, dtype=direction.dtype, device=direction.device)
        moved = steps.view(-1, *[1] * direction.dim()) * direction
        return torch.stack((moved, -moved))

    def _run(self, values: Mapping[str, Tensor], offsets: Mapping[str, Tensor]) -> Sides:
        self.witness.begin()
        with torch.no_grad():
            window = run(self._task, self.witness, self._start, values, self._horizon, offsets=offsets)
            found = window.objectives(self._start.weights)
        sides = {name: value.view(self._horizon, 2, *self._shape) for name, value in found.items()}
        apart = {kind: at.view(self._horizon, *self._shape) for kind, at in self.witness.apart().items()}
        return Sides({k: v[:, 0] for k, v in sides.items()}, {k: v[:, 1] for k, v in sides.items()}, apart)
