"""Least-squares fit of a critic by many small Adam steps.

SHAC fits its critic 16 x 4 times an iteration on minibatches of 512 samples. At this size the bookkeeping of
autograd costs as much as the arithmetic, so the adjoint of the ELU perceptron is written out, into buffers.
LayerNorm's own adjoint is torch's kernel, called without its graph.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from agents.networks import Critic
from agents.optimizer import Adam


class ValueRegression:
    """Minimises the mean squared error of a critic.

    Args:
        critic: the network to fit.
        optimizer: Adam over that network.
        clip: largest norm of a minibatch's gradient.
    """

    def __init__(self, critic: Critic, optimizer: Adam, *, clip: float) -> None:
        self.critic = critic
        self.optimizer = optimizer
        self.clip = clip
        # weight, bias and their gradients: views of the optimiser's vectors, looked up once.
        self._layers = [
            (layer.weight.detach(), layer.bias.detach(), layer.weight.grad, layer.bias.grad) for layer in critic.layers
        ]
        self._norms = [
            None if norm is None else (norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps)
            for norm in critic.norms_by_layer
        ]
        self._norm_gradients = [
            None if norm is None else (norm.weight.grad, norm.bias.grad) for norm in critic.norms_by_layer
        ]
        self._buffers: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def fit(
        self,
        inputs: Tensor,
        targets: Tensor,
        *,
        passes: int,
        minibatches: int,
        learning_rate: float,
        generator: torch.Generator,
    ) -> float:
        """Fits (B, obs) inputs to (B,) targets; returns the mean squared error during the last pass."""
        for _ in range(passes):
            order = torch.randperm(len(inputs), generator=generator, device=inputs.device)
            x, y = inputs.index_select(0, order), targets.index_select(0, order)
            squares = torch.zeros_like(targets[0])
            for xs, ys in zip(x.chunk(minibatches), y.chunk(minibatches), strict=True):
                squares += self.gradient(xs, ys)
                self.optimizer.clip(self.clip)
                self.optimizer.step(learning_rate)
        return float(squares) / len(inputs)

    @torch.no_grad()
    def gradient(self, x: Tensor, y: Tensor) -> Tensor:
        """Gradient of the mean squared error, written into the optimiser; returns the sum of squares."""
        *hidden, (weight, bias, weight_gradient, bias_gradient) = self._layers
        buffers = self._hidden_buffers(x)
        inputs, statistics = [x], []
        for (w, b, _, _), (before, after), norm in zip(hidden, buffers, self._norms, strict=True):
            torch.addmm(b, inputs[-1], w.t(), out=before)
            value = _elu(before, out=after)
            if norm is not None:
                value, *moments = torch.native_layer_norm(value, *norm)
                statistics.append(moments)
            inputs.append(value)

        error = torch.addmv(bias, inputs[-1], weight[0]).sub_(y)
        squares = torch.dot(error, error)
        error.mul_(2.0 / len(x))
        torch.mv(inputs[-1].t(), error, out=weight_gradient[0])
        torch.sum(error, 0, keepdim=True, out=bias_gradient)
        if hidden:
            torch.outer(error, weight[0], out=buffers[-1][0])
        for index in reversed(range(len(hidden))):
            w, _, dw, db = hidden[index]
            # ELU's slope is 1 above zero and its value + 1 below: min(value, 0) + 1.
            upstream, value = buffers[index]
            if self._norms[index] is not None:
                upstream = self._norm_adjoint(index, upstream, value, *statistics[index])
            upstream.addcmul_(upstream, value.clamp_max_(0.0))
            torch.mm(upstream.t(), inputs[index], out=dw)
            torch.sum(upstream, 0, out=db)
            if index > 0:
                torch.mm(upstream, w, out=buffers[index - 1][0])
        return squares

    def _norm_adjoint(self, index: int, upstream: Tensor, value: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
        """Gradient before a LayerNorm from that after it; ``deviation`` is the reciprocal of the standard one."""
        shape, weight, bias, _ = self._norms[index]
        moments = (mean, deviation, weight, bias)
        before, *own = torch.ops.aten.native_layer_norm_backward(upstream, value, shape, *moments, [True] * 3)
        for gradient, result in zip(self._norm_gradients[index], own, strict=True):
            gradient.copy_(result)
        return before

    def _hidden_buffers(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Per hidden layer: before the ELU (later its gradient) and after it, for this minibatch size."""
        if len(x) not in self._buffers:
            widths = [bias.numel() for _, bias, _, _ in self._layers[:-1]]
            self._buffers[len(x)] = [(x.new_empty(len(x), w), x.new_empty(len(x), w)) for w in widths]
        return self._buffers[len(x)]


def _elu(x: Tensor, out: Tensor) -> Tensor:
    """max(x, exp(min(x, 0)) - 1), through exp2, which torch evaluates twice as fast as exp and expm1."""
    torch.mul(x, math.log2(math.e), out=out).exp2_().clamp_max_(1.0).sub_(1.0)
    return torch.maximum(x, out, out=out)
