"""`python -m leaderboard run contact-models --preset quick`: the paper's experiments, one command each."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from leaderboard import conduct
from leaderboard.experiments import EXPERIMENTS, experiment
from leaderboard.progress import Progress, duration
from leaderboard.protocol import Experiment, Preset
from leaderboard.schedule import Cores, available_cores

KNOWN = ", ".join(candidate.name for candidate in EXPERIMENTS)
Name = tyro.conf.Positional[Annotated[str, tyro.conf.arg(help=f"the experiment ({KNOWN}).")]]


def run(
    name: Name,
    /,
    preset: str = "quick",
    out: Path | None = None,
    cores: int | None = None,
) -> None:
    """Train, evaluate, print the table beside the paper's, and write JSON, Markdown and a figure.

    A run that was stopped or killed goes on where it was when the same command is given again.

    Args:
        preset: smoke (seconds, a test), quick (one seed), seeds (where there is one, several), paper (the
            published scale).
        out: where results, and runs under it, are written. Default: leaderboard/results/NAME/PRESET and
            runs/NAME/PRESET; a fresh temporary folder for smoke.
        cores: processes at a time; default: every core that this process may use.
    """
    chosen = experiment(name)
    scale = chosen.preset(preset)
    count = available_cores() if cores is None else cores
    if count < 1:
        raise ValueError(f"--cores must be at least 1, got {count}")
    results, work = folders(chosen, scale, out)
    with conduct.claimed(work) as inherit:
        jobs = conduct.jobs(chosen, scale, work)
        print(f"{chosen.title}: {len(jobs)} runs on {count} cores, in {work}", file=sys.stderr)
        began = time.monotonic()
        failures = Cores(count, conduct.CHECKOUT, inherit).run(jobs, Progress(len(jobs)))
        took = time.monotonic() - began
        records = conduct.collect(chosen, scale, work, results)
    if records:
        print()
        for table in chosen.tabulate(records):
            print(table.text())
        print(conduct.provenance(records))
        print(f"Took {duration(took)} on {count} cores; written to {results}")
    if failures:
        done = f"{len(records)} of {len(jobs)} runs are complete"
        raise RuntimeError(f"{len(failures)} failed, {done}; the same command tries the rest again")


def table(name: Name, /, preset: str = "quick", out: Path | None = None) -> None:
    """Print the tables of results that exist, and write their page and figure anew.

    Args:
        preset: smoke, quick, seeds or paper.
        out: the results folder; default: leaderboard/results/NAME/PRESET.
    """
    chosen = experiment(name)
    scale = chosen.preset(preset)
    results = conduct.default_results(chosen, scale) if out is None else out
    records = conduct.kept_records(chosen, scale, results)
    if not records:
        raise ValueError(f"{results} holds no results of {name} --preset {preset}")
    conduct.publish(chosen, scale, records, results)
    for item in chosen.tabulate(records):
        print(item.text())


def environments(out: Path | None = None) -> None:
    """Measure what every environment costs, and what random and zero actions earn in it; README.md shows it.

    Args:
        out: the JSON file; default: leaderboard/results/environments.json.
    """
    from leaderboard import documents, environment_facts  # bring the library, seconds to import

    environment_facts.write(documents.FACTS if out is None else out, lambda line: print(line, flush=True))


def readme() -> None:
    """Write the generated tables of README.md anew from the results and the library."""
    from leaderboard import documents  # brings the library, seconds to import, which no other command needs

    documents.refresh(conduct.CHECKOUT / "README.md")


def folders(chosen: Experiment, preset: Preset, out: Path | None) -> tuple[Path, Path]:
    """(results, work): where the JSON goes, and where the agents' run folders are.

    Raises ValueError when a preset that is not kept would write among the kept results.
    """
    if out is not None:
        out = out.resolve()
        if not preset.kept and out.is_relative_to(conduct.RESULTS):
            raise ValueError(f"--out {out}: preset {preset.name} must not write among the committed results")
        return out, out / "runs"
    if not preset.kept:
        folder = Path(tempfile.mkdtemp(prefix=f"{chosen.name}-{preset.name}-"))
        return folder, folder / "runs"
    return conduct.default_results(chosen, preset), conduct.CHECKOUT / "runs" / chosen.name / preset.name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    commands = {"run": run, "table": table, "environments": environments, "readme": readme}
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands, prog="python -m leaderboard", description=__doc__, args=arguments
        )
    except (ValueError, RuntimeError, OSError) as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except KeyboardInterrupt:
        print("\nleaderboard: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
