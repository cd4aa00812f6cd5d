"""The function under test: from the inputs of a window of control steps to numbers that depend on all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from diffenvs.action import clip_action
from diffenvs.parameters import Parameters
from diffenvs.random import WorldRandom
from diffenvs.task import State, Task, stack
from diffenvs.transition import advance

OBJECTIVES = ("return", "state", "observation")
STATE_INPUTS = ("qpos", "qvel")
INPUTS = (*STATE_INPUTS, "action", *Parameters.names())


@dataclass(frozen=True, eq=False)
class Start:
    """Where the windows of N worlds begin.

    state: of N worlds. values: every input by name, (N, ...); "action" is (N, T, nu). streams: `key` and
    `drawn` of the worlds' random streams, so that chance is the same in every window from here.
    weights: (N, ...) each, the random functionals of `Window.objectives`.
    """

    state: State
    values: Mapping[str, Tensor]
    streams: Mapping[str, Tensor]
    weights: Mapping[str, Tensor]

    def repeat(self, copies: int) -> "Start":
        """The same worlds `copies` times, one set after the other."""

        def tile(value: Tensor) -> Tensor:
            return value.repeat(copies, *[1] * (value.dim() - 1))

        groups = ({k: tile(v) for k, v in group.items()} for group in (self.values, self.streams, self.weights))
        return Start(self.state.map(tile), *groups)

    def select(self, worlds: Tensor) -> "Start":
        """Some of the worlds (indices)."""
        groups = ({k: v[worlds] for k, v in group.items()} for group in (self.values, self.streams, self.weights))
        return Start(self.state.map(lambda value: value[worlds]), *groups)


@dataclass(frozen=True, eq=False)
class Window:
    """What T control steps of N worlds gave: rewards (T, N), the states after each step and their observations."""

    rewards: Tensor
    states: State
    observations: Tensor

    def objectives(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Numbers (T, N) to differentiate, by name: entry h - 1 belongs to the window's first h steps.

        "return": the sum of the rewards. "state": a random weight for every component of qpos, qvel and feet after
        the last step. "observation": one for every component of the last observation.
        """
        states = self.states
        state = (states.qpos * weights["qpos"]).sum(-1) + (states.qvel * weights["qvel"]).sum(-1)
        return {
            "return": self.rewards.cumsum(0),
            "state": state + (states.feet * weights["feet"]).sum((-1, -2)),
            "observation": (self.observations * weights["observation"]).sum(-1),
        }


def run(
    task: Task,
    simulator: Any,
    start: Start,
    values: Mapping[str, Tensor],
    horizon: int,
    *,
    offsets: Mapping[str, Tensor] | None = None,
) -> Window:
    """A window of `horizon` steps from `start`, with `values` in the place of those of `start`.

    offsets: by name of an input, (horizon, N, ...): added to the state, action or parameter that step t sees.

    Episodes go on where the task would end them: a restart is no function of what came before.
    """
    random = WorldRandom([0] * len(start.state.qpos), dtype=task.dtype, device=task.device)
    random.load_state_dict(dict(start.streams))
    offsets = offsets or {}
    state = start.state.replace(qpos=values["qpos"], qvel=values["qvel"])
    parameters = Parameters(*(values[name] for name in Parameters.names()))
    transitions = []
    for t in range(horizon):
        action, now = values["action"][:, t], parameters
        if offsets:
            moved = {name: getattr(state, name) + offsets[name][t] for name in STATE_INPUTS if name in offsets}
            state = state.replace(**moved)
            action = action + offsets["action"][t] if "action" in offsets else action
            changed = {n: getattr(now, n) + offsets[n][t] for n in Parameters.names() if n in offsets}
            now = now.replace(**changed)
        step = advance(task, simulator, random.select(), torch.iinfo(torch.int64).max, state, now, clip_action(action))
        transitions.append(step)
        state = step.successor
    states, actions = stack([s.state for s in transitions]), torch.stack([s.action for s in transitions])
    rewards = task.reward(states, actions, stack([s.next_state for s in transitions]))
    return Window(rewards, stack([s.successor for s in transitions]), torch.stack([s.final_obs for s in transitions]))


def gradients_of(value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of a number; zeros for what has no path to it. The graph is kept for the next one."""
    if not value.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return list(torch.autograd.grad(value, leaves, retain_graph=True, allow_unused=True, materialize_grads=True))
