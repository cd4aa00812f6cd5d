"""Faces of convex hulls, counted by hand."""

import numpy as np
import pytest

from diffenvs.sim.faces import faces
from diffenvs.sim.load import load_model
from tests.sim.bodies import body


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ("capsule", [2]),
        ("box", [4] * 6),
        ("cylinder", [4] * 8 + [8] * 2),
        # a wedge: two triangles, three rectangles
        ("mesh", [3] * 2 + [4] * 3),
    ],
)
def test_faces_of_each_shape(shape, sizes):
    found = faces(load_model(body(shape)).contact_pos)
    assert sorted(len(face) for face in found) == sizes


def test_a_flat_body_is_one_face():
    square = np.array([[0.0, 0.0, 0.5], [1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [1.0, 1.0, 0.5]])
    assert [face.tolist() for face in faces(square)] == [[0, 1, 2, 3]]
    assert [face.tolist() for face in faces(square[:1])] == [[0]]


def test_a_point_inside_is_on_no_face():
    box = load_model(body("box")).contact_pos
    assert 8 not in np.concatenate(faces(np.vstack([box, np.zeros(3)])))
