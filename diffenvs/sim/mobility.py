"""How lightly a robot's feet and joints move: what bounds the step of a contact law that is a force."""

import numpy as np

from diffenvs.sim.contact import ContactLaw
from diffenvs.sim.equations import Equations, equations_of_motion
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision


def lightest_feet(model: Model, law: ContactLaw, precision: Precision, device: str = "cpu") -> tuple[float, float]:
    """Effective masses [kg] at home of the contact points where they are easiest to move: any way, along the ground.

    One over the largest eigenvalue of the Delassus matrix J M^-1 J^T of all feet, infinite without feet. The first
    takes all directions, because legs bend and bases tilt, and hardly depends on the pose; the second horizontal ones.
    """
    if model.ncontact == 0:
        return float("inf"), float("inf")
    at = _at_home(model, law, precision, device)
    moved = (at.jacobian[0, :, :directions].reshape(-1, model.nv) for directions in (3, 2))
    every_way, along_the_ground = (_lightest(jacobian, at.mass_matrix[0]) for jacobian in moved)
    return every_way, along_the_ground


def lightest_limits(model: Model, law: ContactLaw, precision: Precision, device: str = "cpu") -> float:
    """Effective inertia [kg m^2 | kg] at home of the limited joints where they are easiest to move, likewise."""
    if model.nlimit == 0:
        return float("inf")
    at = _at_home(model, law, precision, device)
    return _lightest(at.limit_jacobian[0], at.mass_matrix[0])


def _at_home(model: Model, law: ContactLaw, precision: Precision, device: str) -> Equations:
    states = model.home[None], np.zeros((1, model.nv)), np.zeros((1, model.nu))
    return equations_of_motion(model, *states, law=law, precision=precision, device=device)


def _lightest(jacobian: np.ndarray, mass_matrix: np.ndarray) -> float:
    """One over the largest eigenvalue of J M^-1 J^T, J of shape (n, nv)."""
    largest = np.linalg.eigvalsh(jacobian @ np.linalg.solve(mass_matrix, jacobian.T))[-1]
    return float(1.0 / largest) if largest > 0.0 else float("inf")
