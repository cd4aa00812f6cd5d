"""What an environment is: a robot, and a few pure functions of its state.

A task holds no state of its own. It reads named fields of a `State`, never indices of an observation. Its
functions work on any leading dimensions: (N,) for one control step of N worlds, (T, N) for a whole window.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from diffenvs.parameters import Parameters
from diffenvs.random import Draws
from diffenvs.sim.model import Joint, Model


@dataclass(frozen=True, eq=False)
class State:
    """State of N worlds between two control steps. Shapes are given for leading dimensions (N,).

    qpos: (N, nq) and qvel: (N, nv) as MuJoCo has them (see `diffenvs.sim.model`).
    feet: (N, nc, 3) [m] centres of the contact spheres in the world.
    action: (N, nu) the action that led here, in [-1, 1]; zero after a reset.
    elapsed: (N,) int64, control steps since the reset.
    memory: whatever else the task carries along, by name: commands, timers, phases, noise. (N, ...) each.
    """

    qpos: Tensor
    qvel: Tensor
    feet: Tensor
    action: Tensor
    elapsed: Tensor
    memory: Mapping[str, Tensor] = field(default_factory=dict)

    def replace(self, **changes: Any) -> "State":
        """The same state with other values in some fields."""
        return replace(self, **changes)

    def remember(self, **memory: Tensor) -> "State":
        """The same state with other values in some entries of its memory."""
        return replace(self, memory={**self.memory, **memory})

    def map(self, function: Callable[..., Tensor], *others: "State") -> "State":
        """Apply `function` to each tensor (and to its namesakes in `others`)."""
        return State(
            *(function(getattr(self, f), *(getattr(o, f) for o in others)) for f in TENSOR_FIELDS),
            {name: function(value, *(o.memory[name] for o in others)) for name, value in self.memory.items()},
        )

    def detach(self) -> "State":
        """The same numbers without their graph."""
        return self.map(Tensor.detach)

    def put(self, worlds: Tensor, fresh: "State") -> "State":
        """Out of place: the n rows `worlds` (n,) taken from `fresh`; the others keep value and graph."""
        return self.map(lambda old, new: old.index_copy(0, worlds, new), fresh)


TENSOR_FIELDS = tuple(f.name for f in fields(State) if f.name != "memory")


def stack(states: Sequence[State]) -> State:
    """T states of N worlds as one with leading dimensions (T, N)."""
    return states[0].map(lambda *tensors: torch.stack(tensors), *states[1:])


def require_placeable(model: Model, state: State) -> None:
    """Raise ValueError, naming field and world, unless all is finite (but feet, which follow) and quaternions unit."""
    values = {name: getattr(state, name) for name in ("qpos", "qvel", "action")}
    for name, value in (values | {f"memory.{name}": value for name, value in state.memory.items()}).items():
        if not (fine := torch.isfinite(value).reshape(len(value), -1).all(-1)).all():
            world = int((~fine).nonzero()[0])
            raise ValueError(f"state: {name} of world {world} is {value[world].tolist()}; expected finite numbers")
    for kind, start in zip(model.link_joint, model.link_qpos, strict=True):
        if kind in (Joint.FREE, Joint.BALL):
            first = int(start) + (3 if kind == Joint.FREE else 0)
            norm = state.qpos[:, first : first + 4].norm(dim=-1)
            if not (fine := (norm - 1.0).abs() < 1e-3).all():
                world = int((~fine).nonzero()[0])
                raise ValueError(f"state: the quaternion of world {world} has norm {norm[world]:.4g}; expected 1")


@dataclass(frozen=True)
class Config:
    """Settings that every task has; each task adds its own.

    control_timestep: [s] between two actions. timestep: [s] of the simulation, at most; a contact law may
    need less.
    """

    control_timestep: float
    timestep: float

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(x, float) and math.isnan(x) for x in numbers):
                raise ValueError(f"{type(self).__qualname__}.{f.name} is {value}; expected numbers")
        for name in ("control_timestep", "timestep"):
            value = getattr(self, name)
            if not 0.0 < value < float("inf"):
                raise ValueError(f"{type(self).__qualname__}.{name} is {value}; it is a time in seconds above zero")


class Task:
    """Subclass and give: `asset`, `Config`, `observation_size`, `initial`, `observe`, `reward_terms`, `terminated`.

    asset: MJCF file among `diffenvs/assets`, a path to one, or its text.
    limits: joints that stop at the ends of their range, as `load_model` has them; by default all that have one.
    max_episode_steps: control steps until an episode is truncated.
    observation_size: length of an observation.
    """

    asset: ClassVar[str]
    limits: ClassVar[bool | Sequence[str]] = True
    Config: ClassVar[type[Config]]
    max_episode_steps: ClassVar[int] = 1000
    observation_size: int

    def __init__(
        self,
        model: Model,
        config: Config | Mapping[str, Any] | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        self.model = model
        self.config = resolve_config(self.Config, config)
        self.dtype = dtype
        self.device = torch.device(device)

    @property
    def control_timestep(self) -> float:
        """Seconds between two actions."""
        return self.config.control_timestep

    @property
    def timestep(self) -> float:
        """Largest simulation step [s]."""
        return self.config.timestep

    @property
    def action_size(self) -> int:
        """Length of an action."""
        return self.model.nu

    def tensor(self, values: Any) -> Tensor:
        """Constant of the task, in its dtype and on its device."""
        return torch.tensor(values, dtype=self.dtype, device=self.device)

    def joint_indices(self) -> tuple[list[int], list[int]]:
        """Where each actuator's joint sits in qpos and in qvel, (nu,) each. Raises ValueError for other
        joints than hinges and slides, which have no single coordinate."""
        qpos = []
        for name, dof in zip(self.model.actuator_name, self.model.actuator_dof, strict=True):
            link = self.model.dof_link[dof]
            if self.model.link_joint[link] not in (Joint.HINGE, Joint.SLIDE):
                raise ValueError(f"actuator {name!r} of {self.model.name!r} does not drive a hinge or a slide joint")
            qpos.append(int(self.model.link_qpos[link]))
        return qpos, self.model.actuator_dof.tolist()

    def begin(self, qpos: Tensor, qvel: Tensor, **memory: Tensor) -> State:
        """State at the start of an episode: no action, time zero; the environment finds the feet."""
        n = len(qpos)
        feet = qpos.new_zeros(n, self.model.ncontact, 3)
        elapsed = torch.zeros(n, dtype=torch.int64, device=qpos.device)
        return State(qpos, qvel, feet, qpos.new_zeros(n, self.action_size), elapsed, memory)

    def initial(self, random: Draws, n: int) -> State:
        """States of n worlds at the start of an episode, drawn from their streams; see `begin`."""
        raise NotImplementedError

    def randomize(self, random: Draws, parameters: Parameters) -> Parameters:
        """Physical parameters of n worlds for the coming episode, out of place. `parameters` are the nominal
        ones, n rows; fields given back as they came cost nothing."""
        return parameters

    def disturb(self, random: Draws, state: State) -> State:
        """What chance does to the N worlds between a reward and the next observation: pushes, new commands,
        noise of the sensors. Out of place; linear in the state, so that gradients pass."""
        return state

    def control(self, state: State, action: Tensor) -> Tensor:
        """Actuator inputs (N, nu) for an action in [-1, 1]."""
        return action

    def observe(self, state: State) -> Tensor:
        """Observation (N, observation_size)."""
        raise NotImplementedError

    def reward_terms(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Weighted terms of the reward by name, (N,) each; needed unless `reward` is given."""
        raise NotImplementedError

    def reward(self, state: State, action: Tensor, next_state: State) -> Tensor:
        """Reward (N,) of a control step from `state`, under `action` as clipped, to `next_state`: by default the sum of
        `reward_terms`.
        """
        return sum(self.reward_terms(state, action, next_state).values())

    def terminated(self, state: State) -> Tensor:
        """Whether the episode has ended here for good, (N,) bool."""
        return torch.zeros_like(state.elapsed, dtype=torch.bool)

    def metrics(self, state: State, action: Tensor, next_state: State) -> dict[str, Tensor]:
        """Quantities to report, (N,) each, without influence on learning."""
        return {}


def resolve_config(kind: type[Config], config: Config | Mapping[str, Any] | None) -> Config:
    """`config` as a `kind`: itself, defaults with some fields overridden, or the defaults.

    Raises:
        ValueError: a field that `kind` has not.
        TypeError: neither a `kind` nor a mapping.
    """
    if isinstance(config, kind):
        return config
    if is_dataclass(config) or not isinstance(config, Mapping | None):
        raise TypeError(
            f"config is a {type(config).__qualname__}; expected a {kind.__qualname__} or a mapping of fields"
        )
    known = [f.name for f in fields(kind)]
    for name in config or {}:
        if name not in known:
            raise ValueError(f"config has no field {name!r}; {kind.__qualname__} has {', '.join(known)}")
    return kind(**(config or {}))
