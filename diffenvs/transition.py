"""One control step as a function: from a state and an action to everything that follows before any reset."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffenvs.bridge import Simulator
from diffenvs.parameters import Parameters
from diffenvs.random import Draws
from diffenvs.task import State, Task


@dataclass(frozen=True, eq=False)
class Transition:
    """One control step of N worlds.

    state, action, next_state: what the reward is a function of; the action is clipped, the next state
    undisturbed.
    successor: the next state as chance leaves it. final_obs (N, obs): what is observed of it, before any
    reset. terminated, truncated, nonfinite, ended (N,) bool: `ended` is terminated or truncated. done:
    whether any world ended.
    """

    state: State
    action: Tensor
    next_state: State
    successor: State
    final_obs: Tensor
    terminated: Tensor
    truncated: Tensor
    nonfinite: Tensor
    ended: Tensor
    done: bool


def advance(
    task: Task,
    simulator: Simulator,
    random: Draws,
    limit: int,
    state: State,
    parameters: Parameters,
    action: Tensor,
) -> Transition:
    """Simulate one control step, out of place; carries the graph when torch records gradients.

    action: (N, nu) in [-1, 1]. limit: age in control steps at which a world is truncated.

    A world whose physics left the finite numbers counts as terminated, and the state before the step, without
    its graph, stands for the one after it.
    """
    motion = simulator.simulate(state.qpos, state.qvel, task.control(state, action), parameters)
    qpos, qvel, feet = motion.qpos, motion.qvel, motion.feet
    nonfinite = ~motion.finite
    if nonfinite.any():
        # Replaced before anything is computed from it: a NaN times a zero gradient would still be a NaN.
        finite = motion.finite[:, None]
        qpos = torch.where(finite, qpos, state.qpos.detach())
        qvel = torch.where(finite, qvel, state.qvel.detach())
        feet = torch.where(finite[:, None], feet, state.feet.detach())
    next_state = State(qpos, qvel, feet, action, state.elapsed + 1, state.memory)
    with torch.no_grad():
        terminated = task.terminated(next_state) | nonfinite
        truncated = next_state.elapsed >= limit
        ended = terminated | truncated
        done = bool(ended.any())
    successor = task.disturb(random, next_state.map(fork))
    final_obs = task.observe(successor)
    return Transition(state, action, next_state, successor, final_obs, terminated, truncated, nonfinite, ended, done)


def fork(value: Tensor) -> Tensor:
    """The same tensor behind a node of its own in the graph.

    Gradients from behind the node are summed up before they meet those from elsewhere, whether or not a
    restart cuts some rows off in between. So a restart cannot change the order in which the other worlds'
    gradients are added, and with it their last bits.
    """
    return value.view_as(value) if value.requires_grad else value
