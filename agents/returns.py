"""Value targets as pure functions of tensors of shape (T, N): steps by worlds.

``next_values[t]`` is the value of the observation *after* step t and *before* any reset. A termination ends
the future: its value counts as 0. A truncation only ends the recording: its value is used. Where both happen
in one step, the termination holds.
"""

from __future__ import annotations

import torch
from torch import Tensor


def td_lambda(
    rewards: Tensor, next_values: Tensor, terminated: Tensor, truncated: Tensor, gamma: float, lam: float
) -> Tensor:
    """TD(lambda) targets, shape (T, N) (Xu et al. 2022, Eq. 6, as a backward recursion).

    G_t = r_t + gamma ((1 - lam) V_t+1 + lam G_t+1), with G_t+1 = V_t+1 at a truncation and at the window's
    end, and both 0 at a termination.
    """
    future = next_values.masked_fill(terminated, 0.0)
    ended = terminated | truncated
    targets = torch.empty_like(rewards)
    following = future[-1]
    for t in reversed(range(len(rewards))):
        following = torch.where(ended[t], future[t], following)
        following = rewards[t] + gamma * torch.lerp(future[t], following, lam)
        targets[t] = following
    return targets


def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
    lam: float,
) -> Tensor:
    """Generalised advantage estimates, shape (T, N) (Schulman et al. 2016, Eq. 16).

    A_t = d_t + gamma lam A_t+1 with d_t = r_t + gamma V_t+1 - V_t; A_t+1 is 0 after an episode's end and
    after the window. ``values[t]`` is the value of the observation that action t was chosen from.
    """
    deltas = rewards + gamma * next_values.masked_fill(terminated, 0.0) - values
    decay = (gamma * lam) * (~(terminated | truncated)).to(rewards.dtype)
    advantages = torch.empty_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = torch.addcmul(deltas[t], decay[t], following)
        advantages[t] = following
    return advantages
