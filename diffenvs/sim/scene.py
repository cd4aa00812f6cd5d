"""Model -> MuJoCo: the robot on a floor, to look at or to compare with."""

import mujoco
import numpy as np

from diffenvs.sim.model import Model
from diffenvs.sim.unsupported import element_name


def mujoco_model(
    model: Model, *, timestep: float, friction: float | None = None, ground: bool = True
) -> mujoco.MjModel:
    """The compiled MuJoCo model of a robot: what `Model` holds, on a floor, to look at or to compare with.

    The geoms with contact touch the floor (a plane z = 0 named "ground") and nothing else; friction cones are
    elliptic, with an impratio of 100. A light and the camera "scene_camera" follow the centre of mass. Joints stop
    at the ranges of the MJCF, whether the model has limits there or not.

    Args:
        model: the robot. Its XML must be self-contained (no mesh or include files).
        timestep: MuJoCo's time step [s].
        friction: Coulomb coefficient of the contacts; the model's by default.
        ground: whether there is a floor.

    Raises:
        ValueError: timestep <= 0 or friction < 0.
    """
    friction = model.friction if friction is None else friction
    if not timestep > 0.0:
        raise ValueError(f"mujoco_model: timestep must be positive, got {timestep}.")
    if not friction >= 0.0:
        raise ValueError(f"mujoco_model: friction must not be negative, got {friction}.")
    spec = mujoco.MjSpec.from_string(model.xml)
    robot = spec.compile()
    for geom in spec.geoms:
        touches = element_name(robot, mujoco.mjtObj.mjOBJ_GEOM, geom.id) in model.contact_geom
        geom.contype, geom.conaffinity = 0, int(touches)
        if touches:
            geom.friction, geom.condim = [friction, 0.0, 0.0], 3
    for geom in [geom for geom in spec.worldbody.geoms if geom.type == mujoco.mjtGeom.mjGEOM_PLANE]:
        spec.delete(geom)
    spec.option.timestep = timestep
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    # At its default of 1 MuJoCo's friction creeps: the feet of a standing ANYmal D slide apart and the base
    # sinks by 7 cm in 10 s.
    spec.option.impratio = 100.0
    _add_scenery(spec, robot)
    if ground:
        _add_floor(spec, friction)
    return spec.compile()


def _add_floor(spec: mujoco.MjSpec, friction: float) -> None:
    """A checkered plane z = 0."""
    builtin, mark = mujoco.mjtBuiltin.mjBUILTIN_CHECKER, mujoco.mjtMark.mjMARK_EDGE
    spec.add_texture(
        name="scene_ground",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=builtin,
        mark=mark,
        width=512,
        height=512,
        rgb1=[0.62, 0.65, 0.69],
        rgb2=[0.54, 0.57, 0.61],
        markrgb=[0.72, 0.74, 0.77],
    )
    material = spec.add_material(name="scene_ground", texuniform=True, texrepeat=[1.0, 1.0])
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "scene_ground"
    spec.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0.0, 0.0, 0.5],
        material="scene_ground",
        contype=1,
        conaffinity=0,
        condim=3,
        friction=[friction, 0.0, 0.0],
    )


def _add_scenery(spec: mujoco.MjSpec, robot: mujoco.MjModel) -> None:
    """Sky, light and the camera "scene_camera".

    Light and camera hang on the world in trackcom mode: they keep their place beside the centre of mass of
    the whole robot, whatever its root is.
    """
    data = mujoco.MjData(robot)
    mujoco.mj_kinematics(robot, data)
    mujoco.mj_comPos(robot, data)
    centre = data.subtree_com[0]
    backward = np.array([0.75, -1.0, 0.45]) / np.linalg.norm([0.75, -1.0, 0.45])
    right = np.cross([0.0, 0.0, 1.0], backward)
    right /= np.linalg.norm(right)
    turn = np.zeros(4)
    mujoco.mju_mat2Quat(turn, np.stack([right, np.cross(backward, right), backward], axis=1).ravel())
    track = mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM
    distance = 1.6 * robot.stat.extent
    spec.worldbody.add_camera(name="scene_camera", mode=track, pos=centre + distance * backward, quat=turn, fovy=45.0)
    spec.worldbody.add_light(
        name="scene_light",
        mode=track,
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        castshadow=True,
        pos=centre + np.array([0.6, -0.9, 3.0]),
        dir=[-0.2, 0.3, -1.0],
        diffuse=[0.7, 0.7, 0.7],
        specular=[0.2, 0.2, 0.2],
    )
    spec.add_texture(
        name="scene_sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        width=256,
        height=1536,
        rgb1=[0.95, 0.97, 1.0],
        rgb2=[0.55, 0.68, 0.85],
    )
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = [0.35] * 3, [0.25] * 3
    spec.visual.headlight.specular = [0.0] * 3
    spec.visual.quality.shadowsize = 2048
