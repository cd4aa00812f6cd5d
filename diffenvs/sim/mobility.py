"""How lightly a robot's feet move: what bounds the step of a contact law that is a force."""

import numpy as np

from diffenvs.sim.contact import ContactLaw
from diffenvs.sim.equations import equations_of_motion
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision


def lightest_feet(model: Model, law: ContactLaw, precision: Precision, device: str = "cpu") -> tuple[float, float]:
    """Effective masses [kg] at home of the contact points where they are easiest to move: any way, along the ground.

    One over the largest eigenvalue of the Delassus matrix J M^-1 J^T of all feet, infinite without feet. The first
    takes all directions, because legs bend and bases tilt, and hardly depends on the pose; the second horizontal ones.
    """
    if model.ncontact == 0:
        return float("inf"), float("inf")
    states = model.home[None], np.zeros((1, model.nv)), np.zeros((1, model.nu))
    at = equations_of_motion(model, *states, law=law, precision=precision, device=device)
    masses = []
    for directions in (3, 2):
        jacobian = at.jacobian[0, :, :directions].reshape(-1, model.nv)
        largest = np.linalg.eigvalsh(jacobian @ np.linalg.solve(at.mass_matrix[0], jacobian.T))[-1]
        masses.append(float(1.0 / largest) if largest > 0.0 else float("inf"))
    return masses[0], masses[1]
