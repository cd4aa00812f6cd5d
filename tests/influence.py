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


def influential(env_id: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `names` that change what happens."""
    return tuple(name for name in names if name not in WITHOUT.get(env_id, ()))
