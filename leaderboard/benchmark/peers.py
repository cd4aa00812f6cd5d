"""The peers, one row each: who there is to compare with, and as what they enter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leaderboard.benchmark.contestant import Contestant
from leaderboard.benchmark.finite_differences import Differences
from leaderboard.benchmark.iteration import Training
from leaderboard.benchmark.mjx import DEFAULT, ONE_ITERATION, TRAINED, Mjx
from leaderboard.benchmark.mujoco_c import Rolled
from leaderboard.benchmark.newton import Newton
from leaderboard.benchmark.ours import Ours
from leaderboard.benchmark.presets import Preset


def no_trainings(preset: Preset) -> tuple[Training, ...]:
    """Peers that nobody is trained in here."""
    return ()


@dataclass(frozen=True)
class Peer:
    """A name for `--peers`, what it is, its contestants at a preset's scale, and trainings that are timed."""

    name: str
    about: str
    contestants: Callable[[Preset], tuple[Contestant, ...]]
    trainings: Callable[[Preset], tuple[Training, ...]] = no_trainings


def ours(preset: Preset) -> tuple[Contestant, ...]:
    """Every law, number of worlds and of threads."""
    return tuple(
        Ours(law, worlds, threads) for worlds in preset.worlds for law in preset.laws for threads in preset.threads
    )


def mujoco_c(preset: Preset) -> tuple[Contestant, ...]:
    """`mj_step` in a loop is the reference and always there; rollouts come beside it."""
    return tuple(Rolled(preset.peer_worlds, threads) for threads in preset.threads)


def mjx(preset: Preset) -> tuple[Contestant, ...]:
    """The setting that MJX's robots train with, then the scene's own with as many iterations and with the default."""
    return tuple(Mjx(preset.peer_worlds, solver) for solver in (TRAINED, ONE_ITERATION, DEFAULT)[: preset.mjx_settings])


def newton(preset: Preset) -> tuple[Contestant, ...]:
    """Both solvers that carry gradients through joints."""
    return (
        Newton("SolverFeatherstone", preset.peer_worlds, (1, 5, 10, 20)),
        Newton("SolverSemiImplicit", preset.peer_worlds, (1, 20, 40, 80)),
    )


def differences(preset: Preset) -> tuple[Contestant, ...]:
    """MuJoCo's finite differences."""
    return (Differences(),)


PEERS = (
    Peer("ours", "diffenvs", ours, lambda preset: preset.trainings),
    Peer("mujoco", "MuJoCo in C", mujoco_c),
    Peer("mjx", "MuJoCo in JAX", mjx),
    Peer("newton", "Newton, in Warp", newton),
    Peer("differences", "finite differences of MuJoCo's step", differences),
)


def choose(names: Sequence[str]) -> tuple[Peer, ...]:
    """The rows of those names, in the table's order; ValueError names the rows there are for any other name."""
    known = {peer.name for peer in PEERS}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no peer {name!r} to benchmark; there are {', '.join(p.name for p in PEERS)}")
    return tuple(peer for peer in PEERS if peer.name in names)
