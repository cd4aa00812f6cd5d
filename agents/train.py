"""Running an algorithm on an environment: run folder, log, checkpoints, resuming, stopping.

The algorithm is one ``update`` an iteration; everything here is the same for all of them.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch
from tyro.conf import Positional

from agents import atomic, checkpoint, environment, provenance
from agents.checkpoint import Checkpoint
from agents.episodes import EpisodeStatistics, Window
from agents.log import Silence, TrainingLog
from agents.parallel import Alone
from agents.ppo import Ppo, PpoSettings
from agents.settings import settings_for, too_few_worlds
from agents.shac import Shac, ShacSettings
from agents.stop import StopRequest

CONFIG = "config.json"
ALGORITHMS = MappingProxyType({"shac": Shac, "ppo": Ppo})


@dataclass(frozen=True)
class RunOptions:
    """Where and how a training runs; what it learns with is in the algorithm's settings."""

    env: Positional[str]
    """Gymnasium id, or module:id."""
    contact: str = "smoothed"
    """Contact law: smoothed, hard or soft."""
    seed: int = 0
    """Of the worlds, the weights and the noise."""
    out: Path | None = None
    """Run folder (default: runs/ENV-ALGORITHM-CONTACT-SEED)."""
    resume: bool = False
    """Continue the run in the folder, to the same curve as without the break."""
    threads: int = 1
    """CPU threads of the simulation."""
    network_threads: int = 1
    """CPU threads of the networks; small ones are fastest on one."""
    device: str = "cpu"
    """Device of worlds and networks; under torchrun "cuda" is one device a process."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of worlds and networks."""
    until: int | None = None
    """Stop with a checkpoint after this iteration; schedules still run to the full number."""
    target: float | None = None
    """Stop with a checkpoint once the last episodes of all worlds, whose mean is logged as the return, reach this."""
    judge: int = 0
    """Episodes in which the policy is judged after training, as `evaluate` does it; 0 for none."""
    checkpoint_minutes: float = 3.0
    """Minutes between checkpoints."""

    def __post_init__(self) -> None:
        if self.target is not None and math.isnan(self.target):
            raise ValueError("target is nan in RunOptions: expected a return")
        if self.judge < 0:
            raise ValueError(f"judge is {self.judge} in RunOptions: expected a number of episodes, 0 for none")


def train_shac(env: str, *, settings: ShacSettings | None = None, **options: Any) -> Path:
    """Trains SHAC; ``options`` are the fields of :class:`RunOptions`. Returns the run folder."""
    return prepare("shac", RunOptions(env, **options), settings).run()


def train_ppo(env: str, *, settings: PpoSettings | None = None, **options: Any) -> Path:
    """Trains PPO; ``options`` are the fields of :class:`RunOptions`. Returns the run folder."""
    return prepare("ppo", RunOptions(env, **options), settings).run()


def prepare(algorithm: str, options: RunOptions, settings: Any = None, ranks: Alone | None = None) -> Training:
    """Checks everything, makes environment and agent, loads the checkpoint to resume from.

    Args:
        settings: None for those of the run being resumed, or of the environment's row; ``num_envs`` counts the
            worlds of all processes.
        ranks: the processes that train together, joined; None for this one alone.

    Raises:
        ValueError: bad options or settings, or a checkpoint of another run. FileNotFoundError: nothing to
            resume.
        FileExistsError: a run is already there. Nothing has been written in any of these cases.
    """
    name = f"{options.env.split(':')[-1]}-{algorithm}-{options.contact}-{options.seed}"
    directory = Path(options.out or Path("runs") / name)
    ranks = ranks or Alone(device=options.device)
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"{directory} is a file: choose another --out")
    if options.resume:
        saved, used = resumed(algorithm, directory, mend=ranks.leads)
        settings = settings or used
        _require_same_run(directory, saved.card, options, settings, used)
    else:
        if (directory / checkpoint.TENSORS).exists():
            raise FileExistsError(f"{directory} holds a run: continue it by --resume or choose another --out")
        saved, settings = None, settings or settings_for(algorithm, options.env)
    share = ranks.share(settings.num_envs)
    doubt = too_few_worlds(algorithm, options.env, settings.num_envs)
    if doubt and ranks.leads:
        warnings.warn(doubt, stacklevel=2)
    environment.use_threads(options.network_threads)
    envs = environment.make(
        options.env,
        share,
        contact=options.contact,
        device=ranks.device,
        dtype=options.dtype,
        threads=options.threads,
    )
    training = Training(ALGORITHMS[algorithm], settings, options, envs, directory, ranks)
    if saved is not None:
        training.load(saved)
    return training


def resumed(algorithm: str, directory: Path, *, mend: bool = True) -> tuple[Checkpoint, Any]:
    """Checkpoint and settings of the run in a folder; ``mend`` as in :func:`agents.checkpoint.load`.

    Raises:
        FileNotFoundError: none there. ValueError: it is damaged or of another algorithm.
    """
    saved = checkpoint.load(directory, mend=mend)
    checkpoint.require_same(directory, saved.card, algorithm=algorithm)
    return saved, settings_of(saved.card)


def settings_of(card: dict) -> Any:
    """The settings recorded in a checkpoint's card."""
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in card["settings"].items()}
    return ALGORITHMS[card["algorithm"]].settings_type(**values)


class Training:
    """A training that is ready to run; see :func:`prepare`."""

    def __init__(
        self, kind: type, settings: Any, options: RunOptions, envs: Any, directory: Path, ranks: Alone
    ) -> None:
        self.settings = settings
        self.options = options
        self.envs = envs
        self.directory = directory
        self.ranks = ranks
        torch.manual_seed(options.seed)  # for environments that draw from torch's own stream
        observation = environment.reset(envs, options.seed, stagger=settings.stagger, ranks=ranks)
        ranks.whole(envs.unwrapped.state_dict(), envs.num_envs)  # refuses now what no checkpoint could hold
        self.agent = kind(
            settings,
            *environment.widths(envs),
            seed=options.seed,
            dtype=observation.dtype,
            device=observation.device,
            ranks=ranks,
        )
        for _, tensor in checkpoint.leaves(self.agent.state_dict()):
            ranks.follow(tensor)  # machines may differ in the last bit of what they make of a seed
        self.episodes = EpisodeStatistics(
            settings.num_envs, partial=settings.stagger, dtype=observation.dtype, device=observation.device
        )
        self.iteration = 0
        self.seconds = 0.0
        self.counters = {"nonfinite": 0, "skipped": 0, "falls": 0}

    @property
    def samples(self) -> int:
        """Control steps of all worlds so far."""
        return self.iteration * self.settings.horizon * self.settings.num_envs

    def run(self) -> Path:
        """Trains to the last iteration; returns the run folder.

        Raises:
            KeyboardInterrupt, SystemExit: Ctrl-C or SIGTERM came; the iteration was finished and a checkpoint
                saved.
        """
        until = self.options.until
        last = self.settings.iterations if until is None else min(self.settings.iterations, until)
        total = self.settings.iterations
        if self.ranks.leads:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._record_config()
        print(f"{self.agent.name} on {self.options.env}, {self.options.contact} contact: {self.directory}")
        print(f"iterations {self.iteration} to {last} of {total}")
        saved = time.monotonic()
        with StopRequest() as stop, self._open_log() as log:
            while self.iteration < last and not self._stops(stop):
                started = time.perf_counter()
                window, numbers = self.agent.update(self.envs, self.iteration)
                self.episodes.update(window)
                self.iteration += 1
                line = self._line(window, numbers, time.perf_counter() - started)
                log.write(line)
                if self._arrives(line["return"]):
                    break
                # Clocks differ and a checkpoint takes all processes: the first whose time is up decides.
                if self.ranks.largest(time.monotonic() - saved > 60.0 * self.options.checkpoint_minutes):
                    self.save()
                    saved = time.monotonic()
            self.save()
        print(f"saved {self.directory / checkpoint.TENSORS}: iteration {self.iteration}, step {self.samples}")
        stop.leave()
        return self.directory

    def save(self) -> None:
        """Writes a checkpoint from which :meth:`load` continues exactly."""
        card = self._identity() | {
            "iteration": self.iteration,
            "samples": self.samples,
            "seconds": self.seconds,
            "counters": self.counters,
            "settings": asdict(self.settings),
        }
        tensors = {
            "agent": self.agent.state_dict(),
            "episodes": self.episodes.state_dict(),
            "env": self.ranks.whole(self.envs.unwrapped.state_dict(), self.envs.num_envs),
            "torch": {"rng": torch.get_rng_state()},
        }
        if self.ranks.leads:
            checkpoint.save(self.directory, Checkpoint(card, tensors))
        self.ranks.meet()  # whoever returns finds it written

    def load(self, saved: Checkpoint) -> None:
        """Continues from a checkpoint and says where."""
        self.agent.load_state_dict(saved.tensors["agent"])
        self.episodes.load_state_dict(saved.tensors["episodes"])
        self.envs.unwrapped.load_state_dict(self.ranks.own(saved.tensors["env"]))
        torch.set_rng_state(saved.tensors["torch"]["rng"])
        self.iteration = saved.card["iteration"]
        self.seconds = saved.card["seconds"]
        self.counters = dict(saved.card["counters"])
        file = self.directory / checkpoint.TENSORS
        print(f"resuming {file}: iteration {self.iteration}, step {self.samples}")

    def _open_log(self) -> TrainingLog | Silence:
        if not self.ranks.leads:
            return Silence()
        return TrainingLog(self.directory, self.iteration, self.settings.iterations)

    def _stops(self, stop: StopRequest) -> bool:
        """Whether any process was asked to stop; then all are, after the same iteration."""
        if asked := self.ranks.largest(stop.signal or 0):
            stop.signal = asked
        return bool(asked)

    def _arrives(self, episode_return: float | None) -> bool:
        """Whether the return that was asked for is there."""
        target = self.options.target
        there = target is not None and episode_return is not None and episode_return >= target
        return bool(self.ranks.largest(there))

    def _line(self, window: Window, numbers: dict[str, float], seconds: float) -> dict:
        episode_return, length = self.episodes.means()
        self.seconds += seconds
        good = ~window.nonfinite
        events = {
            "nonfinite": int(window.nonfinite.sum()),
            "skipped": numbers["skipped"],
            "falls": int(window.terminated.sum()),
        }
        self.counters = {name: total + events[name] for name, total in self.counters.items()}
        return {
            "iteration": self.iteration,
            "samples": self.samples,
            "seconds": self.seconds,
            "return": episode_return,
            "length": length,
            "reward": float(window.rewards[good].mean()),
            **numbers,
            **events,
            "metrics": {
                name: {"mean": float(value[good].mean()), "rms": float(value[good].square().mean().sqrt())}
                for name, value in window.metrics.items()
            },
            "seconds_iteration": seconds,
        }

    def _identity(self) -> dict:
        options = self.options
        return {
            "algorithm": self.agent.name,
            "env": options.env,
            "contact": options.contact,
            "seed": options.seed,
            "dtype": options.dtype,
        }

    def _record_config(self) -> None:
        """Writes what the run is made with; a resumed run keeps that and lists each continuation."""
        path = self.directory / CONFIG
        made_with = provenance.describe()
        if self.iteration and path.exists():
            config = json.loads(path.read_text(encoding="utf-8"))
            continued = {"iteration": self.iteration, "processes": self.ranks.size, **made_with}
            config["resumed"] = [*config.get("resumed", []), continued]
        else:
            options = self.options
            place = {"device": options.device, "threads": options.threads, "processes": self.ranks.size}
            config = self._identity() | place | {"network_threads": options.network_threads} | made_with
        atomic.replace_text(path, json.dumps(config | {"settings": asdict(self.settings)}, indent=2))


def _require_same_run(directory: Path, card: dict, options: RunOptions, settings: Any, used: Any) -> None:
    """Refuses to continue another run's checkpoint; only the number of iterations may grow."""
    checkpoint.require_same(
        directory, card, env=options.env, contact=options.contact, seed=options.seed, dtype=options.dtype
    )
    checkpoint.require_same(directory, asdict(used), **asdict(replace(settings, iterations=used.iterations)))
    if settings.iterations < card["iteration"]:
        raise ValueError(
            f"iterations is {settings.iterations}: the checkpoint in {directory} has done {card['iteration']}"
        )
