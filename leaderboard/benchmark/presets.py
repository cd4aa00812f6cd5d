"""How much is timed."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.benchmark.iteration import Training


@dataclass(frozen=True)
class Preset:
    """The scale of a run.

    worlds, threads, laws: of ours; every combination. peer_worlds: of the peers. repetitions: of every course.
    least_seconds [s]: of a sample. mjx_settings: how many of MJX's solver settings, each of which
    compiles for a minute or two. peers: who takes part unless told otherwise.
    """

    name: str
    worlds: tuple[int, ...]
    threads: tuple[int, ...]
    laws: tuple[str, ...]
    peer_worlds: int
    repetitions: int
    least_seconds: float
    mjx_settings: int
    peers: tuple[str, ...]
    trainings: tuple[Training, ...]


LAWS = ("hard", "soft", "smoothed")
ALL = ("ours", "mujoco", "mjx", "newton", "differences")
# Task A as published; ANYmal with the window it is trained with here, and with the published one
TRAININGS = tuple(
    Training(env, horizon, threads)
    for env, horizon in (("DiffQuadruped-v0", 32), ("DiffAnymal-v0", 24), ("DiffAnymal-v0", 12))
    for threads in (1, 2)
)
PRESETS = (
    Preset("smoke", (1,), (1,), ("hard",), 1, 2, 0.001, 1, ("ours", "mujoco"), ()),
    Preset("quick", (64, 1024), (1, 2), LAWS, 64, 5, 0.02, 1, ALL, TRAININGS),
    Preset("full", (1, 16, 64, 256, 1024, 4096), (1, 2), LAWS, 64, 9, 0.05, 3, ALL, TRAININGS),
)


def find(name: str) -> Preset:
    """The preset of that name; ValueError names those there are for any other."""
    for preset in PRESETS:
        if preset.name == name:
            return preset
    raise ValueError(f"there is no preset {name!r} of the benchmark; there are {', '.join(p.name for p in PRESETS)}")
