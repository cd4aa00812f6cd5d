"""What an environment is and costs: sizes, speed, and the returns of who does not learn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from agents.environment import make, reset, use_threads
from agents.evaluate import first_episodes
from diffenvs.registry import ENVS, Row
from leaderboard.benchmark.machine import machine, made_with
from leaderboard.records import write_json

WORLDS, HORIZON, REPETITIONS, SEED = 64, 32, 7, 0
LAW = "smoothed"


@dataclass(frozen=True)
class Facts:
    """Of one environment under smoothed contact.

    bodies: that move. contacts: points that can touch. timestep [s]: of the simulation. forward, gradient: control
    steps of one world a second, of 64 worlds on one thread, stepping alone and rollouts of 32 steps with their
    backward pass. random, zero: mean return of an episode with uniformly random and with zero actions.
    """

    observations: int
    actions: int
    bodies: int
    contacts: int
    control_timestep: float
    timestep: float
    forward: float
    gradient: float
    random: float
    zero: float


def write(
    path: Path,
    say: Callable[[str], None],
    rows: tuple[Row, ...] = ENVS,
    *,
    worlds: int = WORLDS,
    repetitions: int = REPETITIONS,
) -> dict[str, Facts]:
    """Measure every environment and write a JSON file."""
    here, facts = machine(), {}
    for row in rows:
        facts[row.id] = measure(row, worlds, repetitions)
        say(f"{row.id}: {facts[row.id]}")
    record = {"worlds": worlds, "law": LAW, "machine": here, **made_with()}
    record["environments"] = {name: asdict(found) for name, found in facts.items()}
    write_json(path, record)
    return facts


def read(path: Path) -> tuple[dict[str, Facts], dict[str, Any]]:
    """What `write` wrote: the facts by environment, and the whole record; nothing where there is no file."""
    if not path.exists():
        return {}, {}
    record = json.loads(path.read_text())
    return {name: Facts(**values) for name, values in record["environments"].items()}, record


def measure(row: Row, worlds: int, repetitions: int) -> Facts:
    """Facts of one environment."""
    use_threads(1)
    envs = make(row.id, worlds, contact=LAW, device="cpu", dtype="float32", threads=1)
    core = envs.unwrapped
    observations, actions = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    forward, gradient = _rates(envs, actions, worlds, repetitions)
    returns = [
        first_episodes(envs, agent, reset(envs, SEED), deterministic=True, seed=SEED)["return_mean"]
        for agent in (_Random(actions), _Zero(actions))
    ]
    model = core.model
    facts = Facts(
        observations=observations,
        actions=actions,
        bodies=len({int(body) for body in model.link_body}),
        contacts=model.ncontact,
        control_timestep=core.task.control_timestep,
        timestep=core.simulator.timestep,
        forward=forward,
        gradient=gradient,
        random=returns[0],
        zero=returns[1],
    )
    envs.close()
    return facts


def _rates(envs, actions: int, worlds: int, repetitions: int) -> tuple[float, float]:
    """Control steps a second: stepping, and rollouts with their gradient."""
    reset(envs, SEED)
    still = torch.zeros(worlds, actions)
    moved = torch.zeros(HORIZON, worlds, actions, requires_grad=True)

    def forward() -> None:
        for _ in range(HORIZON):
            envs.step(still)

    def backward() -> None:
        with envs.unwrapped.rollout(HORIZON) as rollout:
            for action in moved:
                rollout.step(action)
            loss = rollout.discounted_return(0.99)
        torch.autograd.grad(loss, moved)

    rates = []
    for work in (forward, backward):
        work()
        seconds = []
        for _ in range(repetitions):
            started = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - started)
        rates.append(worlds * HORIZON / median(seconds))
    return rates[0], rates[1]


class _Zero:
    """An agent that does nothing."""

    def __init__(self, actions: int):
        self.actions = actions

    def act(self, observation: torch.Tensor, noise: torch.Tensor | None) -> torch.Tensor:
        return observation.new_zeros(len(observation), self.actions)


class _Random:
    """An agent that draws actions uniformly within their bounds."""

    def __init__(self, actions: int):
        self.actions = actions
        self.generator = torch.Generator().manual_seed(SEED)

    def act(self, observation: torch.Tensor, noise: torch.Tensor | None) -> torch.Tensor:
        return 2.0 * torch.rand(len(observation), self.actions, generator=self.generator) - 1.0
