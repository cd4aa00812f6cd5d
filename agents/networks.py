"""Multilayer perceptron, state-value critic and Gaussian actor."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Mlp(nn.Module):
    """ELU multilayer perceptron with a linear last layer.

    Hidden layers start orthogonal with gain sqrt(2), the last one with ``last_gain``; biases start at 0.

    Args:
        sizes: widths from input to output, for example ``(49, 128, 64, 32, 12)``.
        last_gain: gain of the last layer's orthogonal initialisation.
        layer_norm: LayerNorm after every hidden ELU, as in the SHAC authors' networks.
        generator: source of the initial weights.
        dtype: floating-point type of the parameters.
    """

    def __init__(
        self,
        sizes: tuple[int, ...],
        *,
        last_gain: float,
        layer_norm: bool,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b, dtype=dtype) for a, b in itertools.pairwise(sizes))
        self.norms = nn.ModuleList(nn.LayerNorm(b, dtype=dtype) for b in sizes[1:-1] if layer_norm)
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            nn.init.orthogonal_(layer.weight, last_gain if last else math.sqrt(2.0), generator=generator)
            nn.init.zeros_(layer.bias)
        # The same modules in plain tuples: indexing a ModuleList costs as much as a small layer.
        *self._hidden, self._last = tuple(self.layers)
        self.norms_by_layer = tuple(self.norms) or (None,) * len(self._hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (..., sizes[0]) to (..., sizes[-1])."""
        for layer, norm in zip(self._hidden, self.norms_by_layer, strict=True):
            x = functional.elu(layer(x))
            if norm is not None:
                x = norm(x)
        return self._last(x)


class Critic(Mlp):
    """State value: maps normalised observations (..., obs) to values (...)."""

    def __init__(self, observation: int, hidden: tuple[int, ...], **options) -> None:
        super().__init__((observation, *hidden, 1), last_gain=1.0, **options)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).squeeze(-1)


class Actor(nn.Module):
    """Gaussian policy whose standard deviation does not depend on the state.

    Args:
        observation, action: widths of the spaces.
        hidden: widths of the hidden layers.
        log_std: initial logarithm of the standard deviation.
        squash: pass the sample through tanh, so that it lies in [-1, 1] with a gradient everywhere.
    """

    def __init__(
        self,
        observation: int,
        hidden: tuple[int, ...],
        action: int,
        *,
        log_std: float,
        squash: bool,
        dtype: torch.dtype = torch.float32,
        **options,
    ) -> None:
        super().__init__()
        self.body = Mlp((observation, *hidden, action), dtype=dtype, **options)
        self.log_std = nn.Parameter(torch.full((action,), log_std, dtype=dtype))
        self.squash = squash

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Action for normalised observations (..., obs): the mean, or a sample moved by unit ``noise``."""
        action = self.body(observation)
        if noise is not None:
            action = torch.addcmul(action, self.log_std.exp(), noise)
        return torch.tanh(action) if self.squash else action
