"""Any robot a user may bring: random trees against MuJoCo, to rounding, in float64 (A2, A28).

Hypothesis draws the tree (1 to 20 bodies, each on the world, or on an earlier body, by up to three joints or welded)
and shrinks it when a comparison fails; the numbers on it come from the seed that it draws along.
"""

import mujoco
import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffenvs.sim.contact import Hard, Soft
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.load import load_model
from tests.sim.points import simulation

STATES = 4
TOLERANCE = 1e-10
SETTINGS = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@st.composite
def trees(draw):
    """MJCF of a robot and the seed of its states. Feet are spheres that touch; nothing else does."""
    seed = draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    count = draw(st.sampled_from([*range(1, 21)]))
    parents = [draw(st.integers(-1, i - 1)) for i in range(count)]
    bodies = [f"<body name='b{i}' {pose(rng)}>" for i in range(count)]
    driven, moves = [], [False] * (count + 1)
    for i, parent in enumerate(parents):
        # the first body moves, for a robot has a joint
        kinds = ["hinge", "slide", "ball", "weld", "pair", "planar"] if i else ["hinge", "slide", "ball", "planar"]
        kind = draw(st.sampled_from([*kinds, "free"] if parent < 0 else kinds))
        bodies[i] += joints(kind, i, rng, driven)
        size = rng.uniform(0.02, 0.2, 3)
        bodies[i] += (
            f"<geom type='box' size='{row(size)}' mass='{rng.uniform(0.3, 3.0)}' {pose(rng, 0.1)} class='seen'/>"
        )
        # what is welded to the world would be an obstacle
        moves[i] = kind != "weld" or moves[parent]
        if moves[i] and draw(st.booleans()):
            bodies[i] += (
                f"<geom name='foot{i}' type='sphere' size='{rng.uniform(0.01, 0.1)}' {pose(rng, 0.2)} mass='.1'/>"
            )
    text = ["", *bodies]
    for i in reversed(range(count)):
        text[parents[i] + 1] += text[i + 1] + "</body>"
    motors = "".join(actuator(name, rng) for name in driven if rng.random() < 0.5)
    return (
        "<mujoco><option gravity='1 -2 -9'/><default><default class='seen'><geom contype='0' conaffinity='0'/>"
        f"</default></default><worldbody>{text[0]}</worldbody><actuator>{motors}</actuator></mujoco>"
    ), seed


def row(values) -> str:
    return " ".join(f"{v:.6f}" for v in values)


def pose(rng, spread=0.3) -> str:
    return f"pos='{row(spread * rng.normal(size=3))}' quat='{row(rng.normal(size=4))}'"


def joints(kind, i, rng, driven) -> str:
    """One to three joints with offsets, springs, dampers, armatures and reference angles."""

    def scalar(joint, name):
        driven.append(name)
        numbers = {
            "ref": rng.normal(),
            "springref": rng.normal(),
            "damping": rng.uniform(0, 2),
            "armature": rng.uniform(0, 0.2),
        }
        numbers["stiffness"] = rng.uniform(0, 9) * (rng.random() < 0.5)
        attributes = " ".join(f"{k}='{v:.6f}'" for k, v in numbers.items())
        place = f"axis='{row(rng.normal(size=3))}' pos='{row(0.1 * rng.normal(size=3))}'"
        return f"<joint name='{name}' type='{joint}' {place} {attributes}/>"

    match kind:
        case "free":
            return "<freejoint/>"
        case "ball":
            place = f"pos='{row(0.1 * rng.normal(size=3))}'"
            return (
                f"<joint type='ball' {place} damping='{rng.uniform(0, 1):.6f}' armature='{rng.uniform(0, 0.2):.6f}'/>"
            )
        case "weld":
            return ""
        case "pair":
            return scalar("slide", f"s{i}") + scalar("hinge", f"h{i}")
        case "planar":
            return scalar("slide", f"s{i}") + scalar("slide", f"t{i}") + scalar("hinge", f"h{i}")
    return scalar(kind, f"{kind}{i}")


def actuator(joint, rng) -> str:
    if rng.random() < 0.5:
        return f"<motor joint='{joint}' gear='{rng.normal():.6f}'/>"
    return f"<position joint='{joint}' kp='{rng.uniform(1, 30):.6f}' kv='{rng.uniform(0, 1):.6f}' forcerange='-8 8'/>"


def random_states(m, seed):
    """qpos, qvel, control, far from rest in every joint, with unit quaternions."""
    rng = np.random.default_rng(seed)
    qpos = np.tile(m.qpos0, (STATES, 1))
    for one in qpos:
        mujoco.mj_integratePos(m, one, rng.normal(size=m.nv), 1.0)
    return qpos, 2.0 * rng.normal(size=(STATES, m.nv)), rng.uniform(-1, 1, (STATES, m.nu))


def at(m, qpos, qvel, control):
    """MuJoCo's data of a state."""
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, control
    mujoco.mj_forward(m, data)
    return data


def contact_jacobian(m, data, model, c):
    """Velocity (3, nv) of the lowest point of a sphere, by MuJoCo, and the point."""
    geom = data.geom(model.contact_name[c])
    point = geom.xpos - np.array([0.0, 0.0, model.contact_radius[c]])
    jacobian = np.zeros((3, m.nv))
    mujoco.mj_jac(m, data, jacobian, None, point, int(m.geom_bodyid[geom.id]))
    return jacobian, point


def assert_close(ours, theirs, scale=None):
    """To rounding, relative to the largest number in the array."""
    scale = np.abs(theirs).max(initial=0.0) if scale is None else scale
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * (1.0 + scale))


@SETTINGS
@given(trees())
def test_equations_of_motion(tree):
    """Mass matrix, bias force, contact Jacobian and depth at random states."""
    xml, seed = tree
    model, m = load_model(xml), mujoco.MjModel.from_xml_string(xml)
    qpos, qvel, control = random_states(m, seed)
    ours = equations_of_motion(model, qpos, qvel, control)
    for i in range(STATES):
        data = at(m, qpos[i], qvel[i], control[i])
        mass_matrix = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, data, mass_matrix)
        assert_close(ours.mass_matrix[i], mass_matrix)
        assert_close(ours.bias[i], data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator)
        for c in range(model.ncontact):
            jacobian, point = contact_jacobian(m, data, model, c)
            assert_close(ours.jacobian[i, c], jacobian)
            assert_close(ours.depth[i, c], -point[2])


@SETTINGS
@given(trees())
def test_free_acceleration(tree):
    """One step without contact is h times MuJoCo's acceleration at mid-step, with the damping D at the step's end, as
    MuJoCo's own step has it: M a = (M + h D) (v+ - v) / h. Factorisation, solves, integrator."""
    xml, seed = tree
    model, m, step = load_model(xml, contacts=()), mujoco.MjModel.from_xml_string(xml), 0.02
    qpos, qvel, control = random_states(m, seed)
    sim, parameters = simulation(model, Hard(), STATES, step)
    motion = sim.simulate(*[torch.tensor(x) for x in (qpos, qvel, control)], parameters)
    for i in range(STATES):
        middle = qpos[i].copy()
        mujoco.mj_integratePos(m, middle, qvel[i], 0.5 * step)
        data = at(m, middle, qvel[i], control[i])
        mass_matrix = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, data, mass_matrix)
        damped = mass_matrix + step * np.diag(m.dof_damping)
        expected = np.linalg.solve(damped, mass_matrix @ data.qacc_smooth)
        acceleration = (motion.qvel[i].numpy() - qvel[i]) / step
        assert_close(acceleration, expected)
        after = qpos[i].copy()
        mujoco.mj_integratePos(m, after, 0.5 * (qvel[i] + motion.qvel[i].numpy()), step)
        np.testing.assert_allclose(motion.qpos[i].numpy(), after, rtol=0, atol=1e-12 * (1.0 + np.abs(after).max()))


@settings(SETTINGS, max_examples=40)
@given(trees())
def test_a_foot_moves_with_its_jacobian(tree):
    """A2: d foot / d joint angle is MuJoCo's Jacobian, on chains and branches, one and several joints a body."""
    xml, seed = tree
    model, m = load_model(xml), mujoco.MjModel.from_xml_string(xml)
    if model.ncontact == 0:
        return
    qpos, qvel, control = random_states(m, seed)
    # so short a step, under forces that are finite, that the feet are those of qpos
    sim, parameters = simulation(model, Soft(), STATES, 1e-13)
    start = torch.tensor(qpos).requires_grad_(True)
    feet = sim.simulate(start, torch.zeros_like(torch.tensor(qvel)), torch.tensor(control), parameters).feet
    scalars = [
        (int(q), int(d)) for q, d, k in zip(model.link_qpos, model.link_dof, model.link_joint, strict=True) if k >= 2
    ]
    for c in range(model.ncontact):
        by_qpos = torch.stack(
            [torch.autograd.grad(feet[:, c, k].sum(), start, retain_graph=True)[0] for k in range(3)], 1
        )
        for i in range(STATES):
            data = at(m, qpos[i], qvel[i], control[i])
            jacobian = np.zeros((3, m.nv))
            geom = data.geom(model.contact_name[c])
            mujoco.mj_jac(m, data, jacobian, None, geom.xpos, int(m.geom_bodyid[geom.id]))
            np.testing.assert_allclose(feet[i, c].detach().numpy(), geom.xpos, rtol=0, atol=1e-9)
            for q, d in scalars:
                assert_close(by_qpos[i, :, q].numpy(), jacobian[:, d], scale=np.abs(jacobian).max())


def test_the_trees_are_varied():
    """A hundred draws reach every joint, twenty bodies, several roots, welds and feet."""
    seen, sizes = set(), []

    @SETTINGS
    @given(trees())
    def collect(tree):
        m = mujoco.MjModel.from_xml_string(tree[0])
        sizes.append(m.nbody - 1)
        seen.update(int(k) for k in m.jnt_type)
        seen.update(["roots"] if (m.body_parentid[1:] == 0).sum() > 1 else [])
        seen.update(["weld"] if (m.body_jntnum[1:] == 0).any() else [])
        seen.update(["chain of joints"] if m.body_jntnum.max() > 2 else [])
        seen.update(["foot"] if m.ngeom > m.nbody - 1 else [])
        seen.update(["actuator"] if m.nu else [])

    collect()
    assert seen == {0, 1, 2, 3, "roots", "weld", "chain of joints", "foot", "actuator"}
    assert min(sizes) == 1
    print(f"bodies: {sorted(sizes)}")
    assert max(sizes) == 20
    assert np.median(sizes) >= 3
