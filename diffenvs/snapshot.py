"""States, parameters and random streams as one flat dictionary of tensors, and back."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from diffenvs.parameters import Parameters
from diffenvs.task import TENSOR_FIELDS, State


def flatten_state(state: State, prefix: str = "") -> dict[str, Tensor]:
    """Tensors of a state by name, detached; those of its memory as "memory.<name>"."""
    tensors = {name: getattr(state, name) for name in TENSOR_FIELDS}
    tensors |= {f"memory.{name}": value for name, value in state.memory.items()}
    return {prefix + name: value.detach() for name, value in tensors.items()}


def restore_state(tensors: Mapping[str, Tensor], like: State, prefix: str = "") -> State:
    """Inverse of `flatten_state`, for a state with the memory of `like`."""
    memory = {name: tensors[f"{prefix}memory.{name}"] for name in like.memory}
    return State(*(tensors[prefix + name] for name in TENSOR_FIELDS), memory)


def flatten_parameters(parameters: Parameters, prefix: str) -> dict[str, Tensor]:
    """Tensors of the physical parameters by name, detached."""
    return {prefix + name: getattr(parameters, name).detach() for name in Parameters.names()}


def restore_parameters(tensors: Mapping[str, Tensor], prefix: str) -> Parameters:
    """Inverse of `flatten_parameters`."""
    return Parameters(*(tensors[prefix + name] for name in Parameters.names()))


def require_same_shapes(given: Any, wanted: Mapping[str, Tensor], what: str) -> None:
    """Raise ValueError, naming the first difference, unless both hold the same names, dtypes and shapes."""
    if odd := sorted(given.keys() ^ wanted.keys()):
        raise ValueError(f"{what} is of another environment: {', '.join(odd)} in one and not in the other")
    for name, value in wanted.items():
        if given[name].shape != value.shape or given[name].dtype != value.dtype:
            raise ValueError(
                f"{name} of the {what} is {given[name].dtype} of shape {tuple(given[name].shape)}; "
                f"expected {value.dtype} of shape {tuple(value.shape)}"
            )
