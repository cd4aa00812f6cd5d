"""The check itself: every input, objective and horizon against differences."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from diffenvs.gradients import differences
from diffenvs.gradients.differences import Judgement
from diffenvs.gradients.fault import find_fault, kind_of
from diffenvs.gradients.probes import Probes
from diffenvs.gradients.report import Entry, GradientReport
from diffenvs.gradients.start import draw_start, make_twin
from diffenvs.gradients.window import INPUTS, OBJECTIVES, Start, gradients_of, run
from diffenvs.options import read_count
from diffenvs.parameters import Parameters

if TYPE_CHECKING:
    from diffenvs.env import DiffVecEnv


def check_gradients(
    env: "DiffVecEnv",
    nominal: Parameters,
    horizons: Sequence[int],
    *,
    worlds: int,
    directions: int,
    seed: int,
) -> GradientReport:
    """Compare the gradients of an environment's rollouts with central differences, in float64.

    For each input (qpos, qvel, the actions and every physical parameter) in `worlds` worlds in mid-episode along
    `directions` random directions: the gradients of the return, of a random functional of the last state and of one
    of the last observation, after each of `horizons` control steps. `nominal` (N, ...): parameters to start from.

    Episodes go on where the task would end them. Chance is drawn from the same streams for all windows.

    Returns a report: `str()` is a table, `.verdict` and `.verdicts` say "right", "wrong" or "undecided", `.fault` where
    it goes wrong first, `.record()` is for JSON, and `diffenvs.gradients.draw` makes a figure of it.

    Raises ValueError for a horizon or number below one, or no horizon.
    """
    began = time.perf_counter()
    horizons = tuple(sorted({read_count("horizon", horizon) for horizon in horizons}))
    if not horizons:
        raise ValueError("horizons is empty; expected at least one number of control steps")
    directions = read_count("directions", directions)
    env = make_twin(env, nominal, read_count("worlds", worlds))
    start = draw_start(env, horizons[-1], seed)
    names = [name for name in INPUTS if start.values[name].numel()]
    gradients = {horizon: differentiate(env, start, names, horizon) for horizon in horizons}
    probes = Probes(env.task, env.simulator, start, horizons[-1], directions)
    generator = torch.Generator().manual_seed(seed + 1)
    entries, kinks = [], {horizon: {} for horizon in horizons}
    for name in names:
        unit = differences.unit(name, start.values[name])
        direction = differences.directions(name, start.values[name], directions, generator)
        sides = probes.move(name, direction)
        for horizon in horizons:
            at = {kind: apart[horizon - 1] for kind, apart in sides.apart.items()}
            kinks[horizon] = {k: kinks[horizon].get(k, 0) + int(apart.sum()) for k, apart in at.items()}
            apart = torch.stack(list(at.values())).any(0)
            found, broken = gradients[horizon]
            for objective in OBJECTIVES:
                gradient = found[objective][name]
                judged = differences.judge(
                    sides.plus[objective][horizon - 1],
                    sides.minus[objective][horizon - 1],
                    apart,
                    differences.along(gradient, direction),
                    (gradient * unit).reshape(len(gradient), -1).norm(dim=1),
                    horizon,
                )
                kind = kind_of(judged.wrong.any(0), gradient, broken)
                entries.append(sum_up(name, horizon, objective, judged, gradient * unit, kind))
    wrong = [entry for entry in entries if entry.wrong]
    touching, sliding = probes.witness.contact
    return GradientReport(
        env=env.spec.id if env.spec else type(env.task).__qualname__,
        contact=repr(env.contact),
        substeps=env.simulator.substeps,
        timestep=env.simulator.timestep,
        worlds=env.num_envs,
        directions=directions,
        horizons=horizons,
        touching=touching,
        sliding=sliding,
        pairs=len(names) * directions * env.num_envs * len(differences.STEPS),
        kinks=kinks,
        entries=tuple(entries),
        fault=find_fault(env, start, wrong, seed + 2) if wrong else None,
        seconds=time.perf_counter() - began,
    )


def differentiate(
    env: "DiffVecEnv", start: Start, names: Sequence[str], horizon: int
) -> tuple[dict[str, dict[str, Tensor]], int]:
    """Gradients (N, ...) of every objective by every input, and how many were not finite.

    The objectives share one window, as the losses of one rollout do: each runs its backward pass anew.
    """
    before = env.simulator.nonfinite_gradients
    leaves = {name: start.values[name].clone().requires_grad_() for name in names}
    window = run(env.task, env.simulator, start, {**start.values, **leaves}, horizon)
    gradients = {}
    for objective, value in window.objectives(start.weights).items():
        found = gradients_of(value[-1].sum(), list(leaves.values()))
        gradients[objective] = dict(zip(names, found, strict=True))
    return gradients, env.simulator.nonfinite_gradients - before


def sum_up(name: str, horizon: int, objective: str, judged: Judgement, sized: Tensor, kind: str | None) -> Entry:
    """The entry of a judgement; sized: gradient times unit, (N, ...)."""
    known = judged.right | judged.wrong
    errors = judged.error[known]
    told = bool(len(errors)) and bool(errors.isfinite().all())
    rank = torch.where(known, torch.where(judged.error.isnan(), torch.inf, judged.error), -1.0)
    return Entry(
        input=name,
        horizon=horizon,
        objective=objective,
        probes=known.numel(),
        right=int(judged.right.sum()),
        wrong=int(judged.wrong.sum()),
        crossed=int(judged.crossed.sum()),
        idle=int((judged.right & (judged.difference == 0.0)).sum()),
        worst=float(errors.max()) if told else None,
        median=float(errors.median()) if told else None,
        world=int(rank.max(0).values.argmax()),
        size=float(sized.reshape(len(sized), -1).norm(dim=1).median()),
        kind=kind,
    )
