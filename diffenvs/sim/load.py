"""MJCF -> Model, through MuJoCo's own parser.

MuJoCo resolves defaults, classes, orientations and inertias; what is read here is its compiled model.
Anything in it that would move the robot and that `Model` cannot express is refused (unsupported.py), never
dropped.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np

from diffenvs.sim.contact_points import contact_points
from diffenvs.sim.model import Joint, Model
from diffenvs.sim.scene import mujoco_model
from diffenvs.sim.unsupported import disabled, element_name, unsupported

__all__ = ["load_model", "mujoco_model"]

_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


def load_model(
    path_or_xml: str | os.PathLike, *, contacts: Sequence[str] | None = None, limits: bool | Sequence[str] = True
) -> Model:
    """Read a robot.

    Args:
        path_or_xml: an MJCF file, or the MJCF text itself (it then begins with "<").
        contacts: names of the geoms which touch the ground: spheres, capsules, boxes, cylinders and meshes, see
            `contact_points`. By default those with a nonzero contype or conaffinity. No other geom touches
            anything; a geom without a name is called "geom" and its MuJoCo id.
        limits: joints that stop at the ends of their range: True, all that have one; False, none; or names. A joint
            without a name is called "joint" and its MuJoCo id.

    What is read differently from MuJoCo: sliding friction only (a contact of condim 1 has none); a control
    range is not a property of the robot, except that a motor's symmetric one becomes its force limit, which
    is the same; margins and solver settings have no counterpart. Speed limits of the drives come from
    `<custom><numeric name="drive_speed">`, one number or one per actuator, since MJCF has no attribute for
    them.

    Returns:
        The model, see `Model` for shapes and units.

    Raises:
        TypeError: path_or_xml is no path and no text; contacts or limits are no sequence of names.
        ValueError: no such file, an MJCF error (MuJoCo's words), an unknown contact or limit or one that is given
            twice, contacts of more than one friction, or elements that are not supported, all of them named.
    """
    xml, compiled = _compile(path_or_xml)
    name = compiled.names[: compiled.names.index(b"\0")].decode() or "robot"
    problems = list(unsupported(compiled))
    if problems:
        raise ValueError(f"model '{name}' cannot be simulated: {'; '.join(problems)}.")
    key = mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_KEY, "home")
    return Model(
        name=name,
        xml=xml,
        **_links(compiled),
        **_dofs(compiled),
        **_limits(compiled, limits),
        **_actuators(compiled),
        **_contacts(compiled, contacts),
        qpos0=compiled.qpos0.copy(),
        qpos_spring=compiled.qpos_spring.copy(),
        home=(compiled.key_qpos[key] if key >= 0 else compiled.qpos0).copy(),
        gravity=np.zeros(3) if disabled(compiled, "GRAVITY") else compiled.opt.gravity.copy(),
    )


def _compile(path_or_xml: str | os.PathLike) -> tuple[str, mujoco.MjModel]:
    """The MJCF text and MuJoCo's compiled model of it."""
    if not isinstance(path_or_xml, str | os.PathLike):
        raise TypeError(f"load_model: expected a path or MJCF text, got {type(path_or_xml).__name__}.")
    is_text = isinstance(path_or_xml, str) and path_or_xml.lstrip().startswith("<")
    if not is_text and not Path(path_or_xml).is_file():
        raise ValueError(f"load_model: there is no file {os.fspath(path_or_xml)!r}.")
    text = path_or_xml if is_text else Path(path_or_xml).read_text(encoding="utf-8")
    try:
        if is_text:
            return text, mujoco.MjModel.from_xml_string(text)
        return text, mujoco.MjModel.from_xml_path(os.fspath(path_or_xml))
    except ValueError as error:
        where = "the MJCF text" if is_text else os.fspath(path_or_xml)
        raise ValueError(f"load_model: MuJoCo cannot read {where}: {' '.join(str(error).split())}") from error


def _links(m: mujoco.MjModel) -> dict[str, object]:
    """Kinematic tree and inertias. Links are numbered as MuJoCo numbers joints, so parents come first."""
    n = m.njnt
    parent = np.full(n, -1, dtype=np.int32)
    position, quaternion, axis = np.zeros((n, 3)), np.tile(_IDENTITY, (n, 1)), np.zeros((n, 3))
    mass, com, inertia = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 6))
    names = []
    for link in range(n):
        body, joint = m.jnt_bodyid[link], Joint(m.jnt_type[link])
        first, last = m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body] - 1
        suffix = "" if link == last else f":{element_name(m, mujoco.mjtObj.mjOBJ_JOINT, link)}"
        names.append(element_name(m, mujoco.mjtObj.mjOBJ_BODY, body) + suffix)
        if joint in (Joint.SLIDE, Joint.HINGE):
            axis[link] = m.jnt_axis[link]
        if link > first:
            parent[link] = link - 1
            position[link] = m.jnt_pos[link] - m.jnt_pos[link - 1]
        else:
            carrier = m.body_weldid[m.body_parentid[body]]
            if m.body_jntnum[carrier] > 0:
                parent[link] = m.body_jntadr[carrier] + m.body_jntnum[carrier] - 1
            if joint != Joint.FREE:
                origin, axes = _pose_in(m, body, carrier)
                position[link] = origin + _rotate(axes, m.jnt_pos[link]) - _anchor(m, parent[link])
                quaternion[link] = axes
        if link == last:
            mass[link], com[link], inertia[link] = _lumped_inertia(m, body)
            com[link] -= _anchor(m, link)
    return {
        "link_name": tuple(names),
        "link_body": m.jnt_bodyid.copy(),
        "link_parent": parent,
        "link_joint": m.jnt_type.copy(),
        "link_qpos": m.jnt_qposadr.copy(),
        "link_dof": m.jnt_dofadr.copy(),
        "link_pos": position,
        "link_quat": quaternion,
        "link_axis": axis,
        "link_mass": mass,
        "link_com": com,
        "link_inertia": inertia,
    }


def _lumped_inertia(m: mujoco.MjModel, carrier: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass, inertia (xx yy zz xy xz yz) of a body and what is welded to it, in its frame."""
    parts = []
    for body in np.flatnonzero(m.body_weldid == carrier):
        origin, axes = _pose_in(m, body, carrier)
        principal = np.zeros(4)
        mujoco.mju_mulQuat(principal, axes, m.body_iquat[body])
        turn = _matrix(principal)
        centre = origin + _rotate(axes, m.body_ipos[body])
        parts.append((m.body_mass[body], centre, turn * m.body_inertia[body] @ turn.T))
    total = sum(mass for mass, _, _ in parts)
    com = sum(mass * centre for mass, centre, _ in parts) / total
    tensor = np.zeros((3, 3))
    for mass, centre, inertia in parts:
        lever = centre - com
        tensor += inertia + mass * (lever @ lever * np.eye(3) - np.outer(lever, lever))
    return total, com, tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _dofs(m: mujoco.MjModel) -> dict[str, object]:
    """Properties of the degrees of freedom."""
    span = np.tile([-np.inf, np.inf], (m.nv, 1))
    for joint in _ranged(m):
        span[m.jnt_dofadr[joint]] = m.jnt_range[joint]
    return {
        "dof_link": m.dof_jntid.copy(),
        "dof_parent": m.dof_parentid.copy(),
        "dof_damping": m.dof_damping.copy(),
        "dof_armature": m.dof_armature.copy(),
        "dof_stiffness": m.jnt_stiffness[m.dof_jntid],
        "dof_range": span,
    }


def _actuators(m: mujoco.MjModel) -> dict[str, object]:
    """Every actuator as clip(gain u + kp (u - q) - kd qd), with MuJoCo's transmission ratio folded in.

    MuJoCo: length = gear q, force = clip(g u + b1 length + b2 velocity), joint force = gear * force.
    """
    joint = m.actuator_trnid[:, 0]
    gear = m.actuator_gear[:, 0]
    bias = np.where((m.actuator_biastype == mujoco.mjtBias.mjBIAS_AFFINE)[:, None], m.actuator_biasprm, 0.0)
    kp, kd = 0.0 - bias[:, 1] * gear**2, 0.0 - bias[:, 2] * gear**2
    gain = m.actuator_gainprm[:, 0] * gear - kp
    limit = np.where(m.actuator_forcelimited, np.abs(gear) * m.actuator_forcerange[:, 1], np.inf)
    joint_limit = np.where(m.jnt_actfrclimited, m.jnt_actfrcrange[:, 1], np.inf)
    limit = np.minimum(limit, joint_limit[joint])
    is_motor = (kp == 0.0) & (kd == 0.0)
    symmetric = m.actuator_ctrllimited & (m.actuator_ctrlrange[:, 0] == -m.actuator_ctrlrange[:, 1])
    if not disabled(m, "CLAMPCTRL"):
        clamped = np.minimum(limit, np.abs(gain) * m.actuator_ctrlrange[:, 1])
        limit = np.where(is_motor & symmetric, clamped, limit)
    dof = m.jnt_dofadr[joint]
    effort, speed = np.full(m.nv, np.inf), np.full(m.nv, np.inf)
    for driven in np.unique(dof):
        effort[driven] = min(limit[dof == driven].sum(), joint_limit[m.dof_jntid[driven]])
    speed[dof] = _drive_speed(m)
    return {
        "actuator_name": tuple(element_name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, i) for i in range(m.nu)),
        "actuator_dof": dof,
        "actuator_kp": kp,
        "actuator_kd": kd,
        "actuator_gain": gain,
        "actuator_limit": limit,
        "dof_effort": effort,
        "dof_speed": speed,
    }


def _drive_speed(m: mujoco.MjModel) -> np.ndarray:
    """Speed limit at the joint of every actuator [rad/s | m/s], shape (nu,)."""
    numeric = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_NUMERIC, "drive_speed")
    if numeric < 0:
        return np.full(m.nu, np.inf)
    start, size = m.numeric_adr[numeric], m.numeric_size[numeric]
    if size not in (1, m.nu):
        raise ValueError(f"numeric 'drive_speed' must hold 1 or {m.nu} (one per actuator) numbers, got {size}.")
    return np.broadcast_to(m.numeric_data[start : start + size], m.nu)


def _ranged(m: mujoco.MjModel) -> list[int]:
    """Joints with a range that is not disabled."""
    off = disabled(m, "LIMIT") or disabled(m, "CONSTRAINT")
    return [] if off else np.flatnonzero(m.jnt_limited).tolist()


def _limits(m: mujoco.MjModel, chosen: bool | Sequence[str]) -> dict[str, object]:
    """The joints that stop at the ends of their range."""
    ranged = {element_name(m, mujoco.mjtObj.mjOBJ_JOINT, joint): joint for joint in _ranged(m)}
    if isinstance(chosen, bool | np.bool_):
        names = list(ranged) if chosen else []
    else:
        names = _chosen("limits", chosen, ranged, "joints with a range")
    return {"limit_name": tuple(names), "limit_dof": m.jnt_dofadr[[ranged[name] for name in names]].astype(np.int32)}


def _contacts(m: mujoco.MjModel, chosen: Sequence[str] | None) -> dict[str, object]:
    """The points of the geoms that touch the ground, in link frames."""
    moving = {
        element_name(m, mujoco.mjtObj.mjOBJ_GEOM, g): g for g in range(m.ngeom) if m.body_weldid[m.geom_bodyid[g]] != 0
    }
    if chosen is None:
        off = disabled(m, "CONTACT") or disabled(m, "CONSTRAINT")
        collides = (m.geom_contype != 0) | (m.geom_conaffinity != 0)
        geoms = [name for name, geom in moving.items() if collides[geom] and not off]
    else:
        geoms = _chosen("contacts", chosen, moving, "geoms on moving bodies")
    names, of_geom, link, position, radius = [], [], [], [], []
    for geom in geoms:
        g = moving[geom]
        points = contact_points(m, g)
        body = m.geom_bodyid[g]
        carrier = m.body_weldid[body]
        origin, axes = _pose_in(m, body, carrier)
        last = m.body_jntadr[carrier] + m.body_jntnum[carrier] - 1
        for suffix, point in zip(points.suffix, points.position, strict=True):
            place = m.geom_pos[g] + _rotate(m.geom_quat[g], point)
            names.append(f"{geom}:{suffix}" if suffix else geom)
            of_geom.append(geom)
            link.append(last)
            position.append(origin + _rotate(axes, place) - _anchor(m, last))
            radius.append(points.radius)
    return {
        "contact_name": tuple(names),
        "contact_geom": tuple(of_geom),
        "contact_link": np.array(link, dtype=np.int32),
        "contact_pos": np.array(position).reshape(-1, 3),
        "contact_radius": np.array(radius),
        "friction": _friction(m, {geom: moving[geom] for geom in geoms}),
    }


def _friction(m: mujoco.MjModel, geoms: dict[str, int]) -> float:
    """The one coefficient of friction of some geoms, 1 of none. Raises ValueError, naming geoms, where they differ."""
    by_value: dict[float, list[str]] = {}
    for name, g in geoms.items():
        by_value.setdefault(0.0 if m.geom_condim[g] == 1 else float(m.geom_friction[g, 0]), []).append(name)
    if len(by_value) > 1:
        found = "; ".join(f"{value:g} ({', '.join(by_value[value])})" for value in sorted(by_value))
        raise ValueError(f"contacts: the geoms must have one coefficient of friction, got {found}.")
    return next(iter(by_value), 1.0)


def _chosen(what: str, names: Sequence[str], known: dict[str, int], kind: str) -> list[str]:
    """Names that a caller gave. Raises TypeError for no sequence of names, ValueError unless each is known and once."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what}: expected a sequence of names, got {names!r}.")
    for i, name in enumerate(names):
        if name not in known:
            raise ValueError(f"{what}: {name!r} is not one of the {kind} ({', '.join(known) or 'none'}).")
        if name in names[:i]:
            raise ValueError(f"{what}: {name!r} is given twice.")
    return list(names)


def _pose_in(m: mujoco.MjModel, body: int, ancestor: int) -> tuple[np.ndarray, np.ndarray]:
    """Position [m] and quaternion of a body in an ancestor's frame at qpos0."""
    position, quaternion = np.zeros(3), _IDENTITY.copy()
    while body != ancestor:
        position = m.body_pos[body] + _rotate(m.body_quat[body], position)
        product = np.zeros(4)
        mujoco.mju_mulQuat(product, m.body_quat[body], quaternion)
        quaternion, body = product, m.body_parentid[body]
    return position, quaternion


def _anchor(m: mujoco.MjModel, link: int) -> np.ndarray:
    """Origin of a link in its body's frame [m]; zero for the world (link -1) and for a free joint."""
    if link < 0 or m.jnt_type[link] == Joint.FREE:
        return np.zeros(3)
    return m.jnt_pos[link]


def _rotate(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return _matrix(quaternion) @ vector


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, quaternion)
    return flat.reshape(3, 3)
