"""Feet that cannot move in every direction: planar robots, masses on guides, and what is on a rail.

Their blocks of the Delassus matrix have no inverse.
"""

import pytest
import torch

from diffenvs.sim.contact import CONTACT, Hard, Smoothed
from tests.sim.points import MASS, point_simulator, run, simulation, tensor

SOLVERS = [Hard, Smoothed]
LINK = '<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.25" mass="{}" contype="0" conaffinity="0"/>'
HOPPER = f"""<mujoco><option gravity="0 0 -9.81"/><worldbody><body euler="0 0 YAW"><joint type="slide" axis="1 0 0"/>
  <joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
  <geom type="box" size=".1 .05 .05" mass="10" contype="0" conaffinity="0"/>
  <body><joint axis="0 1 0" damping=".1"/>{LINK.format(5)}<body pos="0 0 -.25"><joint axis="0 1 0" damping=".1"/>
  {LINK.format(3)}<geom name="foot" type="sphere" size=".02" mass="0" pos="0 0 -.25"/></body></body></body></worldbody>
  </mujoco>"""


@pytest.mark.parametrize("law", SOLVERS)
@pytest.mark.parametrize("mass", [0.01, 0.4, 1.0, 2.0, 1000.0])
def test_a_mass_on_a_vertical_guide_stops(mass, law):
    """A planar robot's foot: G has rank one, and a step made of its determinant would undo the one before."""
    sim, parameters = point_simulator(MASS.replace('mass="1"', f'mass="{mass}"'), law(), 1, 0.01)
    q, v = run(sim, parameters, tensor([0.0]), tensor([-1.0]), 20)
    assert float(q) > -0.02
    assert abs(float(v)) < 0.02


@pytest.mark.parametrize("law", CONTACT)
def test_the_plane_in_which_a_hopper_hops_does_not_matter(law):
    """The same planar hopper in the plane y = 0 and in one turned by 30 degrees about the vertical moves alike."""
    step = 0.0005 if law == "soft" else 0.01
    ends = []
    for yaw in (0, 30):
        sim, parameters = simulation(HOPPER.replace("YAW", str(yaw)), CONTACT[law](), 1, step)
        start = tensor([0.0, 0.49, 0.1, 0.3, -0.6]), tensor([0.3, -1.0, 0.0, 0.0, 0.0])
        ends.append(torch.cat(run(sim, parameters, *start, round(0.1 / step)), 1))
    torch.testing.assert_close(ends[1], ends[0], rtol=0, atol=1e-8)


RAIL = MASS.replace('axis="0 0 1"', 'axis="1 0 0"')
PLANAR = {
    "hopper": (HOPPER.replace("YAW", "30"), [0.0, 0.49, 0.1, 0.3, -0.6], [0.3, -1.0, 0.0, 0.2, 0.1]),
    "guide": (MASS, [-0.001], [-1.0]),
    "rail": (RAIL, [0.3], [1.0]),
}


@pytest.mark.parametrize("law", SOLVERS)
@pytest.mark.parametrize("robot", PLANAR)
def test_gradient_without_an_inverse(robot, law):
    """Ten steps in and out of contact, the gradient by state and masses against central differences."""
    xml, qpos, qvel = PLANAR[robot]
    sim, parameters = simulation(xml, law(), 1)
    weight = torch.linspace(1.0, 2.0, sim.model.nv).double()

    def loss(q, v, mass):
        q, v = run(sim, parameters.replace(mass=mass), q, v, 10)
        return ((q + v) * weight).sum()

    inputs = [tensor(qpos), tensor(qvel), parameters.mass]
    leaves = [x.clone().requires_grad_(True) for x in inputs]
    gradient = torch.autograd.grad(loss(*leaves), leaves)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        directions = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in inputs]
        ends = [loss(*[x + s * 1e-6 * d for x, d in zip(inputs, directions, strict=True)]) for s in (1, -1)]
        expected = float(ends[0] - ends[1]) / 2e-6
        ours = sum(float((g * d).sum()) for g, d in zip(gradient, directions, strict=True))
        assert ours == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("law", SOLVERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_foot_on_a_rail_in_the_ground_slides_on(law, dtype):
    """It cannot leave the ground, so the ground cannot push: no impulse along what cannot move, and no NaN."""
    sim, parameters = simulation(RAIL, law(), 1, dtype=dtype)
    qpos, qvel = torch.zeros(1, 1, dtype=dtype), torch.ones(1, 1, dtype=dtype).requires_grad_(True)
    motion = sim.simulate(qpos, qvel, qpos.new_zeros(1, 0), parameters)
    (gradient,) = torch.autograd.grad(motion.qvel.sum(), qvel)
    assert float(motion.qvel.detach()) == pytest.approx(1.0, abs=1e-6)
    assert float(gradient) == pytest.approx(1.0, abs=1e-6)


def test_out_of_plane_impulses_of_a_planar_foot_are_small_in_float32():
    """In a plane that no axis is aligned with, rounding alone makes them: they use up none of the cone."""
    sim, parameters = simulation(HOPPER.replace("YAW", "30"), Hard(), 1, dtype=torch.float32)
    qpos, qvel = [tensor(x).float() for x in PLANAR["hopper"][1:]]
    for _ in range(20):
        motion = sim.simulate(qpos, qvel, torch.zeros(1, 0), parameters)
        qpos, qvel = motion.qpos, motion.qvel
        impulse = sim.contact_impulses()[0, 0]
        across = float(impulse @ impulse.new_tensor([-0.5, 0.75**0.5, 0.0]))
        assert abs(across) <= 0.05 * float(impulse.norm())
