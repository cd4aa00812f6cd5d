"""A control step replayed as a graph is the control step launched kernel by kernel (F8)."""

import pytest
import torch
import warp as wp

from diffenvs.sim.contact import CONTACT
from tests.sim.worlds import loss_weights, rollout_loss, simulator, states


def differentiated(law, threads):
    """Loss of two control steps and its gradient by state, control and every parameter."""
    sim = simulator("quadruped", CONTACT[law](), 5, threads=threads)
    given = [x.requires_grad_(True) for x in states(sim.model, 5, seed=1)]
    parameters = sim.default_parameters()
    leaves = [*given, *(x.requires_grad_(True) for x in parameters.tensors())]
    loss = rollout_loss(sim, given[0], given[1], [given[2]] * 2, parameters, loss_weights(sim.model)).sum()
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


class NoCapture:
    """A device on which nothing can be captured."""

    def __init__(self, **_):
        raise RuntimeError("capture is not possible today")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("law", CONTACT)
def test_without_graphs_it_warns_and_is_the_same(law, threads, monkeypatch):
    replayed = differentiated(law, threads)
    assert replayed[1].abs().max() > 0.0
    monkeypatch.setattr(wp, "ScopedCapture", NoCapture)
    with pytest.warns(RuntimeWarning, match="cpu: Warp captured no graph .capture is not possible today."):
        launched = differentiated(law, threads)
    for a, b in zip(replayed, launched, strict=True):
        assert torch.equal(a, b)
