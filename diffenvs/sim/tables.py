"""A model's constants as Warp arrays, in the order in which the kernels take them."""

import numpy as np
import warp as wp

from diffenvs.sim.contact.law import ContactLaw
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision
from diffenvs.sim.topology import build_topology
from diffenvs.sim.workspace import Field, constants


def parameter_fields(model: Model, precision: Precision) -> list[Field]:
    """The physical parameters that every world has of its own, and that carry gradients."""
    p, nl, nv, nu, nc = precision, model.nlink, model.nv, model.nu, model.ncontact
    return [
        Field("friction", p.real, ()),
        Field("mass", p.real, (nl,)),
        Field("com", p.vec3, (nl,)),
        Field("inertia", p.vec6, (nl,)),
        Field("link_pos", p.vec3, (nl,)),
        Field("damping", p.real, (nv,)),
        Field("stiffness", p.real, (nv,)),
        Field("armature", p.real, (nv,)),
        Field("kp", p.real, (nu,)),
        Field("kd", p.real, (nu,)),
        Field("contact_pos", p.vec3, (nc,)),
        Field("contact_radius", p.real, (nc,)),
    ]


def parameter_defaults(model: Model) -> dict[str, np.ndarray]:
    """One world's values of ``parameter_fields``, float64."""
    return {
        "friction": np.asarray(model.friction, dtype=np.float64),
        "mass": model.link_mass,
        "com": model.link_com,
        "inertia": model.link_inertia,
        "link_pos": model.link_pos,
        "damping": model.dof_damping,
        "stiffness": model.dof_stiffness,
        "armature": model.dof_armature,
        "kp": model.actuator_kp,
        "kd": model.actuator_kd,
        "contact_pos": model.contact_pos,
        "contact_radius": model.contact_radius,
    }


class Tables:
    """Constants shared by all worlds."""

    def __init__(self, model: Model, law: ContactLaw, precision: Precision, device: str):
        p = precision
        topology = build_topology(model)

        def ints(values):
            return wp.array(np.ascontiguousarray(values, dtype=np.int32), dtype=int, device=device)

        def numbers(values, dtype=p.real):
            return constants(values, dtype, p, device)

        self.npair, self.nchain = len(topology.row), len(topology.chain_dof)
        self._sizes = (model.nlink, model.nv, model.nu, model.ncontact, model.nlimit)
        # of these, those of the contacts come first
        self._ncontactchain = int(topology.chain_start[model.ncontact])
        self._nrow = model.nrow
        self._gravity = wp.vec3d(*model.gravity)
        self.start, self.column = ints(topology.start), ints(topology.column)
        self.chain_start, self.chain_dof = ints(topology.chain_start), ints(topology.chain_dof)
        self.common = ints(topology.common)
        self.coefficients = numbers(law.coefficients)
        self._row, self._chain_row = ints(topology.row), ints(topology.chain_row)
        self._parent, self._joint = ints(model.link_parent), ints(model.link_joint)
        self._qpos, self._dof = ints(model.link_qpos), ints(model.link_dof)
        rotations = np.array([quaternion_matrix(q) for q in model.link_quat]).reshape(-1, 3, 3)
        self._rotation, self._axis = numbers(rotations, p.mat33), numbers(model.link_axis, p.vec3)
        self._dof_link, self._dof_qpos = ints(model.dof_link), ints(topology.dof_qpos)
        self._qpos0, self._qpos_spring = numbers(model.qpos0), numbers(model.qpos_spring)
        self._actuator_dof = ints(model.actuator_dof)
        self._gain, self._limit = numbers(model.actuator_gain), numbers(model.actuator_limit)
        self._contact_link, self._limit_dof = ints(model.contact_link), ints(model.limit_dof)
        self._low, self._high = (numbers(model.dof_range[model.limit_dof, side]) for side in (0, 1))

    def dynamics(self, timestep: float) -> list:
        """Arguments of ``dynamics`` after ``first`` and before the parameters."""
        nlink, nv, nu, nc, nlimit = self._sizes
        return [
            *(nlink, nv, nu, self.npair, nc, nlimit, self._ncontactchain, self.nchain, 0.5 * timestep, self._gravity),
            *(self._parent, self._joint, self._qpos, self._dof, self._rotation, self._axis),
            *(self._dof_link, self._dof_qpos, self._qpos0, self._qpos_spring),
            *(self._actuator_dof, self._gain, self._limit, self._row, self.column),
            *(self._contact_link, self._limit_dof, self._low, self._high, self._chain_row, self.chain_dof),
        ]

    def tree(self, timestep: float) -> list:
        """Sizes, step and tables of the kernels that factor and solve."""
        return [self._sizes[1], self._nrow, timestep, self.start, self.column, self.chain_start, self.chain_dof]

    def chains(self) -> list:
        """Tables of the paths from the rows to the root."""
        return [self._nrow, self.chain_start, self.chain_dof]

    def integrate(self, timestep: float) -> list:
        """Arguments of ``integrate`` after ``first`` and before the state."""
        return [self._sizes[0], 0.5 * timestep, self._joint, self._qpos, self._dof]

    def spheres(self) -> list:
        """Arguments of ``contact_spheres`` after ``first`` and before the parameters."""
        return [
            *(self._sizes[0], self._sizes[3], self._parent, self._joint, self._qpos, self._dof),
            *(self._rotation, self._axis, self._qpos0, self._contact_link),
        ]


def quaternion_matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a unit quaternion w x y z."""
    w, v = q[0], q[1:]
    cross = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross
