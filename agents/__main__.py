"""Train and judge the bundled agents.

  python -m agents shac ENV [--contact smoothed] [--seed 0] [--out RUN]           train through the simulation
  python -m agents ppo ENV [--contact smoothed] [--seed 0] [--out RUN]            train from samples
  python -m agents shac ENV --out RUN --resume                                    continue a run
  python -m agents evaluate RUN [--contact hard] [--episodes 100] [--stochastic]  judge a trained policy

ENV is a Gymnasium id such as DiffQuadruped-v0 or DiffAnymal-v0; --help lists a command's options with the
defaults for that environment. RUN is a folder: config.json, log.jsonl, TensorBoard files and a checkpoint.
Ctrl-C saves before it stops.

  torchrun --standalone --nproc-per-node=2 -m agents shac ENV ...                 the same in two processes
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro
from tyro.conf import OmitArgPrefixes, Positional

from agents.evaluate import evaluate_run, table
from agents.parallel import Alone, LostRank, launched
from agents.ppo import PpoSettings
from agents.settings import settings_for
from agents.shac import ShacSettings
from agents.train import RunOptions, prepare, resumed


@dataclass(frozen=True)
class _Shac:
    """Train by short-horizon actor-critic: the gradient comes through the simulation."""

    run: RunOptions
    settings: ShacSettings


@dataclass(frozen=True)
class _Ppo:
    """Train by proximal policy optimisation: the gradient comes from samples."""

    run: RunOptions
    settings: PpoSettings


@dataclass(frozen=True)
class _Evaluate:
    """Run a trained policy for one episode in each of many worlds and write the result beside it."""

    run: Positional[Path]
    """Run folder."""
    contact: str | None = None
    """Contact law to judge in (default: the one trained in)."""
    episodes: int = 100
    """Number of worlds, one episode each."""
    stochastic: bool = False
    """Sample actions instead of taking the mean."""
    seed: int = 1000
    """Of the worlds and the noise."""
    threads: int = 1
    """CPU threads of the simulation."""


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    command, *rest = arguments
    commands = {"shac": _train, "ppo": _train, "evaluate": _evaluate}
    if command not in commands:
        return _refuse(f"unknown command {command!r}: expected {', '.join(commands)}")
    return commands[command](command, rest)


def _train(algorithm: str, arguments: list[str]) -> int:
    ranks = Alone()
    try:
        ranks = launched(os.environ)
        options = _parse(algorithm, arguments, ranks)
        ranks.share(options.settings.num_envs)
        device = ranks.place(options.run.device)
    except (ValueError, TypeError, OSError) as error:
        return _refuse(str(error), aloud=ranks.speaks)
    try:
        with ranks.joined(device) as together:
            try:
                training = prepare(algorithm, options.run, options.settings, together)
            except (ValueError, TypeError, OSError) as error:
                return _refuse(str(error), aloud=ranks.speaks)
            training.run()
            if options.run.judge and ranks.leads:
                print(table(evaluate_run(training.directory, None, options.run.judge, threads=options.run.threads)))
    except LostRank as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def _parse(algorithm: str, arguments: list[str], ranks: Alone) -> _Shac | _Ppo:
    """Reads the command line twice: first for the environment, whose row gives the defaults of the second.

    When resuming, the defaults are those of the run, so that what is not given there stays as it was.
    """
    form = {"shac": _Shac, "ppo": _Ppo}[algorithm]
    default = form(RunOptions(tyro.MISSING), settings_for(algorithm, ""))
    # Help waits for the second reading, unless there is no environment to read.
    plain = [word for word in arguments if word not in ("-h", "--help")]
    first = _read(form, algorithm, plain or arguments, default).run
    settings, recorded = settings_for(algorithm, first.env), {}
    if first.resume:
        if first.out is None:
            raise ValueError("--resume needs the run folder: --out PATH")
        saved, settings = resumed(algorithm, first.out, mend=ranks.leads)
        recorded = {name: saved.card[name] for name in ("contact", "seed", "dtype")}
    return _read(form, algorithm, arguments, form(RunOptions(tyro.MISSING, **recorded), settings))


def _evaluate(command: str, arguments: list[str]) -> int:
    options = _read(_Evaluate, command, arguments)
    try:
        record = evaluate_run(
            options.run,
            options.contact,
            options.episodes,
            not options.stochastic,
            options.seed,
            threads=options.threads,
        )
    except (ValueError, TypeError, OSError) as error:
        return _refuse(str(error))
    print(table(record))
    return 0


def _read(form: type, command: str, arguments: list[str], default=None):
    options = {} if default is None else {"default": default}
    return tyro.cli(OmitArgPrefixes[form], prog=f"python -m agents {command}", args=arguments, **options)


def _refuse(sentence: str, *, aloud: bool = True) -> int:
    """Says why not; returns the exit status.

    A process beside one that says the same leaves the failure to it as well: torchrun ends all at the first that
    fails, perhaps before another has spoken.
    """
    if not aloud:
        return 0
    print(f"error: {sentence}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
