"""Reading the actions that callers bring."""

from typing import Any

import numpy as np
import torch
from torch import Tensor


def read_action(action: Any, shape: tuple[int, int], like: Tensor) -> Tensor:
    """`action` as a tensor of shape (N, nu) in the dtype and on the device of `like`; a tensor keeps its
    graph.

    Takes tensors, NumPy arrays and nested sequences of real numbers.

    Raises:
        TypeError: not real numbers, or a tensor on another device.
        ValueError: another shape, or a number that is not finite; names the first such world.
    """
    if not isinstance(action, Tensor):
        try:
            array = np.asarray(action)
        except ValueError:
            raise ValueError(f"action is a ragged sequence; {shape[0]} worlds expect {shape}") from None
        if array.dtype.kind not in "fiu":
            raise TypeError(f"action has dtype {array.dtype}; expected real numbers of shape {shape}")
        action = torch.as_tensor(np.require(array, requirements="CW"), dtype=like.dtype, device=like.device)
    elif action.dtype.is_complex or action.dtype == torch.bool:
        raise TypeError(f"action has dtype {action.dtype}; expected real numbers of shape {shape}")
    elif action.device != like.device:
        raise TypeError(f"action is on {action.device}, but the worlds are on {like.device}")
    if action.shape != shape:
        raise ValueError(f"action has shape {tuple(action.shape)}; {shape[0]} worlds expect {shape}")
    action = action.to(like.dtype)
    # x - x is zero for finite x and NaN otherwise; the sum decides in two operations what isfinite().all()
    # does in five.
    flat = action.detach()
    if torch.count_nonzero(flat - flat):
        world, index = (~torch.isfinite(flat)).nonzero()[0].tolist()
        raise ValueError(
            f"action of world {world} holds {flat[world, index].item()} at index {index}; "
            f"expected finite numbers of shape {shape}"
        )
    return action


def clip_action(action: Tensor) -> Tensor:
    """Action clipped to [-1, 1]: gradient one inside, zero outside."""
    return action.clamp(-1.0, 1.0)
