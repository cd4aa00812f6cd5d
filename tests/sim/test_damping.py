"""Joint damping acts at the end of the step: v+ = v / (1 + h D / m), stable whatever h D / m."""

import pytest
import torch

from diffenvs.sim.contact import CONTACT
from tests.sim.points import run, simulation, tensor

H = 0.004
SLIDER = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><body name="slider"><joint name="x" type="slide" axis="1 0 0"/>
    <geom type="box" size=".1 .1 .1" mass="2" contype="0" conaffinity="0"/></body></worldbody>
</mujoco>
"""


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("ratio", [0.1, 1.9, 2.1, 100.0])
def test_a_damped_slider_slows_down_as_the_formula_says(law, ratio):
    """v_N = v0 (1 + h D / m)^-N and its derivatives; taken at the start, ratios above 2 would blow up."""
    steps, m, v0 = 7, 2.0, 3.0
    sim, parameters = simulation(SLIDER, CONTACT[law](), 1, H)
    h, decay = sim.timestep, 1.0 / (1.0 + ratio)
    damping = torch.full_like(parameters.damping, ratio * m / h).requires_grad_()
    speed = tensor([v0]).requires_grad_()
    x, v = run(sim, parameters.replace(damping=damping), tensor([0.0]), speed, steps)
    substeps = steps * sim.substeps
    travelled = 0.5 * h * sum(v0 * decay**k * (1.0 + decay) for k in range(substeps))
    torch.testing.assert_close(v, torch.full_like(v, v0 * decay**substeps), rtol=1e-11, atol=1e-14)
    torch.testing.assert_close(x, torch.full_like(x, travelled), rtol=1e-11, atol=0)
    by_damping, by_speed = torch.autograd.grad(v.sum(), (damping, speed))
    expected = -substeps * h / m * v0 * decay ** (substeps + 1)
    torch.testing.assert_close(by_damping, torch.full_like(by_damping, expected), rtol=1e-10, atol=1e-16)
    torch.testing.assert_close(by_speed, torch.full_like(by_speed, decay**substeps), rtol=1e-11, atol=1e-14)
