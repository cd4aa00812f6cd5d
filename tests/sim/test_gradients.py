"""Gradients of rollouts against central differences, float64, every law, every input."""

import pytest
import torch

from diffenvs.parameters import Parameters
from diffenvs.sim.contact import CONTACT
from tests.sim.differences import directional_error
from tests.sim.worlds import loss_weights, rollout_loss, simulator, states

WORLDS = 20
INERTIA_SCALE = {"inertia": 0.01}


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_eight_step_rollout_with_respect_to_all_actions(robot, law):
    sim = simulator(robot, CONTACT[law](), WORLDS)
    qpos, qvel, _ = states(sim.model, WORLDS, seed=3)
    controls = torch.stack([states(sim.model, WORLDS, seed=10 + t)[2] for t in range(8)])
    weights, parameters = loss_weights(sim.model), sim.default_parameters()
    actions = controls.transpose(0, 1).contiguous()

    def loss(actions):
        return rollout_loss(sim, qpos, qvel, actions.transpose(0, 1), parameters, weights)

    leaf = actions.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(leaf).sum(), leaf)
    assert gradient.flatten(1).norm(dim=1).min() > 1.0
    error = directional_error(loss, actions, gradient, directions=6, seed=1)
    if law == "smoothed":
        assert error.max() < 1e-6
        return
    # Hard and soft contact have kinks where a foot touches or slides; finite differences across one mean nothing.
    # Most directions cross none; the ones that do are counted against a bound, not dropped in silence.
    crossed = (error >= 1e-6).double().mean()
    print(f"{robot} {law}: {100 * crossed:.1f} % of the probes cross a kink")
    assert crossed <= 0.05
    assert error.median() < 1e-8


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_every_input_and_parameter_of_three_steps(robot, law):
    sim = simulator(robot, CONTACT[law](), WORLDS)
    qpos, qvel, control = states(sim.model, WORLDS, seed=5)
    weights, defaults = loss_weights(sim.model), sim.default_parameters()
    inputs = {"qpos": qpos, "qvel": qvel, "control": control}
    inputs |= dict(zip(Parameters.names(), defaults.tensors(), strict=True))
    leaves = {name: value.clone().requires_grad_(True) for name, value in inputs.items()}

    def loss(values):
        parameters = Parameters(*[values[n] for n in Parameters.names()])
        return rollout_loss(sim, values["qpos"], values["qvel"], [values["control"]] * 3, parameters, weights)

    gradients = torch.autograd.grad(loss(leaves).sum(), list(leaves.values()))
    for (name, value), gradient in zip(inputs.items(), gradients, strict=True):
        assert gradient.abs().max() > 0.0, f"no gradient reaches {name}"
        error = directional_error(
            lambda x, name=name: loss({**inputs, name: x}),
            value,
            gradient,
            directions=1,
            seed=2,
            scale=INERTIA_SCALE.get(name, 1.0),
        )
        assert error.median() < 1e-7, name
        if law == "smoothed":
            assert error.max() < 1e-5, name


def test_a_wrong_gradient_is_seen():
    sim = simulator("quadruped", CONTACT["smoothed"](), WORLDS)
    qpos, qvel, control = states(sim.model, WORLDS, seed=3)
    weights, parameters = loss_weights(sim.model), sim.default_parameters()

    def loss(x):
        return rollout_loss(sim, qpos, qvel, [x] * 2, parameters, weights)

    leaf = control.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(leaf).sum(), leaf)
    wrong = gradient.clone()
    wrong[:, 0] *= 1.0001
    assert directional_error(loss, control, wrong, directions=6, seed=1).max() > 1e-5
