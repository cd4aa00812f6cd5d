"""Inputs that have little or no influence on an environment, for tests that ask every input for a gradient.

The falling mass neither turns nor slides on its rail, and where its ground is matters under smoothed contact alone: it
is known in closed form, see `tests/envs/test_falling_mass.py`. Nothing of the cartpole touches the ground, and wherever
its links begin, they move alike.
"""

from types import MappingProxyType

WITHOUT = MappingProxyType(
    {
        "DiffFallingMass-v0": ("friction", "com", "inertia", "link_pos", "contact_pos", "contact_radius"),
        "DiffCartpole-v0": ("friction", "link_pos", "contact_pos", "contact_radius"),
    }
)
# springs and dampers of a mass that falls for tenths of a second
SMALLEST = MappingProxyType({"DiffFallingMass-v0": 1e-6})


def influential(env_id: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `names` that change what happens."""
    return tuple(name for name in names if name not in WITHOUT.get(env_id, ()))


def smallest(env_id: str) -> float:
    """Largest derivative, in units of the inputs' sizes, that every influential input must surpass somewhere."""
    return SMALLEST.get(env_id, 1e-4)
