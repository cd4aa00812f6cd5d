"""How lightly a robot's feet and joints move: what bounds the step of a contact law that is a force."""

import math

import numpy as np

from diffenvs.sim.contact import ContactLaw
from diffenvs.sim.equations import Equations, equations_of_motion
from diffenvs.sim.faces import faces
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision


def lightest(model: Model, law: ContactLaw, precision: Precision, device: str = "cpu") -> tuple[float, float, float]:
    """Effective masses [kg] at home of the contact points where they are easiest to move, any way and along the ground,
    and the effective inertia [kg m^2 | kg] of the limited joints, likewise.

    One over the largest eigenvalue of the Delassus matrix J M^-1 J^T of the feet or of the limits, infinite without
    any. The first takes all directions, because legs bend and bases tilt, and hardly depends on the pose; the second
    horizontal ones. All geoms are taken to touch, each with the face of its points that is easiest to move: the floor
    meets no two faces of a geom at once, unless it is pressed in as deep as it is thick.
    """
    feet, limits = (math.inf, math.inf), math.inf
    if model.nrow:
        states = model.home[None], np.zeros((1, model.nv)), np.zeros((1, model.nu))
        at = equations_of_motion(model, *states, law=law, precision=precision, device=device)
        if model.ncontact:
            feet = tuple(_lightest_faces(model, at, directions) for directions in (3, 2))
        if model.nlimit:
            limits = _lightest(at.limit_jacobian[0], at.mass_matrix[0])
    return *feet, limits


def _lightest_faces(model: Model, at: Equations, directions: int) -> float:
    geoms, chosen = np.array(model.contact_geom), []
    for geom in dict.fromkeys(model.contact_geom):
        points = np.flatnonzero(geoms == geom)
        touching = [points[face] for face in faces(model.contact_pos[points])] if len(points) > 1 else [points]
        chosen.append(min(touching, key=lambda face: _lightest(_motion(at, face, directions), at.mass_matrix[0])))
    return _lightest(_motion(at, np.concatenate(chosen), directions), at.mass_matrix[0])


def _motion(at: Equations, points: np.ndarray, directions: int) -> np.ndarray:
    """Rows of the Jacobian, (n, nv), of some points along the first ``directions`` axes."""
    return at.jacobian[0, points, :directions].reshape(-1, at.jacobian.shape[-1])


def _lightest(jacobian: np.ndarray, mass_matrix: np.ndarray) -> float:
    """One over the largest eigenvalue of J M^-1 J^T, J of shape (n, nv)."""
    largest = np.linalg.eigvalsh(jacobian @ np.linalg.solve(mass_matrix, jacobian.T))[-1]
    return float(1.0 / largest) if largest > 0.0 else float("inf")
