"""The environments, one row each."""

from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym

from diffenvs.envs.ant import Ant
from diffenvs.envs.anymal import Anymal
from diffenvs.envs.cartpole import Cartpole
from diffenvs.envs.cheetah import Cheetah
from diffenvs.envs.falling_mass import FallingMass
from diffenvs.envs.hopper import Hopper
from diffenvs.envs.humanoid import Humanoid
from diffenvs.envs.quadruped import Quadruped
from diffenvs.task import Task


@dataclass(frozen=True)
class Row:
    """One environment: its id, its task and what it is in one line."""

    id: str
    task: type[Task]
    summary: str

    @property
    def max_episode_steps(self) -> int:
        """Episode length in control steps."""
        return self.task.max_episode_steps


ENVS = (
    Row("DiffQuadruped-v0", Quadruped, "a quadruped of 30 kg walks forward at 1 m/s"),
    Row(
        "DiffAnymal-v0",
        Anymal,
        "ANYmal D follows velocity commands, with pushes, noise and random friction and mass",
    ),
    Row("DiffFallingMass-v0", FallingMass, "a falling mass is caught; its optimum is known in closed form"),
    Row("DiffCartpole-v0", Cartpole, "DiffRL's pole of 2.5 kg is swung up and balanced on a cart of 50 kg"),
    Row("DiffHopper-v0", Hopper, "DiffRL's planar hopper of 16 kg runs forward on one leg"),
    Row("DiffCheetah-v0", Cheetah, "DiffRL's planar cheetah of 21 kg runs forward on two legs"),
    Row("DiffAnt-v0", Ant, "DiffRL's ant of 182 kg runs forward"),
    Row("DiffHumanoid-v0", Humanoid, "DiffRL's humanoid of 41 kg runs forward on two legs"),
)


def find(env_id: str) -> Row:
    """Row of an id. Raises ValueError, naming the ids there are, for any other."""
    for row in ENVS:
        if row.id == env_id:
            return row
    raise ValueError(f"there is no environment {env_id!r}; there are {', '.join(row.id for row in ENVS)}")


def locate(asset: str) -> Path | str:
    """Path of an MJCF file in `diffenvs/assets`; any other path, and MJCF text, as it is."""
    if asset.lstrip().startswith("<"):
        return asset
    shipped = Path(__file__).parent / "assets" / asset
    return shipped if shipped.is_file() else asset


def register() -> None:
    """Make every row known to `gymnasium.make` and `gymnasium.make_vec`; doing it twice is harmless."""
    for row in ENVS:
        if row.id not in gym.registry:
            gym.register(
                row.id,
                entry_point="diffenvs.single:SingleEnv",
                vector_entry_point="diffenvs.env:DiffVecEnv",
                # For gym.make this is Gymnasium's own TimeLimit, for make_vec an argument of DiffVecEnv.
                max_episode_steps=row.max_episode_steps,
                kwargs={"task": row.id},
            )
