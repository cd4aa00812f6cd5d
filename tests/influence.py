"""What an environment's inputs can be asked for, for tests that ask every input of every environment for a gradient.

The falling mass neither turns nor slides on its rail, and where its ground is matters under smoothed contact alone: it
is known in closed form, see `tests/envs/test_falling_mass.py`. Nothing of the cartpole touches the ground, and wherever
its links begin, they move alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

WITHOUT_INFLUENCE = MappingProxyType(
    {
        "DiffFallingMass-v0": ("friction", "com", "inertia", "link_pos", "contact_pos", "contact_radius"),
        "DiffCartpole-v0": ("friction", "link_pos", "contact_pos", "contact_radius"),
    }
)
# a humanoid that falls: over 20 steps each probe of its pose meets a kink of its 19 points and 21 limits
UNDECIDED = MappingProxyType({"DiffHumanoid-v0": ("qpos",)})
# springs and dampers of a mass that falls for tenths of a second
SMALLEST = MappingProxyType({"DiffFallingMass-v0": 1e-6})


@dataclass(frozen=True)
class ShortWindow:
    """How a window of at most five control steps is made to meet the ground, and what it may miss.

    worlds: how many. start: settings of the task. least_touching: share of the contacts that touch at least. too_small:
    derivatives up to this size may be lost in a difference's rounding. seldom: inputs that long windows alone can ask.
    """

    worlds: int = 4
    start: Mapping[str, object] | None = None
    least_touching: float = 0.2
    too_small: float = 0.0
    seldom: tuple[str, ...] = ()


SHORT = MappingProxyType(
    {
        # it bounces on soft ground
        "DiffFallingMass-v0": ShortWindow(8, {"start_height": (0.02, 0.12)}, 0.05),
        # gains that its motor does not have act on a cart of 50 kg
        "DiffCartpole-v0": ShortWindow(least_touching=-1.0, too_small=1e-5),
        "DiffHopper-v0": ShortWindow(8, seldom=("friction",)),
        # of its nine points only two toes walk
        "DiffCheetah-v0": ShortWindow(8, {"start_height": (0.6, 0.65)}, 0.1),
        # begun on their feet: four of nine points, eight of nineteen
        "DiffAnt-v0": ShortWindow(8, {"start_height": (0.52, 0.56)}, 0.1),
        "DiffHumanoid-v0": ShortWindow(8, {"start_height": (1.26, 1.29)}, 0.1),
    }
)


def influential(env_id: str, names: tuple[str, ...], *, short: bool = False) -> tuple[str, ...]:
    """Those of `names` that change what happens, in a short window or in any."""
    without = WITHOUT_INFLUENCE.get(env_id, ()) + (short_window(env_id).seldom if short else ())
    return tuple(name for name in names if name not in without)


def undecided(env_id: str) -> tuple[str, ...]:
    """Inputs that differences over long windows need not judge; short windows do."""
    return UNDECIDED.get(env_id, ())


def smallest(env_id: str) -> float:
    """Largest derivative, in units of the inputs' sizes, that every influential input must surpass somewhere."""
    return SMALLEST.get(env_id, 1e-4)


def short_window(env_id: str) -> ShortWindow:
    """The environment's short window."""
    return SHORT.get(env_id, ShortWindow())
