"""The one place where worlds restart.

Everything is out of place: tensors that a pending backward pass holds, or that a caller was given, keep their
values. A restarted world's state carries no graph, so no gradient crosses the boundary between two episodes;
the other worlds keep their values and their gradients to the last bit.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from diffenvs.bridge import Simulator
from diffenvs.parameters import Parameters
from diffenvs.random import Draws
from diffenvs.randomization import Randomization
from diffenvs.task import State, Task


def restart(
    task: Task,
    simulator: Simulator,
    random: Draws,
    nominal: Parameters,
    state: State | None,
    parameters: Parameters,
    worlds: Tensor,
    randomization: Randomization,
) -> tuple[State, Parameters]:
    """Begin a new episode in `worlds` (n,) int64 indices; `random` holds their n streams.

    nominal: parameters before randomisation, N rows. state: None when all N worlds start for the first time.
    randomization: the environment's, on top of the task's own.

    Returns the state and the parameters of all N worlds.
    """
    parameters = renew(task, random, nominal, parameters, worlds, randomization)
    with torch.no_grad():
        fresh = task.initial(random, len(worlds))
    state = fresh if state is None else state.put(worlds, fresh)
    with torch.no_grad():
        feet = simulator.feet(state.qpos, parameters)[worlds]
    return state.replace(feet=state.feet.index_copy(0, worlds, feet)), parameters


def renew(
    task: Task,
    random: Draws,
    nominal: Parameters,
    parameters: Parameters,
    worlds: Tensor,
    randomization: Randomization,
) -> Parameters:
    """Parameters with the rows of `worlds` drawn anew, by the task and then by `randomization`. Fields that both leave
    alone are not touched.
    """
    if randomization == Randomization() and type(task).randomize is Task.randomize:
        return parameters
    rows = nominal.select(worlds)
    drawn = randomization.draw(random, task.randomize(random, rows), task.model)
    changed = {
        name: old.index_copy(0, worlds, new)
        for name, old, row, new in zip(
            Parameters.names(), parameters.tensors(), rows.tensors(), drawn.tensors(), strict=True
        )
        if new is not row
    }
    return parameters.replace(**changed)


def staggered(random: Draws, elapsed: Tensor, limit: int) -> Tensor:
    """Ages (N,) int64 spread evenly over 0 .. limit - 1, so that worlds do not end all at once."""
    return random.uniform(0.0, float(limit)).to(elapsed.dtype).clamp_(max=limit - 1)


def read_seeds(seed: int | Sequence[int], num_worlds: int) -> list[int]:
    """Seeds of the worlds. An int s stands for s, s + 1, s + 2 ..., as in Gymnasium's own vector
    environments.

    Raises ValueError for a list of the wrong length; `WorldRandom` judges the entries.
    """
    if hasattr(seed, "__index__"):
        return [seed.__index__() + world for world in range(num_worlds)]
    seeds = list(seed)
    if len(seeds) != num_worlds:
        raise ValueError(f"seed lists {len(seeds)} integers, but there are {num_worlds} worlds")
    return seeds


def read_mask(mask: Any, seed: Any, worlds: Tensor) -> Tensor:
    """Indices (n,) of the worlds that a (N,) bool mask asks to restart; `worlds` (N,) are all indices.

    Raises ValueError for another shape or dtype, for a mask without a single world, and for a seed beside it.
    """
    mask = torch.as_tensor(mask, device=worlds.device)
    if mask.dtype != torch.bool or mask.shape != worlds.shape or not mask.any():
        raise ValueError(
            f"reset_mask is {mask.dtype} of shape {tuple(mask.shape)} with {int(mask.sum())} set; "
            f"expected booleans of shape {tuple(worlds.shape)} with at least one set"
        )
    if seed is not None:
        raise ValueError("reset_mask restarts worlds on their own streams, so it takes no seed beside it")
    return worlds[mask]
