"""Making the vector environment that an agent trains or is judged in."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from agents.parallel import ALONE, Alone


def make(env: str, num_envs: int, *, contact: str, device: str, dtype: str, threads: int):
    """A torch vector environment.

    Args:
        env: Gymnasium id; ``module:id`` imports the module which registers it, a plain id is one of
            diffenvs'.

    Raises:
        ValueError: unknown id, or an environment that has no rollouts.
    """
    if ":" not in env:
        import diffenvs  # noqa: F401 (registers its environments; a toy needs no simulator)
    try:
        envs = gym.make_vec(
            env,
            num_envs=num_envs,
            contact=contact,
            device=device,
            dtype=dtype,
            threads=threads,
            array_type="torch",
        )
    except gym.error.Error as error:
        raise ValueError(str(error)) from error
    if not hasattr(envs.unwrapped, "rollout"):
        raise ValueError(f"{env} has no rollout(): these agents need a torch environment with rollouts")
    return envs


def reset(envs, seed: int, *, stagger: bool = False, ranks: Alone = ALONE) -> Tensor:
    """Begins all worlds; returns the observations (N, obs).

    Every world gets its own well-mixed seed: with seed, seed + 1, ... two runs with neighbouring seeds would
    share almost all of their worlds. The worlds are this process's part of all ``ranks``'.
    """
    total = envs.num_envs * ranks.size
    seeds = np.random.SeedSequence(seed).generate_state(total, np.uint32)[ranks.part(total)].tolist()
    observation, _ = envs.reset(seed=seeds, options={"stagger": stagger})
    return observation


def widths(envs) -> tuple[int, int]:
    """Widths of one world's observation and action."""
    return envs.single_observation_space.shape[0], envs.single_action_space.shape[0]


def use_threads(threads: int) -> None:
    """Sets the CPU threads of this process's networks.

    Raises:
        ValueError: not a positive number.
    """
    if threads < 1:
        raise ValueError(f"network_threads is {threads}: expected 1 or more")
    torch.set_num_threads(threads)
