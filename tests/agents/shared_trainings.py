"""Trainings for test_parallel.py, which runs them in one process and this file, as a script, in several."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from agents.parallel import launched
from agents.ppo import PpoSettings
from agents.shac import ShacSettings
from agents.train import RunOptions, prepare

TOY = "toy_worlds:Scattered-v0"
ROBOT = "DiffQuadruped-v0"
NETWORKS = {"actor_hidden": (16,), "critic_hidden": (16, 8), "layer_norm": True}


@dataclass(frozen=True)
class Shared:
    """A training that ends after each of ``stops`` and is resumed from its checkpoint."""

    algorithm: str
    env: str
    settings: ShacSettings | PpoSettings
    stops: tuple[int, ...]

    def run(self, out: Path, ranks=None) -> None:
        for index, until in enumerate(self.stops):
            options = RunOptions(self.env, out=out, dtype="float64", until=until, resume=index > 0)
            prepare(self.algorithm, options, self.settings, ranks).run()


# 6 worlds x 7 steps = 42 samples in minibatches of 9 or 11, which two processes cannot halve
SHAC = ShacSettings(num_envs=6, horizon=7, critic_minibatches=5, stagger=True, **NETWORKS)
PPO = PpoSettings(num_envs=6, horizon=7, entropy_weight=0.01, **NETWORKS)
# 2 worlds x 2 steps = 4 samples in minibatches of one: one process has none
CRUMBS = {"num_envs": 2, "horizon": 2}
CASES = {
    "shac": Shared("shac", TOY, SHAC, (4,)),
    "shac-resumed": Shared("shac", TOY, SHAC, (2, 4)),
    "shac-crumbs": Shared("shac", TOY, ShacSettings(**CRUMBS, **NETWORKS), (3,)),
    "ppo": Shared("ppo", TOY, PPO, (4,)),
    "ppo-resumed": Shared("ppo", TOY, PPO, (2, 4)),
    "ppo-crumbs": Shared("ppo", TOY, PpoSettings(**CRUMBS, **NETWORKS), (3,)),
    "robot": Shared("shac", ROBOT, ShacSettings(num_envs=8, horizon=8, **NETWORKS), (3,)),
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    with launched(os.environ).joined("cpu") as together:
        for name, case in CASES.items():
            case.run(Path(sys.argv[1]) / name, together)
