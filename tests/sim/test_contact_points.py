"""Which points stand for a geom on the ground: by hand, and against MuJoCo's own collision with a plane."""

import mujoco
import numpy as np
import pytest

from diffenvs.sim.contact_points import HULL, RIM
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.load import load_model
from tests.sim.bodies import SHAPES, body

POSES = 60
# [m] by how much the deepest point may lie higher than MuJoCo's: rounding, and what the edges of a rim lie inside of it
SLACK = {"mesh": 1e-7, "cylinder": 0.1 * (1.0 - np.cos(np.pi / RIM)) + 1e-7}


def test_names_and_places_by_hand():
    model = load_model(body("capsule"))
    assert model.contact_name == ("shape:-z", "shape:+z")
    assert model.contact_geom == ("shape", "shape")
    # the capsule's axis lies along x
    np.testing.assert_allclose(model.contact_pos, [[-0.2, 0, 0], [0.2, 0, 0]], atol=1e-15)
    assert model.contact_radius.tolist() == [0.05, 0.05]

    model = load_model(body("box"))
    assert model.contact_name[0] == "shape:-x-y-z"
    for name, place in zip(model.contact_name, model.contact_pos, strict=True):
        signs = [1.0 if name[name.index(axis) - 1] == "+" else -1.0 for axis in "xyz"]
        np.testing.assert_allclose(place, np.multiply(signs, [0.2, 0.15, 0.1]), atol=1e-15)
    assert model.contact_radius.tolist() == [0.0] * 8

    model = load_model(body("cylinder"))
    assert model.ncontact == 2 * RIM
    np.testing.assert_allclose(np.hypot(*model.contact_pos[:, :2].T), 0.1)
    np.testing.assert_allclose(model.contact_pos[model.contact_name.index("shape:+z2")], [0, 0.1, 0.2], atol=1e-15)

    model = load_model(body("mesh"))
    # the seventh vertex is inside
    assert model.contact_name == tuple(f"shape:{i}" for i in range(6))
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0.3, 0.2, 0], [0, 0, 0.2], [0.3, 0, 0.2]])
    # MuJoCo keeps the vertices of meshes in single precision
    np.testing.assert_allclose(model.contact_pos, corners, atol=1e-7)

    assert load_model(body("sphere")).contact_name == ("shape",)


def poses(m, rng):
    """Random attitudes at which the body is some way in the ground."""
    data = mujoco.MjData(m)
    for _ in range(POSES):
        data.qpos[3:] = rng.normal(size=4)
        data.qpos[3:] /= np.linalg.norm(data.qpos[3:])
        data.qpos[:3] = 0.0, 0.0, rng.uniform(0.02, 0.2)
        mujoco.mj_forward(m, data)
        yield data


@pytest.mark.parametrize("shape", SHAPES)
def test_points_and_depths_are_those_of_mujoco(shape):
    """Spheres, capsules and boxes: every contact, where and how deep. Meshes: the deepest. Cylinders: likewise, to what
    eight points leave of a rim."""
    xml = body(shape).replace("<worldbody>", '<worldbody><geom type="plane" size="0 0 1"/>')
    model, m = load_model(xml), mujoco.MjModel.from_xml_string(xml)
    seen = 0
    for data in poses(m, np.random.default_rng(0)):
        at = equations_of_motion(model, data.qpos[None], np.zeros((1, 6)), np.zeros((1, 0)))
        depth, jacobian = at.depth[0], at.jacobian[0]
        # MuJoCo puts a contact half way between the two surfaces
        theirs = sorted((-c.dist, *c.pos[:2]) for c in data.contact)
        if not theirs:
            assert (depth <= 1e-9).all()
            continue
        if shape in SLACK:
            # MuJoCo keeps some of the corners, and of a round rim only the lowest point
            assert -SLACK[shape] <= depth.max() - theirs[-1][0] <= 1e-7
            seen += 1
            continue
        touching = np.flatnonzero(depth > 0.0)
        if len(touching) > 4:
            # MuJoCo keeps four
            continue
        # velocity of a point at x: linear + omega x (x - origin), omega in body axes
        rotation = data.xmat[1].reshape(3, 3)
        ours = []
        for c in touching:
            turn = jacobian[c, :, 3:] @ rotation.T
            ours.append((depth[c], data.qpos[0] - turn[2, 1], data.qpos[1] + turn[2, 0]))
        np.testing.assert_allclose(sorted(ours), theirs, atol=1e-9)
        seen += len(touching)
    assert seen > 20


@pytest.mark.parametrize(
    ("geom", "words"),
    [
        (
            '<geom name="egg" type="ellipsoid" size=".1 .2 .3"/>',
            "geom 'egg' is of type ellipsoid, which has no contact",
        ),
        (
            '<geom name="ball" type="mesh" mesh="round"/>',
            rf"convex hull of mesh geom 'ball' has 162 vertices, expected at most {HULL}.*maxhullvert",
        ),
    ],
)
def test_what_cannot_touch_is_refused_by_name(geom, words):
    xml = f"""<mujoco><asset><mesh name="round" builtin="sphere" params="2"/></asset><worldbody><body><freejoint/>
      <geom type="sphere" size=".1"/>{geom}</body></worldbody></mujoco>"""
    with pytest.raises(ValueError, match=words):
        load_model(xml)
    assert load_model(xml, contacts=["geom0"]).ncontact == 1
    unseen = xml.replace("name=", 'contype="0" conaffinity="0" name=').replace(
        '<mesh contype="0" conaffinity="0"', "<mesh"
    )
    assert load_model(unseen).ncontact == 1


def test_a_hull_of_fewer_corners_is_accepted():
    xml = """<mujoco><asset><mesh name="round" builtin="sphere" params="2" maxhullvert="20"/></asset><worldbody><body>
      <freejoint/><geom type="mesh" mesh="round"/></body></worldbody></mujoco>"""
    assert load_model(xml).ncontact <= 20


def test_a_welded_geom_touches_with_the_link_that_carries_it():
    xml = """<mujoco><worldbody><body><joint pos="0 .1 0" axis="1 0 0"/><geom type="sphere" size=".1" contype="0"
      conaffinity="0"/><body pos="0 0 -.5" euler="0 90 0"><geom name="foot" type="capsule" size=".03 .1"/></body></body>
      </worldbody></mujoco>"""
    model = load_model(xml)
    # from the joint's anchor; the capsule's z axis lies along x
    np.testing.assert_allclose(model.contact_pos, [[-0.1, -0.1, -0.5], [0.1, -0.1, -0.5]], atol=1e-15)
    assert model.contact_link.tolist() == [0, 0]
