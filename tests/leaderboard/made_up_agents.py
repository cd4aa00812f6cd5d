"""A stand-in for `python -m agents` that trains nothing and keeps the run folder's contract.

Config, log, checkpoint every fifth iteration and at SIGINT, resume, evaluation. The return of an iteration is
its number plus the seed. Copied as agents/__main__.py into a folder with two files: `pace`, the seconds an
iteration takes; `broken`, if there, a contact law under which everything fails.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    """Note the call, then train or evaluate."""
    given = arguments()
    with open("calls", "a") as calls:
        calls.write(" ".join(sys.argv[1:]) + "\n")
    assert os.environ["OMP_NUM_THREADS"] == "1"
    if Path("broken").exists() and given.contact == Path("broken").read_text():
        sys.exit("error: the law is broken")
    if given.command == "evaluate":
        evaluate(given)
    else:
        train(given)


def arguments() -> argparse.Namespace:
    """What leaderboards say to agents."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("target")
    parser.add_argument("--contact")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--threads")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--episodes", type=int)
    parser.add_argument("--stochastic", action="store_true")
    return parser.parse_args()


def put(path: Path, value: dict) -> None:
    """A JSON file, whole or not at all."""
    path.with_suffix(".tmp").write_text(json.dumps(value))
    os.replace(path.with_suffix(".tmp"), path)


def evaluate(given: argparse.Namespace) -> None:
    """1000 in the law trained in, 900 in another."""
    folder = Path(given.target)
    card = json.loads((folder / "checkpoint.json").read_text())
    score = 1000.0 if given.contact == card["contact"] else 900.0
    name = given.contact + ("-stochastic" if given.stochastic else "")
    said = {"episodes": given.episodes, "trained": {"iteration": card["iteration"]}, "seed": 1000}
    said |= {
        "return_mean": score,
        "return_std": 10.0,
        "return_min": 1.0,
        "length_mean": 800.0,
        "length_std": 5.0,
    }
    said |= {"falls": 1, "nonfinite": 0, "metrics": {"forward_velocity": {"mean": 0.9, "rms": 1.0}}}
    put(folder / f"evaluate-{name}.json", said | {"returns": [score] * given.episodes})


def train(given: argparse.Namespace) -> None:
    """Log a line an iteration; nothing else happens."""
    folder, log = given.out, given.out / "log.jsonl"
    if given.resume:
        start = json.loads((folder / "checkpoint.json").read_text())["iteration"]
        kept = log.read_text().splitlines()[:start]
    else:
        if (folder / "config.json").exists():
            sys.exit("error: holds a run")
        start, kept = 0, []
        folder.mkdir(parents=True)
        config = {"env": given.target, "contact": given.contact, "seed": given.seed, "commit": "c" * 40}
        config |= {"settings": {"iterations": given.iterations, "num_envs": given.num_envs}}
        put(folder / "config.json", config | {"versions": {"python": "3"}})
    log.write_text("".join(f"{line}\n" for line in kept))
    stopped = []
    signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
    with log.open("a") as file:
        for iteration in range(start + 1, given.iterations + 1):
            time.sleep(float(Path("pace").read_text()))
            line = {
                "iteration": iteration,
                "samples": 10 * iteration,
                "seconds": 0.5 * iteration,
                "length": 8.0,
            }
            line |= {"return": None if iteration == 1 else float(iteration + given.seed), "grad_norm": 0.1}
            line |= {"nonfinite": int(iteration == 2), "seconds_iteration": 0.5, "seconds_rollout": 0.2}
            file.write(json.dumps(line) + "\n")
            file.flush()
            if iteration % 5 == 0 or iteration == given.iterations or stopped:
                (folder / "checkpoint.safetensors").write_bytes(b"weights")
                put(folder / "checkpoint.json", {"iteration": iteration, "contact": given.contact})
            if stopped:
                sys.exit(130)


main()
