"""Gradients of any robot a user may bring: random trees, every input on its own, against central differences.

Slides with offsets, balls, several joints a body, branches and several roots have each been differentiated wrongly
elsewhere (A1, A2, A28), and the two robots of this package have none of them.
"""

import mujoco
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffenvs.parameters import Parameters
from diffenvs.sim.contact import Soft
from diffenvs.sim.load import load_model
from tests.sim.differences import directional_error
from tests.sim.points import simulation
from tests.sim.test_random_trees import random_states, trees
from tests.sim.worlds import loss_weights, rollout_loss

STEP = 0.002
# weak enough for the lightest of feet; sweeps would want every foot to move in three directions
LAW = Soft(stiffness=200.0, damping=2.0, friction_stiffness=2.0, timestep=STEP)
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, database=None)
# inertias are small beside one
SCALE = {"inertia": 0.01}


def test_every_input_of_a_random_tree():
    """d (state and feet after two steps) / d (qpos, qvel, control and every parameter), at rest as well (A17)."""
    reached = {}

    @SETTINGS
    @given(trees(), st.booleans())
    def judge(tree, at_rest):
        xml, seed = tree
        # a foot at exact rest in the ground is on the kink of its damper, which test_contact_transitions is about
        model = load_model(xml, contacts=()) if at_rest else load_model(xml)
        states = random_states(mujoco.MjModel.from_xml_string(xml), seed)
        qpos, qvel, control = (torch.tensor(x) for x in states)
        qvel = 0.0 * qvel if at_rest else qvel
        sim, parameters = simulation(model, LAW, len(qpos), STEP)
        # whatever the pose, the feet above the ground are made large enough to be half a centimetre in it
        reach = sim.feet(qpos, parameters)[..., 2] + 0.005
        parameters = parameters.replace(contact_radius=torch.maximum(parameters.contact_radius, reach))
        inputs = {"qpos": qpos, "qvel": qvel, "control": control}
        inputs |= dict(zip(Parameters.names(), parameters.tensors(), strict=True))
        inputs = {name: value for name, value in inputs.items() if value.numel()}
        weights = loss_weights(model)

        def loss(values):
            given_parameters = parameters.replace(**{n: values[n] for n in Parameters.names() if n in values})
            controls = [values.get("control", control)] * 2
            return rollout_loss(sim, values["qpos"], values["qvel"], controls, given_parameters, weights)

        leaves = {name: value.clone().requires_grad_(True) for name, value in inputs.items()}
        gradients = torch.autograd.grad(loss(leaves).sum(), list(leaves.values()))
        for (name, value), gradient in zip(inputs.items(), gradients, strict=True):
            error = directional_error(
                lambda x, name=name: loss({**inputs, name: x}),
                value,
                gradient,
                directions=1,
                seed=2,
                # the longest for inputs that act almost linearly, where rounding is all that a difference errs by
                steps=(1e-4, 1e-5, 1e-6, 1e-7),
                scale=SCALE.get(name, 1.0),
            )
            assert error.max() < 1e-6, f"{name}: {error.tolist()}"
            reached[name] = reached.get(name, 0) + int(gradient.abs().max() > 1e-6)

    judge()
    print(f"trees that an input's gradient reached: {reached}")
    assert set(reached) == {"qpos", "qvel", "control", *Parameters.names()}
    assert min(reached.values()) >= 10
