"""The mechanical model: plain arrays that describe one robot.

A *link* is one joint. A MuJoCo body with k joints is a chain of k links, the first k - 1 of them without
mass; a body welded to its parent is part of the parent's link; a body welded to the world is part of no link.
A link's frame has its origin at the joint's anchor and the axes of its MuJoCo body.

Conventions, here and everywhere: SI units, z up, states as MuJoCo has them. `qpos` of a free joint is the
position of the body's origin and a quaternion w x y z; its `qvel` is the linear velocity of the body's origin
in world axes, then the angular velocity in body axes. A ball joint has the quaternion and the angular
velocity only.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Joint(IntEnum):
    """Joint types, numbered as MuJoCo numbers them (mjtJoint)."""

    FREE = 0
    BALL = 1
    SLIDE = 2
    HINGE = 3


@dataclass(frozen=True, eq=False)
class Model:
    """One robot. Arrays are NumPy, float64 or int32, read-only; sizes are nlink, nq, nv, nu, nc (contacts),
    nlimit.

    Names
        name: of the MJCF model.
        xml: the MJCF text it was read from (the robot only, no floor).

    Links, parents before children
        link_name: MuJoCo body of each link; for the massless links "body:joint".
        link_body (nlink,): MuJoCo body id.
        link_parent (nlink,): parent link, -1 for the world.
        link_joint (nlink,): a `Joint`.
        link_qpos, link_dof (nlink,): first index into qpos and into qvel.
        link_pos (nlink, 3) [m]: link origin in the parent link's frame, at qpos0; zero for a free joint.
        link_quat (nlink, 4): link axes in the parent link's, at qpos0, w x y z; 1 0 0 0 for a free joint.
        link_axis (nlink, 3): joint axis in link axes, of length one; zeros for free and ball joints.
        link_mass (nlink,) [kg]
        link_com (nlink, 3) [m]: centre of mass in the link frame.
        link_inertia (nlink, 6) [kg m^2]: xx yy zz xy xz yz about the centre of mass, in link axes: entries of
            the inertia matrix, xy = -integral of x y dm.

    Degrees of freedom
        dof_link (nv,): the link that the degree of freedom moves.
        dof_parent (nv,): the previous degree of freedom on the way to the root, -1 at the root.
        dof_damping (nv,) [N m s/rad | N s/m]; dof_armature (nv,) [kg m^2 | kg].
        dof_stiffness (nv,) [N m/rad | N/m]: springs about qpos_spring.
        dof_range (nv, 2) [rad | m]: range of the joint, -inf and inf without one.
        limit_name: joints that stop at the ends of their range. limit_dof (nlimit,): their degrees of freedom.
        dof_effort (nv,) [N m | N], dof_speed (nv,) [rad/s | m/s]: limits of the drive, inf when unknown.

    Configurations
        qpos0 (nq,): the configuration that link_pos and link_quat describe. A joint angle q turns the link by
            q - qpos0; a ball or free joint's quaternion is absolute.
        qpos_spring (nq,): where the springs of dof_stiffness are relaxed.
        home (nq,): keyframe "home", qpos0 without one.

    Actuators: force = clip(gain u + kp (u - q) - kd qd, -limit, limit). Position: gain 0; motor: kp = kd = 0.
        actuator_name: names. actuator_dof (nu,): the degree of freedom that is driven.
        actuator_kp (nu,) [N m/rad | N/m], actuator_kd (nu,) [N m s/rad | N s/m]
        actuator_gain (nu,) [N m | N per unit of control], actuator_limit (nu,) [N m | N], inf without one.

    Contact spheres with the ground plane z = 0; a corner is one of radius zero
        contact_name: names, the geom's where it has one sphere, else "geom:suffix" (see `contact_points`).
        contact_geom: the geom that each belongs to. contact_link (nc,): the link that each sits on.
        contact_pos (nc, 3) [m]: centre in the link frame. contact_radius (nc,) [m].
        friction: Coulomb coefficient.

    gravity (3,) [m/s^2], world axes.
    """

    name: str
    xml: str

    link_name: tuple[str, ...]
    link_body: np.ndarray
    link_parent: np.ndarray
    link_joint: np.ndarray
    link_qpos: np.ndarray
    link_dof: np.ndarray
    link_pos: np.ndarray
    link_quat: np.ndarray
    link_axis: np.ndarray
    link_mass: np.ndarray
    link_com: np.ndarray
    link_inertia: np.ndarray

    dof_link: np.ndarray
    dof_parent: np.ndarray
    dof_damping: np.ndarray
    dof_armature: np.ndarray
    dof_stiffness: np.ndarray
    dof_range: np.ndarray
    limit_name: tuple[str, ...]
    limit_dof: np.ndarray
    dof_effort: np.ndarray
    dof_speed: np.ndarray

    qpos0: np.ndarray
    qpos_spring: np.ndarray
    home: np.ndarray

    actuator_name: tuple[str, ...]
    actuator_dof: np.ndarray
    actuator_kp: np.ndarray
    actuator_kd: np.ndarray
    actuator_gain: np.ndarray
    actuator_limit: np.ndarray

    contact_name: tuple[str, ...]
    contact_geom: tuple[str, ...]
    contact_link: np.ndarray
    contact_pos: np.ndarray
    contact_radius: np.ndarray
    friction: float

    gravity: np.ndarray

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return len(self.qpos0)

    @property
    def nv(self) -> int:
        """Number of velocity coordinates (degrees of freedom)."""
        return len(self.dof_link)

    @property
    def nu(self) -> int:
        """Number of actuators."""
        return len(self.actuator_dof)

    @property
    def nlink(self) -> int:
        """Number of links."""
        return len(self.link_parent)

    @property
    def ncontact(self) -> int:
        """Number of contact spheres."""
        return len(self.contact_radius)

    @property
    def nlimit(self) -> int:
        """Number of joint limits."""
        return len(self.limit_dof)

    @property
    def nrow(self) -> int:
        """Number of rows of the solve: the contacts, then the limits."""
        return self.ncontact + self.nlimit
