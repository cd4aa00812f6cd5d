"""Judging a trained policy: one episode in each of many worlds, in any contact law."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor

from agents import atomic, checkpoint, environment
from agents.train import ALGORITHMS, settings_of


def evaluate_run(
    run_dir: str | Path,
    contact: str | None = None,
    episodes: int = 100,
    deterministic: bool = True,
    seed: int = 1000,
    *,
    threads: int = 1,
) -> dict:
    """Runs the policy of a run folder and writes ``evaluate-<contact>[-stochastic].json`` there.

    Args:
        contact: law to judge in; None for the one trained in.
        episodes: number of worlds; the first episode of each counts.
        deterministic: act with the mean, not with a sample.
        seed: of the worlds and of the action noise.

    Returns:
        The record that was written. Returns are sums of rewards, lengths control steps, ``std`` over
        episodes, metrics over all counted steps.

    Raises:
        FileNotFoundError: no checkpoint there. ValueError: bad arguments.
    """
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}: expected 1 or more")
    directory = Path(run_dir)
    saved = checkpoint.load(directory)
    card = saved.card
    contact = contact or card["contact"]
    environment.use_threads(1)
    envs = environment.make(card["env"], episodes, contact=contact, device="cpu", dtype=card["dtype"], threads=threads)
    observation = environment.reset(envs, seed)
    agent = ALGORITHMS[card["algorithm"]](
        settings_of(card), *environment.widths(envs), seed=seed, dtype=observation.dtype
    )
    agent.load_state_dict(saved.tensors["agent"])
    measured = first_episodes(envs, agent, observation, deterministic=deterministic, seed=seed)
    record = {
        "env": card["env"],
        "contact": contact,
        "episodes": episodes,
        "deterministic": deterministic,
        "seed": seed,
        "trained": {k: card[k] for k in ("algorithm", "contact", "seed", "iteration", "samples")},
        **measured,
    }
    suffix = "" if deterministic else "-stochastic"
    atomic.replace_text(directory / f"evaluate-{contact}{suffix}.json", json.dumps(record, indent=2))
    return record


@torch.no_grad()
def first_episodes(envs, agent, observation: Tensor, *, deterministic: bool, seed: int) -> dict:
    """Steps until every world has finished one episode; statistics of those episodes."""
    generator = torch.Generator(observation.device).manual_seed(seed)
    worlds, actions = envs.num_envs, envs.single_action_space.shape[0]
    running = torch.ones(worlds, dtype=torch.bool, device=observation.device)
    fell, broke = torch.zeros_like(running), torch.zeros_like(running)
    returns = torch.zeros(worlds, dtype=torch.float64, device=observation.device)
    lengths = torch.zeros(worlds, dtype=torch.int64, device=observation.device)
    sums: dict[str, Tensor] = {}
    while bool(running.any()):
        noise = None
        if not deterministic:
            noise = torch.randn(
                worlds, actions, generator=generator, dtype=observation.dtype, device=observation.device
            )
        observation, reward, terminated, truncated, info = envs.step(agent.act(observation, noise))
        returns += reward.double().masked_fill(~running, 0.0)
        lengths += running
        broke |= running & info["nonfinite"]
        fell |= running & terminated
        counted = running & ~info["nonfinite"]
        for name, value in info["metrics"].items():
            value = value.double()[counted]
            total = sums.setdefault(name, torch.zeros(2, dtype=torch.float64, device=value.device))
            total += torch.stack([value.sum(), value.square().sum()])
        running &= ~(terminated | truncated)
    steps = int(lengths.sum()) - int(broke.sum())
    return {
        "return_mean": float(returns.mean()),
        "return_std": float(returns.std(correction=0)),
        "return_min": float(returns.min()),
        "length_mean": float(lengths.double().mean()),
        "length_std": float(lengths.double().std(correction=0)),
        "falls": int((fell & ~broke).sum()),
        "nonfinite": int(broke.sum()),
        "metrics": {
            name: {"mean": float(total[0]) / steps, "rms": (float(total[1]) / steps) ** 0.5}
            for name, total in sums.items()
        },
        "returns": returns.tolist(),
        "lengths": lengths.tolist(),
    }


def table(record: dict) -> str:
    """The record as a few lines for people."""
    trained = record["trained"]
    actions = "mean action" if record["deterministic"] else "sampled actions"
    lines = [
        f"{record['env']}, {trained['algorithm']} seed {trained['seed']}, iteration {trained['iteration']}",
        f"  trained in {trained['contact']} contact, judged in {record['contact']} contact",
        f"  {record['episodes']} episodes, {actions}",
        f"  return      {record['return_mean']:10.2f} +- {record['return_std']:.2f}",
        f"  length      {record['length_mean']:10.1f} control steps",
        f"  falls       {record['falls']:10d}   non-finite {record['nonfinite']}",
    ]
    width = max((len(name) for name in record["metrics"]), default=0)
    for name, value in record["metrics"].items():
        lines.append(f"  {name:{width}}  mean {value['mean']:9.4f}   rms {value['rms']:9.4f}")
    return "\n".join(lines)
