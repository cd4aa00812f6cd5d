"""One world's broken number, wherever it enters: every other world's values and gradients stay bit-identical."""

import pytest
import torch

from diffenvs.parameters import Parameters
from diffenvs.sim.contact import CONTACT
from tests.sim.worlds import loss_weights, rollout_loss, simulator, states

WORLDS, SICK = 5, 2
OTHERS = [0, 1, 3, 4]


def differentiated(law, *, spoil=None, seed=None):
    """Values (N,) of a rollout of two steps, and its gradient by every input and parameter.

    spoil: changes the inputs, by name, in place. seed (N,): the gradient that comes in, one a world.
    """
    sim = simulator("quadruped", CONTACT[law](), WORLDS, threads=1)
    values = dict(zip(("qpos", "qvel", "control"), states(sim.model, WORLDS, seed=1), strict=True))
    values |= dict(zip(Parameters.names(), sim.default_parameters().tensors(), strict=True))
    if spoil is not None:
        spoil(values)
    leaves = {name: value.clone().requires_grad_(True) for name, value in values.items()}
    parameters = Parameters(*[leaves[name] for name in Parameters.names()])
    weights = loss_weights(sim.model)
    loss = rollout_loss(sim, leaves["qpos"], leaves["qvel"], [leaves["control"]] * 2, parameters, weights)
    seed = torch.ones_like(loss) if seed is None else seed
    gradients = torch.autograd.grad(loss, list(leaves.values()), seed)
    return sim, loss.detach(), dict(zip(leaves, gradients, strict=True))


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_broken_input_stays_in_its_world(law, bad):
    """In position, velocity or control; its own gradient is dropped and counted."""
    _, loss, gradients = differentiated(law)
    for name, column in (("qpos", 2), ("qpos", 9), ("qvel", 4), ("control", 5)):

        def spoil(values, name=name, column=column):
            values[name][SICK, column] = bad

        sim, sick_loss, sick = differentiated(law, spoil=spoil)
        assert sim.nonfinite_gradients > 0
        assert torch.equal(sick_loss[OTHERS], loss[OTHERS])
        for key, gradient in gradients.items():
            assert torch.equal(sick[key][OTHERS], gradient[OTHERS]), f"{name} spoils {key}"


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_broken_gradient_stays_in_its_world(law, bad):
    """A loss whose derivative is not finite in one world: the others' are what they were, that world's are counted."""
    _, _, gradients = differentiated(law)
    seed = torch.ones(WORLDS, dtype=torch.float64)
    seed[SICK] = bad
    sim, _, sick = differentiated(law, seed=seed)
    assert sim.nonfinite_gradients > 0
    for key, gradient in gradients.items():
        assert torch.equal(sick[key][OTHERS], gradient[OTHERS]), key


@pytest.mark.parametrize("law", CONTACT)
def test_two_runs_are_bit_equal(law):
    """Values, and gradients by every input and parameter."""
    (_, first_loss, first), (_, second_loss, second) = differentiated(law), differentiated(law)
    assert torch.equal(first_loss, second_loss)
    for key, gradient in first.items():
        assert torch.equal(gradient, second[key]), key
        assert gradient.abs().max() > 0, key
