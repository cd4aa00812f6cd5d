"""Which points of a body can touch a plane at once: those of a face of its convex hull."""

from itertools import combinations

import numpy as np

# of a body's size: how far a point may lie from the plane of a face
_FLAT = 1e-6


def faces(points: np.ndarray) -> list[np.ndarray]:
    """Indices of the points on each face of the hull of ``points`` (n, 3); of all, once, where the hull is flat."""
    everything = [np.arange(len(points))]
    centred = points - points.mean(0)
    size = np.abs(centred).max(initial=0.0)
    if np.linalg.matrix_rank(centred, tol=_FLAT * size) < 3:
        return everything
    found = {}
    for corner, second, third in combinations(range(len(points)), 3):
        normal = np.cross(points[second] - points[corner], points[third] - points[corner])
        length = np.linalg.norm(normal)
        if length <= (_FLAT * size) ** 2:
            continue
        height = (points - points[corner]) @ (normal / length)
        if (height <= _FLAT * size).all() or (height >= -_FLAT * size).all():
            on = np.flatnonzero(np.abs(height) <= _FLAT * size)
            found[tuple(on)] = on
    return list(found.values())
