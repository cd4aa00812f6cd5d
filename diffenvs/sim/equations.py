"""The equations of motion of a state as dense NumPy arrays, to look at and to test against."""

from dataclasses import dataclass

import numpy as np

from diffenvs.sim.contact import ContactLaw, Hard
from diffenvs.sim.model import Model
from diffenvs.sim.precision import FLOAT64, Precision
from diffenvs.sim.program import Program
from diffenvs.sim.tables import parameter_defaults
from diffenvs.sim.topology import build_topology

_HARD = Hard()


@dataclass(frozen=True, eq=False)
class Equations:
    """M qacc + bias = J^T f at N states, float64.

    mass_matrix (N, nv, nv), armature included; bias (N, nv) [N m | N]: Coriolis, gravity, springs and dampers, less
    the actuators' forces; jacobian (N, nc, 3, nv): velocity of each contact point, world axes; depth (N, nc) [m]:
    penetration, positive below the ground. limit_jacobian (N, nlimit, nv): velocity of each limited joint towards the
    middle of its range; limit_depth (N, nlimit) [rad | m]: how far it is beyond the nearer end.
    """

    mass_matrix: np.ndarray
    bias: np.ndarray
    jacobian: np.ndarray
    depth: np.ndarray
    limit_jacobian: np.ndarray
    limit_depth: np.ndarray


def equations_of_motion(
    model: Model,
    qpos: np.ndarray,
    qvel: np.ndarray,
    control: np.ndarray,
    *,
    law: ContactLaw = _HARD,
    precision: Precision = FLOAT64,
    device: str = "cpu",
) -> Equations:
    """Evaluate at qpos (N, nq), qvel (N, nv), control (N, nu).

    The law has no say in the result; with that of a simulation, its precision and device, no kernel is compiled twice.
    """
    n = len(qpos)
    # a step of zero length evaluates everything at the state itself
    program = Program(
        model, law, worlds=n, substeps=1, timestep=0.0, precision=precision, device=device, in_one_part=True
    )
    for name, value in parameter_defaults(model).items():
        array = getattr(program.inputs, name)
        if array.size:
            array.assign(np.broadcast_to(value, (n, *np.shape(value))))
    program.inputs.qpos.assign(qpos)
    program.inputs.qvel.assign(qvel)
    if model.nu:
        program.inputs.control.assign(control)
    program.forward()
    topology = build_topology(model)
    # the program's arrays are views of its memory, which goes with it
    packed, bias, columns, depth = (array.copy() for array in program.equations())
    mass_matrix = np.zeros((n, model.nv, model.nv))
    mass_matrix[:, topology.row, topology.column] = packed
    mass_matrix[:, topology.column, topology.row] = packed
    jacobian = np.zeros((n, model.nrow, 3, model.nv))
    jacobian[:, topology.chain_row, :, topology.chain_dof] = np.moveaxis(columns, 1, 0)
    nc = model.ncontact
    return Equations(mass_matrix, bias, jacobian[:, :nc], depth[:, :nc], jacobian[:, nc:, 2], depth[:, nc:])
