"""How lightly a robot's feet move: what bounds the step of a contact law that is a force."""

import numpy as np

from diffenvs.sim.contact import ContactLaw
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision


def lightest_foot(model: Model, law: ContactLaw, precision: Precision, device: str = "cpu") -> float:
    """Effective mass [kg] of the contact points in the direction in which they are easiest to move, at home.

    One over the largest eigenvalue of the Delassus matrix J M^-1 J^T of all feet and directions, infinite without
    feet. All directions take part, so the attitude of a free base does not matter; bent joints change it by some ten
    percent.
    """
    if model.ncontact == 0:
        return float("inf")
    states = model.home[None], np.zeros((1, model.nv)), np.zeros((1, model.nu))
    at = equations_of_motion(model, *states, law=law, precision=precision, device=device)
    jacobian = at.jacobian[0].reshape(-1, model.nv)
    largest = np.linalg.eigvalsh(jacobian @ np.linalg.solve(at.mass_matrix[0], jacobian.T))[-1]
    return float(1.0 / largest) if largest > 0.0 else float("inf")
