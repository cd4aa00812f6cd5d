"""Domain randomisation as a value: ranges of physical parameters, drawn anew for every episode of every world."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from diffenvs.parameters import Parameters
from diffenvs.random import Draws
from diffenvs.sim.model import Joint, Model

Range = tuple[float, float]

ADDED = ("base_mass", "com", "link_pos", "contact_pos")
# a link without mass cannot be accelerated, so these factors are above zero
ABOVE_ZERO = ("mass", "inertia")


@dataclass(frozen=True, init=False)
class Randomization:
    """Ranges (low, high) of physical parameters, each uniform; None, the default, leaves a parameter alone.

    Three rules say what a range is:

    * `friction` is the coefficient itself: it replaces the value. One draw a world.
    * `base_mass` [kg] and the positions `com`, `link_pos` and `contact_pos` [m] are added to the value. The mass goes
      to the centre of mass of the first link that has any, one draw a world; a position gets one draw for each of its
      coordinates. A free joint has no `link_pos` to move.
    * All others are factors of the value: `mass`, `inertia`, `damping`, `stiffness`, `armature`, `kp`, `kd` and
      `contact_radius`. One draw for each link, degree of freedom, actuator or contact; the six entries of a link's
      inertia share theirs. `mass` leaves the inertia as it is.

    The value is what the task's own randomisation (`Task.randomize`) makes of the nominal parameters. Draws come from
    each world's stream, in the order of the fields below. They are differentiable in the nominal parameters.

    Raises:
        ValueError: an unknown name, a range that is reversed, not finite, or that makes a parameter negative.
        TypeError: a range that is not a pair of numbers.
    """

    friction: Range | None = None
    mass: Range | None = None
    base_mass: Range | None = None
    com: Range | None = None
    inertia: Range | None = None
    link_pos: Range | None = None
    damping: Range | None = None
    stiffness: Range | None = None
    armature: Range | None = None
    kp: Range | None = None
    kd: Range | None = None
    contact_pos: Range | None = None
    contact_radius: Range | None = None

    def __init__(self, **ranges: Range | None):
        known = [f.name for f in fields(self)]
        for name in ranges:
            if name not in known:
                raise ValueError(f"Randomization has no parameter {name!r}; it has {', '.join(known)}")
        for name in known:
            value = ranges.get(name)
            object.__setattr__(self, name, None if value is None else _read_range(name, value))

    def require_possible(self, parameters: Parameters, model: Model) -> None:
        """Raise ValueError, naming the world, if a draw on these parameters (N rows) could leave no mass at a base."""
        if self.base_mass is None:
            return
        base = _base(model)
        lightest = parameters.mass.detach()[:, base] * (1.0 if self.mass is None else self.mass[0]) + self.base_mass[0]
        _require_mass(lightest, f"Randomization.base_mass is {self.base_mass} kg and can leave", model)

    def draw(self, random: Draws, parameters: Parameters, model: Model) -> Parameters:
        """Parameters of n worlds for the coming episode, out of place; `random` and `parameters` hold their n rows.

        Raises ValueError when a base is left without mass, which together with the task's own randomisation is only
        known here.
        """
        drawn = {}
        for name in (f.name for f in fields(self)):
            if (bounds := getattr(self, name)) is None:
                continue
            if name == "friction":
                drawn[name] = random.uniform(*bounds)
            elif name == "base_mass":
                mass = drawn.get("mass", parameters.mass)
                added = torch.zeros_like(mass)
                added[:, _base(model)] = random.uniform(*bounds)
                drawn["mass"] = mass + added
            elif name in ADDED:
                value = getattr(parameters, name)
                drawn[name] = value + _movable(name, model, value) * random.uniform(*bounds, tuple(value.shape[1:]))
            else:
                value = getattr(parameters, name)
                size = (value.shape[1], 1) if name == "inertia" else (value.shape[1],)
                drawn[name] = value * random.uniform(*bounds, size)
        if self.base_mass is not None:
            left = drawn["mass"].detach()[:, _base(model)]
            _require_mass(left, "together with the task's own randomisation, Randomization.base_mass leaves", model)
        return parameters.replace(**drawn)


def read_randomization(value: Randomization | Mapping[str, Any] | None) -> Randomization:
    """A `Randomization`, as it is or made of a mapping of its ranges; one that draws nothing for None.

    Raises TypeError for anything else.
    """
    if isinstance(value, Randomization):
        return value
    if isinstance(value, Mapping | None):
        return Randomization(**(value or {}))
    raise TypeError(f"randomization is a {type(value).__qualname__}; expected a Randomization or a mapping of ranges")


def _read_range(name: str, value: Any) -> Range:
    """A pair of finite numbers in order, the lower of which leaves the parameter possible."""
    if (
        not isinstance(value, tuple | list)
        or len(value) != 2
        or not all(isinstance(bound, Real) and not isinstance(bound, bool) for bound in value)
    ):
        raise TypeError(f"Randomization.{name} is {value!r}; expected a pair of numbers, low and high")
    low, high = (float(bound) for bound in value)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"Randomization.{name} is {value!r}; expected finite numbers")
    if low > high:
        raise ValueError(f"Randomization.{name} is {value!r}; expected low and high in this order")
    if name in ABOVE_ZERO and low <= 0.0:
        raise ValueError(f"Randomization.{name} is {value!r}; expected factors above 0")
    if name not in ADDED and low < 0.0:
        raise ValueError(f"Randomization.{name} is {value!r}; expected numbers of at least 0")
    return low, high


def _base(model: Model) -> int:
    """The first link that has mass."""
    return int((model.link_mass > 0.0).argmax())


def _movable(name: str, model: Model, value: Tensor) -> Tensor | float:
    """What of a position an offset moves: 1, and 0 at the `link_pos` of free joints, which qpos alone places."""
    if name != "link_pos":
        return 1.0
    return value.new_tensor([[float(kind != Joint.FREE)] for kind in model.link_joint])


def _require_mass(mass: Tensor, what: str, model: Model) -> None:
    """Raise ValueError unless every world's base (N,) has mass."""
    if (wrong := mass <= 0.0).any():
        world = int(wrong.nonzero()[0])
        name = model.link_name[_base(model)]
        raise ValueError(f"{what} link {name!r} of world {world} {mass[world].item():.4g} kg; expected more than 0")
