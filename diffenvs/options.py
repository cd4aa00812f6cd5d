"""Reading what an environment is made with. Each function returns the value in one form or says what is wrong
with it."""

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from gymnasium.vector import AutoresetMode

from diffenvs.bridge import check_device


def read_count(name: str, value: Any) -> int:
    """An integer of at least one."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 1:
        raise ValueError(f"{name} is {value!r}; expected an integer of at least 1")
    return operator.index(value)


def read_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """One of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")
    return value


def read_limit(value: int | None, default: int) -> int | None:
    """Time limit in control steps: `default` for None, None (endless) for -1."""
    if value is None:
        return default
    if value == -1:
        return None
    return read_count("max_episode_steps", value)


def read_dtype(value: str | torch.dtype) -> torch.dtype:
    """float32 or float64, by name or as a torch dtype."""
    return getattr(torch, read_choice("dtype", str(value).removeprefix("torch."), ("float32", "float64")))


def read_autoreset_mode(value: str | AutoresetMode) -> AutoresetMode:
    """SAME_STEP or DISABLED, by value or as Gymnasium's enumeration."""
    offered = (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
    for mode in offered:
        if value in (mode, mode.value):
            return mode
    raise ValueError(f"autoreset_mode is {value!r}; expected {' or '.join(str(mode) for mode in offered)}")


def read_device(value: str | torch.device) -> torch.device:
    """The CPU, or a CUDA device that is there; the latter comes with a warning."""
    device = check_device(value)
    if device.type != "cpu":
        warnings.warn(f"device {str(device)!r} runs the same code as 'cpu' but is untested", stacklevel=3)
    return device
