"""Points of a geom that can touch a plane: centres of spheres, of radius zero where the geom is sharp.

A plane touches a convex shape first at one of its extreme points. A sphere and a capsule are balls about one and two
centres, boxes and meshes have corners; all of these are exact. A cylinder's rims are not: `RIM` points stand for a
circle, so that a cylinder touches up to r (1 - cos(pi / RIM)) = 7.6 % of its radius r late, and on its side rolls over
corners like a prism.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from diffenvs.sim.unsupported import element_name

# points that stand for each rim of a cylinder; the first lies on the geom's x axis
RIM = 8
# corners of a mesh's convex hull at most: every one of them is a contact in the solve
HULL = 32

_SIGN = {-1: "-", 1: "+"}


@dataclass(frozen=True)
class ContactPoints:
    """suffix: what tells a geom's points apart, "" where there is one. position (n, 3) [m]: centres in the geom's
    frame. radius [m]: of every one."""

    suffix: tuple[str, ...]
    position: np.ndarray
    radius: float


def contact_points(m: mujoco.MjModel, geom: int) -> ContactPoints:
    """The points of a geom. Suffixes name them in the geom's axes: "+z" an end, "+x-y+z" a corner, "+z3" the fourth
    point of the upper rim, "17" a vertex of a mesh.

    Raises ValueError, naming the geom, for a type without contact, and for a mesh of more than `HULL` corners.
    """
    kind, size = mujoco.mjtGeom(m.geom_type[geom]), m.geom_size[geom]
    name = element_name(m, mujoco.mjtObj.mjOBJ_GEOM, geom)
    match kind:
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            return ContactPoints(("",), np.zeros((1, 3)), float(size[0]))
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            return ContactPoints(("-z", "+z"), np.array([[0, 0, -size[1]], [0, 0, size[1]]]), float(size[0]))
        case mujoco.mjtGeom.mjGEOM_BOX:
            corners = [(x, y, z) for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)]
            suffix = tuple(f"{_SIGN[x]}x{_SIGN[y]}y{_SIGN[z]}z" for x, y, z in corners)
            return ContactPoints(suffix, np.array(corners) * size, 0.0)
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            turn = 2.0 * np.pi * np.arange(RIM) / RIM
            rim = np.stack([size[0] * np.cos(turn), size[0] * np.sin(turn), np.full(RIM, size[1])], 1)
            suffix = tuple(f"{sign}z{i}" for sign in "-+" for i in range(RIM))
            return ContactPoints(suffix, np.concatenate([rim * [1.0, 1.0, -1.0], rim]), 0.0)
        case mujoco.mjtGeom.mjGEOM_MESH:
            return _hull(m, int(m.geom_dataid[geom]), name)
    shape = kind.name.removeprefix("mjGEOM_").lower()
    raise ValueError(
        f"contacts: geom '{name}' is of type {shape}, which has no contact with the ground here, only sphere, capsule, "
        'box, cylinder and mesh have: give it contype="0" conaffinity="0" or leave it out of contacts.'
    )


def _hull(m: mujoco.MjModel, mesh: int, geom: str) -> ContactPoints:
    """Vertices of a mesh's convex hull, as MuJoCo has it (float32): its graph is counts, edges, vertex numbers, ..."""
    start = m.mesh_graphadr[mesh]
    if start < 0:
        raise ValueError(f"contacts: mesh geom '{geom}' has no convex hull.")
    count = int(m.mesh_graph[start])
    if count > HULL:
        raise ValueError(
            f"contacts: the convex hull of mesh geom '{geom}' has {count} vertices, expected at most {HULL}: give its "
            f'mesh maxhullvert="{HULL}" or leave it out of contacts.'
        )
    corners = np.sort(m.mesh_graph[start + 2 + count : start + 2 + 2 * count])
    position = m.mesh_vert[m.mesh_vertadr[mesh] + corners].astype(np.float64)
    return ContactPoints(tuple(str(i) for i in corners), position, 0.0)
