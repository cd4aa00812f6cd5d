"""An iteration of SHAC, split as the agent itself splits it: rollout, backward, critic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import median

from agents.environment import make, reset, widths
from agents.settings import settings_for
from agents.shac import Shac

PARTS = ("rollout", "backward", "critic")
SEED = 0
WARM_UP = 2  # iterations: compilation, first allocations


@dataclass(frozen=True)
class Training:
    """A training whose iterations are timed: environment, steps in a window; the rest as the agent has it set."""

    env: str
    horizon: int
    threads: int
    num_envs: int | None = None
    contact: str = "smoothed"


@dataclass(frozen=True)
class Split:
    """Seconds of the iterations of one training, by part; each list has one number a repetition."""

    training: Training
    num_envs: int
    seconds: dict[str, list[float]]

    @property
    def medians(self) -> dict[str, float]:
        """Median of the whole and of every part [s]."""
        return {name: median(values) for name, values in self.seconds.items()}

    def record(self) -> dict:
        """For JSON."""
        ranges = {name: {"min": min(v), "median": median(v), "max": max(v)} for name, v in self.seconds.items()}
        return asdict(self.training) | {"num_envs": self.num_envs, "seconds": ranges}


def time_iterations(training: Training, repetitions: int, say: Callable[[str], None]) -> Split:
    """Run the training for a few iterations from its start; networks on one thread."""
    settings = replace(settings_for("shac", training.env), horizon=training.horizon)
    if training.num_envs is not None:
        settings = replace(settings, num_envs=training.num_envs)
    say(f"SHAC, {training.env}, {settings.num_envs} x {training.horizon}, {training.threads} threads")
    place = {"contact": training.contact, "device": "cpu", "dtype": "float32", "threads": training.threads}
    envs = make(training.env, settings.num_envs, **place)
    observation = reset(envs, SEED, stagger=settings.stagger)
    agent = Shac(settings, *widths(envs), seed=SEED, dtype=observation.dtype, device=observation.device)
    seconds: dict[str, list[float]] = {name: [] for name in (*PARTS, "iteration")}
    for iteration in range(WARM_UP + repetitions):
        _, numbers = agent.update(envs, iteration)
        if iteration >= WARM_UP:
            parts = {name: numbers[f"seconds_{name}"] for name in PARTS}
            for name, value in (parts | {"iteration": sum(parts.values())}).items():
                seconds[name].append(value)
    envs.close()
    return Split(training, settings.num_envs, seconds)
