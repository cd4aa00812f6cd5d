"""How right the gradient is: the worst relative error over a thousand random states per law, in contact and in flight.

Float64 against central differences along one random direction through everything at once (state and all actions);
float32 against float64. Hard and soft contact have kinks, and so has the friction cone: a difference across one means
nothing. Whether a state is away from them is judged by differences alone, never by our gradient: those of two step
sizes must agree (a plateau). States without one are counted, printed and bounded.
"""

import itertools

import pytest
import torch

from diffenvs.sim.contact import CONTACT
from tests.sim.worlds import loss_weights, simulator, states

LENGTH = 32
# control steps -> worst relative error allowed
BOUNDS = {1: 1e-7, 20: 1e-6, LENGTH: 1e-5}
# a thousand states per law; soft contact takes ten times the simulation steps, and ANYmal twice as many again
STATES = {
    ("quadruped", "hard"): 500,
    ("anymal_d", "hard"): 500,
    ("quadruped", "smoothed"): 500,
    ("anymal_d", "smoothed"): 500,
    ("quadruped", "soft"): 800,
    ("anymal_d", "soft"): 200,
}
BATCH = 100
STEPS = (1e-6, 1e-7, 1e-8)
# two step sizes that differ by more have a kink between them; a slope may change by as little as 1e-5 at one
AGREEMENT = 2e-7
LARGEST_SHARE_OF_KINKS = 0.05


def random_worlds(model, worlds, seed, dtype=torch.float64):
    """qpos, qvel and a window of actions (N, 32, nu); every other one begins in flight, the rest near the ground."""
    qpos, qvel, _ = states(model, worlds, seed)
    qpos[::2, 2] += 0.4
    qpos[1::2, 2] -= 0.01
    actions = torch.stack([states(model, worlds, seed + 1000 + t)[2] for t in range(LENGTH)], 1)
    # numbers that float32 has, so that both precisions begin alike
    return [x.float().to(dtype) for x in (qpos, qvel, actions)]


def losses(sim, parameters, weights, qpos, qvel, actions):
    """Weighted states and feet, summed up to each of ``BOUNDS``: (3, N)."""
    total, out = 0.0, []
    for t in range(LENGTH):
        motion = sim.simulate(qpos, qvel, actions[:, t], parameters)
        qpos, qvel = motion.qpos, motion.qvel
        total = total + (weights[0] * qpos).sum(-1) + (weights[1] * qvel).sum(-1)
        total = total + (weights[2] * motion.feet).sum((-1, -2))
        if t + 1 in BOUNDS:
            out.append(total)
    return torch.stack(out)


def along(tensors, directions):
    """Inner product per world."""
    return sum((a * b).flatten(1).sum(1) for a, b in zip(tensors, directions, strict=True))


def errors_and_plateaus(sim, parameters, weights, inputs, seed):
    """Relative errors and disagreement of the two step sizes that agree best, each (3, N)."""
    leaves = [x.clone().requires_grad_(True) for x in inputs]
    values = losses(sim, parameters, weights, *leaves)
    gradients = [torch.autograd.grad(v.sum(), leaves, retain_graph=True) for v in values]
    generator = torch.Generator().manual_seed(seed)
    directions = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in inputs]
    ours = torch.stack([along(g, directions) for g in gradients])
    # along a random direction the derivative is of the size of the gradient's norm
    size = torch.stack([along(g, g).sqrt() for g in gradients])
    differences = []
    with torch.no_grad():
        for step in STEPS:
            up, down = [
                losses(sim, parameters, weights, *[x + s * step * d for x, d in zip(inputs, directions, strict=True)])
                for s in (1, -1)
            ]
            differences.append((up - down) / (2 * step))
    best, error = torch.full_like(ours, float("inf")), torch.empty_like(ours)
    for coarse, fine in itertools.pairwise(differences):
        agreement = (coarse - fine).abs() / size
        error = torch.where(agreement < best, (fine - ours).abs() / size, error)
        best = torch.minimum(best, agreement)
    return error, best


@pytest.mark.slow
@pytest.mark.parametrize(("robot", "law"), STATES)
def test_float64_gradient_of_a_thousand_states(robot, law):
    """Control step 1e-7, 20 steps 1e-6, 32 steps 1e-5, at worst."""
    count = STATES[robot, law]
    sim = simulator(robot, CONTACT[law](), BATCH)
    parameters, weights = sim.default_parameters(), loss_weights(sim.model)
    errors, plateaus, touching = [], [], 0
    for batch in range(count // BATCH):
        inputs = random_worlds(sim.model, BATCH, 100 * batch)
        sim.simulate(inputs[0], inputs[1], inputs[2][:, 0], parameters)
        touching += int((sim.contact_impulses()[..., 2] > 1e-6).any(1).sum())
        error, plateau = errors_and_plateaus(sim, parameters, weights, inputs, batch)
        errors.append(error)
        plateaus.append(plateau)
    errors, plateaus = torch.cat(errors, 1), torch.cat(plateaus, 1)
    assert 0.3 * count < touching < 0.7 * count
    for (length, bound), error, plateau in zip(BOUNDS.items(), errors, plateaus, strict=True):
        smooth = plateau < AGREEMENT
        share = 1.0 - float(smooth.double().mean())
        worst, median = float(error[smooth].max()), float(error.median())
        print(f"{robot} {law}, {length} steps: worst {worst:.1e}, median {median:.1e}; kinks in {100 * share:.1f} %")
        assert worst <= bound
        assert share <= LARGEST_SHARE_OF_KINKS
        assert median <= 0.1 * bound


def action_gradient(robot, law, inputs, dtype):
    """Gradient (N, 32 nu) of the whole window by its actions, in float64 whatever the simulation's precision."""
    sim = simulator(robot, CONTACT[law](), len(inputs[0]), dtype=dtype)
    qpos, qvel, actions = [x.to(dtype) for x in inputs]
    leaf = actions.clone().requires_grad_(True)
    weights = [w.float().to(dtype) for w in loss_weights(sim.model)]
    value = losses(sim, sim.default_parameters(), weights, qpos, qvel, leaf)[-1]
    return torch.autograd.grad(value.sum(), leaf)[0].flatten(1).double()


def relative(gradient, reference):
    return (gradient - reference).norm(dim=1) / reference.norm(dim=1)


@pytest.mark.slow
@pytest.mark.parametrize(("robot", "law"), STATES)
def test_float32_gradient_of_32_steps(robot, law):
    """Median 1e-4 of the float64 gradient in norm, worst 1e-2, but for states on a kink.

    About one state in 500 of ANYmal is on the edge of a contact or of a friction cone to within what float32 resolves.
    There the float64 gradient has two values, an ulp of float32 apart: that is shown for each such state.
    """
    model = simulator(robot, CONTACT[law](), 1).model
    inputs = random_worlds(model, 60 if law == "soft" else 500, 21)
    wide = action_gradient(robot, law, inputs, torch.float64)
    error = relative(action_gradient(robot, law, inputs, torch.float32), wide)
    off = torch.nonzero(error > 1e-2)[:, 0]
    smooth = error[error <= 1e-2]
    print(f"{robot} {law}: median {error.median():.1e}, worst {smooth.max():.1e}, and {len(off)} on a kink")
    assert error.median() <= 1e-4
    assert len(off) <= 0.02 * len(error)
    generator = torch.Generator().manual_seed(0)
    for world in off:
        near = [x[world : world + 1].repeat(200, *[1] * (x.dim() - 1)) for x in inputs]
        near = [x + 3e-6 * torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in near]
        spread = relative(action_gradient(robot, law, near, torch.float64), wide[world : world + 1].expand(200, -1))
        assert spread.max() > 0.5 * error[world], f"world {int(world)} is off by {error[world]:.1e} and on no kink"
