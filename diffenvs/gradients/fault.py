"""Where a wrong gradient goes wrong first: the gradients to the state, action and parameters of every single step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from diffenvs.gradients.differences import directions, judge, unit
from diffenvs.gradients.probes import Probes
from diffenvs.gradients.report import Entry, Fault
from diffenvs.gradients.window import INPUTS, OBJECTIVES, STATE_INPUTS, Start, gradients_of, run

if TYPE_CHECKING:
    from diffenvs.env import DiffVecEnv


def kind_of(wrong: Tensor, gradient: Tensor, broken: int) -> str | None:
    """What is wrong with a gradient (N, ...) in the worlds that `wrong` (N,) bool marks; None where it marks none.

    "not finite", "zero" or "off". broken: how often the simulator met a gradient that was not finite; it hands on
    zeros in the place of one.
    """
    if not wrong.any():
        return None
    if broken or not gradient.isfinite().all():
        return "not finite"
    return "off" if gradient[wrong].any() else "zero"


def find_fault(env: "DiffVecEnv", start: Start, wrong: Sequence[Entry], seed: int) -> Fault | None:
    """Look at the shortest window with a wrong gradient, in its worst world.

    The input of every single step gets an offset of its own, and the gradients to these offsets are compared with
    differences. None where each of them is right, and only their sum is wrong.
    """
    horizon = min(entry.horizon for entry in wrong)
    objective = next(o for o in OBJECTIVES if any((e.horizon, e.objective) == (horizon, o) for e in wrong))
    here = [entry for entry in wrong if (entry.horizon, entry.objective) == (horizon, objective)]
    world = max(here, key=lambda entry: float("inf") if entry.worst is None else entry.worst).world
    seen = (*STATE_INPUTS, "action", *(entry.input for entry in here))
    names = [name for name in INPUTS if name in seen and start.values[name].numel()]

    gradients, broken = _step_gradients(env, start, names, objective, horizon)
    generator = torch.Generator().manual_seed(seed)
    only = start.select(torch.tensor([world], device=env.device))
    rows = {name: _row(name, only) for name in names}
    along = {name: directions(name, rows[name], horizon, generator) for name in names}
    places = [(name, step) for name in names for step in range(horizon)]
    offsets = {}
    for name in names:
        offsets[name] = along[name].new_zeros(len(places), horizon, *rows[name].shape)
        for place, (moved, step) in enumerate(places):
            if moved == name:
                offsets[name][place, step] = along[name][step]
    sides = Probes(env.task, env.simulator, only, horizon, len(places)).offset(offsets)
    derivative = torch.stack([(gradients[name][step, world] * along[name][step, 0]).sum() for name, step in places])
    size = torch.stack([(gradients[n][step, world] * unit(n, rows[n])[0]).norm() for n, step in places])
    apart = torch.stack([at[-1] for at in sides.apart.values()]).any(0)
    plus, minus = sides.plus[objective][-1], sides.minus[objective][-1]
    found = judge(plus, minus, apart, derivative[:, None], size[:, None], horizon)

    faulty = [(name, step, place) for place, (name, step) in enumerate(places) if found.wrong[place, 0]]
    if not faulty:
        return None
    last = max(step for _, step, _ in faulty)
    first = next(place for _, step, place in faulty if step == last)
    arrays = {
        name: kind_of(found.wrong[place], gradients[name][step, world][None], broken)
        for name, step, place in faulty
        if step == last
    }
    return Fault(objective, horizon, last, arrays, world, float(derivative[first]), float(found.difference[first, 0]))


def _row(name: str, start: Start) -> Tensor:
    """What one step sees of an input, (N, ...)."""
    return start.values[name][:, 0] if name == "action" else start.values[name]


def _step_gradients(
    env: "DiffVecEnv", start: Start, names: Sequence[str], objective: str, horizon: int
) -> tuple[dict[str, Tensor], int]:
    """Gradients (T, N, ...) by name to the offsets of every step, and how many were not finite."""
    before = env.simulator.nonfinite_gradients
    offsets = {}
    for name in names:
        row = _row(name, start)
        offsets[name] = row.new_zeros(horizon, *row.shape).requires_grad_()
    window = run(env.task, env.simulator, start, start.values, horizon, offsets=offsets)
    # all up to the one wanted, as in the check: a backward pass may spoil the next
    for name, value in window.objectives(start.weights).items():
        found = gradients_of(value[-1].sum(), list(offsets.values()))
        if name == objective:
            break
    return dict(zip(names, found, strict=True)), env.simulator.nonfinite_gradients - before
