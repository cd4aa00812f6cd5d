"""Robots driven without sense, at long steps, or blown up: what stays on the ground, and what is told of the rest."""

import pytest
import torch

import diffenvs
from diffenvs.bridge import Simulator
from diffenvs.sim.contact import CONTACT, Soft
from diffenvs.sim.load import load_model
from diffenvs.sim.model import Joint
from tests.sim.points import POINT, run, tensor
from tests.sim.worlds import simulator, states

WORLDS = 32


def base(env):
    """Speed [m/s] and height [m] of the base of N worlds, (N,) each: of a free joint, or along the slides there are."""
    model, qpos, qvel = env.model, env.state.qpos, env.state.qvel
    if model.link_joint[0] == Joint.FREE:
        return qvel[:, :3].norm(dim=1), qpos[:, 2]
    slides = [i for i, joint in enumerate(model.link_joint) if joint == Joint.SLIDE]
    rise = [i for i in slides if model.link_axis[i, 2] == 1.0]
    return qvel[:, model.link_dof[slides]].norm(dim=1), qpos[:, model.link_qpos[rise]].sum(1)


def thrash(env, steps):
    """Every action at one of its bounds, drawn anew each step: largest speed and height, worlds broken and ended."""
    env.reset(seed=0, options={"stagger": True})
    generator = torch.Generator().manual_seed(0)
    fastest = highest = torch.zeros(())
    broken = ended = 0
    for _ in range(steps):
        draws = torch.rand(env.num_envs, env.task.action_size, generator=generator)
        *_, terminated, truncated, info = env.step((draws < 0.5).float() * 2.0 - 1.0)
        speed, height = base(env)
        fastest = torch.maximum(fastest, speed.max())
        highest = torch.maximum(highest, height.max())
        broken += int(info["nonfinite"].sum())
        ended += int((terminated | truncated).sum())
    return float(fastest), float(highest), broken, ended


@pytest.mark.parametrize("law", CONTACT)
def test_actions_at_their_bounds_throw_nobody(env_id, law):
    """B16: the base stays below 10 m/s and 2 m, and no world breaks, across restarts."""
    env = diffenvs.DiffVecEnv(env_id, WORLDS, contact=law, array_type="torch", threads=1, max_episode_steps=100)
    fastest, highest, broken, ended = thrash(env, 40 if law == "soft" else 200)
    print(f"{env_id} {law}: {fastest:.2f} m/s, {highest:.2f} m, {broken} broken worlds")
    assert broken == 0
    assert ended > 5
    assert fastest < 10.0
    assert highest < 2.0


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("robot", ["quadruped", "anymal_d"])
def test_half_the_substeps_stand_as_well(robot, law):
    """B4: dropped by 2 cm from a crooked pose, after 2 s the base is where it is at the usual step, to 3 cm."""
    usual = simulator(robot, CONTACT[law](), 2, threads=1)
    model, step = usual.model, 2.0 * usual.timestep
    contact = Soft(timestep=step) if law == "soft" else CONTACT[law]()
    coarse = Simulator(model, contact, 2, control_timestep=step, timestep=step, dtype=usual.dtype, threads=1)
    assert coarse.timestep == pytest.approx(step)
    start, _, _ = states(model, 2, seed=3)
    start[:, 2] += 0.02
    control = torch.tensor(model.home[7:]).expand(2, -1)
    ends = []
    for sim in (usual, coarse):
        steps = round(2.0 / (sim.timestep * sim.substeps))
        still = torch.zeros(2, model.nv, dtype=sim.dtype)
        ends.append(run(sim, sim.default_parameters(), start, still, steps, control))
    torch.testing.assert_close(ends[1][0][:, 2], ends[0][0][:, 2], rtol=0, atol=0.03)
    assert ends[1][1].abs().max() < 2.0 * ends[0][1].abs().max() + 1.0


def test_a_world_faster_than_its_limit_is_ended():
    """B15: a blown-up world is told from a fast one by 1e4 m/s, ended and begun anew, before it is infinite."""
    env = diffenvs.DiffVecEnv("DiffQuadruped-v0", 3, array_type="torch", threads=1)
    env.reset(seed=0)
    qvel = env.state.qvel.clone()
    qvel[:, 0] = torch.tensor([0.0, 5e3, 2e4])
    # in flight, where nothing turns that speed into another
    qpos = env.state.qpos.clone()
    qpos[:, 2] = 20.0
    env.state = env.state.replace(qpos=qpos, qvel=qvel)
    *_, terminated, _, info = env.step(torch.zeros(3, 12))
    assert info["nonfinite"].tolist() == [False, False, True]
    assert bool(terminated[2])
    assert env.state.elapsed[2] == 0
    assert env.state.qvel[2].abs().max() < 1.0


def test_a_touch_of_one_substep_is_not_missed():
    """B17: contact is what any substep saw: a foot that leaves in the first of twenty still has its impulse counted."""
    sim = Simulator(load_model(POINT), Soft(), 2, control_timestep=0.01, timestep=0.01, dtype=torch.float64, threads=1)
    assert sim.substeps == 20
    parameters = sim.default_parameters()
    parameters = parameters.replace(contact_radius=torch.zeros(2, 1, dtype=torch.float64))
    # in the middle of the first substep 0.1 mm in the ground, in that of the second above it; the other never touches
    speed = 1.0
    down = -1e-4 - 0.5 * sim.timestep * speed
    qpos, qvel = tensor([0.0, 0.0, down], [0.0, 0.0, 1.0]), tensor([0.0, 0.0, speed], [0.0, 0.0, speed])
    motion = sim.simulate(qpos, qvel, torch.zeros(2, 3, dtype=torch.float64), parameters)
    impulse = sim.contact_impulses()[:, 0, 2]
    assert motion.feet[0, 0, 2] > 0.0
    torch.testing.assert_close(impulse, tensor([1.2e4 * 1e-4 * sim.timestep, 0.0])[0], rtol=1e-9, atol=0)
    # and it is what the mass of 2 kg has gained on the one that flew
    torch.testing.assert_close(2.0 * (motion.qvel[0, 2] - motion.qvel[1, 2]), impulse[0], rtol=1e-9, atol=0)
