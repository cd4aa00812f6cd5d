"""What a compiled MuJoCo model holds that would move the robot and that `Model` cannot express."""

from collections.abc import Iterator

import mujoco
import numpy as np

from diffenvs.sim.model import Joint


def unsupported(m: mujoco.MjModel) -> Iterator[str]:
    """One phrase, naming the element, for everything that `Model` cannot express."""
    if m.nv == 0:
        yield "it has no joint"
    yield from _unsupported_element(m)
    yield from _unsupported_option(m)
    for body in range(m.nbody):
        yield from _unsupported_body(m, body)
    for geom in range(m.ngeom):
        yield from _unsupported_geom(m, geom)
    for joint in range(m.njnt):
        yield from _unsupported_joint(m, joint)
    for actuator in range(m.nactuator):
        yield from _unsupported_actuator(m, actuator)


def _unsupported_element(m: mujoco.MjModel) -> Iterator[str]:
    kind = mujoco.mjtObj
    for obj, count, what in (
        (kind.mjOBJ_TENDON, m.ntendon, "tendon"),
        (kind.mjOBJ_EQUALITY, m.neq, "equality constraint"),
        (kind.mjOBJ_FLEX, m.nflex, "deformable body"),
        (kind.mjOBJ_PAIR, m.npair, "explicit contact pair"),
        (kind.mjOBJ_PLUGIN, m.nplugin, "plugin"),
    ):
        for i in range(count):
            yield f"{what} '{element_name(m, obj, i)}' is not supported"


def _unsupported_option(m: mujoco.MjModel) -> Iterator[str]:
    for flag in ("SPRING", "DAMPER", "ACTUATION"):
        if disabled(m, flag):
            yield f'the option flag {flag.lower()}="disable" is not supported'
    if m.opt.disableactuator != 0:
        yield "the option actuatorgroupdisable is not supported"
    if m.opt.density != 0.0 or m.opt.viscosity != 0.0:
        yield f"a medium of density {m.opt.density:g} and viscosity {m.opt.viscosity:g} is not supported"


def _unsupported_body(m: mujoco.MjModel, body: int) -> Iterator[str]:
    name = element_name(m, mujoco.mjtObj.mjOBJ_BODY, body)
    if m.body_mocapid[body] >= 0:
        yield f"motion-capture body '{name}' is not supported"
    if m.body_gravcomp[body] != 0.0:
        yield f"gravity compensation of body '{name}' is not supported"


def _unsupported_geom(m: mujoco.MjModel, geom: int) -> Iterator[str]:
    name, body = element_name(m, mujoco.mjtObj.mjOBJ_GEOM, geom), m.geom_bodyid[geom]
    if m.geom_adhesion[geom] != 0.0 or m.geom_surfacevel[geom].any():
        yield f"geom '{name}' has an adhesion or a surface velocity, which is not supported"
    collides = m.geom_contype[geom] or m.geom_conaffinity[geom]
    # What stands fixed and carries nothing is an obstacle; what carries a joint is the base of the robot.
    fixed = body == 0 or (m.body_weldid[body] == 0 and not _carries_a_joint(m, body))
    if collides and fixed and not _is_ground(m, geom):
        yield f"geom '{name}' is an obstacle; the only ground is the plane z = 0"


def _unsupported_joint(m: mujoco.MjModel, joint: int) -> Iterator[str]:
    name, kind = element_name(m, mujoco.mjtObj.mjOBJ_JOINT, joint), Joint(m.jnt_type[joint])
    dof = m.jnt_dofadr[joint]
    if m.dof_frictionloss[dof] != 0.0:
        yield f"joint '{name}' has a friction loss of {m.dof_frictionloss[dof]:g}, which is not supported"
    if m.jnt_springyield[joint] != 0.0 or m.jnt_stiffnesspoly[joint].any() or m.dof_dampingpoly[dof].any():
        yield f"joint '{name}' has a plastic or nonlinear spring or damper, which is not supported"
    if kind in (Joint.FREE, Joint.BALL):
        if m.jnt_stiffness[joint] != 0.0:
            yield f"{kind.name.lower()} joint '{name}' has a stiffness, which is not supported"
        if m.jnt_limited[joint]:
            yield f"{kind.name.lower()} joint '{name}' has a range, which is not supported"
    if m.jnt_actfrclimited[joint]:
        if m.jnt_actfrcrange[joint, 0] != -m.jnt_actfrcrange[joint, 1]:
            yield f"joint '{name}' has an actuator force range that is not symmetric"
        if np.count_nonzero(m.actuator_trnid[:, 0] == joint) > 1:
            yield f"joint '{name}' limits the sum of several actuators, which is not supported"


def _unsupported_actuator(m: mujoco.MjModel, i: int) -> Iterator[str]:
    name = element_name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, i)
    gain, bias = mujoco.mjtGain(m.actuator_gaintype[i]), mujoco.mjtBias(m.actuator_biastype[i])
    dynamics = mujoco.mjtDyn(m.actuator_dyntype[i]) != mujoco.mjtDyn.mjDYN_NONE
    variable = gain == mujoco.mjtGain.mjGAIN_AFFINE and m.actuator_gainprm[i, 1:3].any()
    fixed = gain in (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_AFFINE) and not variable
    offset = bias == mujoco.mjtBias.mjBIAS_AFFINE and m.actuator_biasprm[i, 0] != 0.0
    affine = bias in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE) and not offset
    drive = mujoco.mjtTrn(m.actuator_trntype[i])
    if drive not in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT):
        yield f"actuator '{name}' does not drive a joint"
    elif Joint(m.jnt_type[m.actuator_trnid[i, 0]]) not in (Joint.SLIDE, Joint.HINGE):
        yield f"actuator '{name}' drives a joint that is neither a hinge nor a slide"
    if dynamics or m.actuator_delay[i] != 0.0:
        yield f"actuator '{name}' has dynamics or a delay of its own, which is not supported"
    elif not fixed or not affine:
        yield f"actuator '{name}' is neither a position nor a velocity actuator nor a motor"
    if m.actuator_forcelimited[i] and m.actuator_forcerange[i, 0] != -m.actuator_forcerange[i, 1]:
        yield f"actuator '{name}' has a force range that is not symmetric"
    if m.actuator_armature[i] != 0.0 or m.actuator_damping[i] != 0.0 or m.actuator_dampingpoly[i].any():
        yield f"actuator '{name}' has an armature or damping of its own: give them to its joint"


def _carries_a_joint(m: mujoco.MjModel, body: int) -> bool:
    above = [m.body_parentid[other] for other in range(m.nbody) if m.body_jntnum[other] > 0]
    while any(above):
        if body in above:
            return True
        above = [m.body_parentid[other] for other in above]
    return False


def _is_ground(m: mujoco.MjModel, geom: int) -> bool:
    level = m.geom_quat[geom, 1] == 0.0 and m.geom_quat[geom, 2] == 0.0
    plane = m.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
    return bool(plane and level and m.geom_bodyid[geom] == 0 and m.geom_pos[geom, 2] == 0.0)


def disabled(m: mujoco.MjModel, flag: str) -> bool:
    """Whether an option flag (GRAVITY, LIMIT, ...) is disabled."""
    return bool(m.opt.disableflags & getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))


def element_name(m: mujoco.MjModel, kind: mujoco.mjtObj, index: int) -> str:
    """Name of an element; its kind and id if it has none ("geom3")."""
    return mujoco.mj_id2name(m, kind, index) or f"{kind.name.removeprefix('mjOBJ_').lower()}{index}"
