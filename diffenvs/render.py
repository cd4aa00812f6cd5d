"""Frames of a state, drawn by MuJoCo off screen.

The OpenGL context is made here and not by `mujoco.Renderer`, whose backend is settled when mujoco is first
imported: too early to know whether a picture will be wanted. Nothing is opened before the first `Renderer`.
"""

import os
import sys
from types import ModuleType

import mujoco
import numpy as np

from diffenvs.sim.load import mujoco_model
from diffenvs.sim.model import Model


class Renderer:
    """Draws configurations of one robot; the camera follows its centre of mass.

    The environment variable MUJOCO_GL (egl, osmesa, glfw) chooses the OpenGL backend. Without it that is EGL
    on Linux, which needs no display, and MuJoCo's own choice elsewhere.

    Args:
        model: the robot.
        width, height: size of a frame [pixels].

    Raises:
        ValueError: width or height is not positive.
        RuntimeError: there is no usable OpenGL library; the sentence says which package has it.
    """

    def __init__(self, model: Model, *, width: int = 640, height: int = 480) -> None:
        self._context = self._gl = None
        if width <= 0 or height <= 0:
            raise ValueError(f"Renderer: width and height must be positive, got {width} x {height}.")
        self._nq = model.nq
        # Nothing is simulated here: the time step is never used.
        self._mujoco = mujoco_model(model, timestep=0.01)
        self._mujoco.vis.global_.offwidth, self._mujoco.vis.global_.offheight = width, height
        self._data = mujoco.MjData(self._mujoco)
        self._scene = mujoco.MjvScene(self._mujoco, maxgeom=self._mujoco.ngeom + self._mujoco.nsite + 100)
        self._option = mujoco.MjvOption()
        self._viewport = mujoco.MjrRect(0, 0, width, height)
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._camera.fixedcamid = self._mujoco.camera("scene_camera").id
        self._gl = _open_context(width, height)
        self._gl.make_current()
        self._context = mujoco.MjrContext(self._mujoco, mujoco.mjtFontScale.mjFONTSCALE_150.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)

    def frame(self, qpos: np.ndarray) -> np.ndarray:
        """A picture of one configuration.

        Args:
            qpos: shape (nq,), MuJoCo's layout [m, rad].

        Returns:
            Pixels, shape (height, width, 3), uint8, first row on top.

        Raises:
            ValueError: wrong shape, a number that is not finite, or a closed renderer.
        """
        qpos = np.asarray(qpos, dtype=np.float64)
        if qpos.shape != (self._nq,):
            raise ValueError(f"frame: qpos must have shape ({self._nq},), got {qpos.shape}.")
        if not np.isfinite(qpos).all():
            raise ValueError("frame: qpos must be finite.")
        if self._context is None:
            raise ValueError("frame: this renderer has been closed.")
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._mujoco, self._data)
        mujoco.mj_comPos(self._mujoco, self._data)
        mujoco.mj_camlight(self._mujoco, self._data)
        visible = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self._mujoco, self._data, self._option, None, self._camera, visible, self._scene)
        self._gl.make_current()
        mujoco.mjr_render(self._viewport, self._scene, self._context)
        pixels = np.empty((self._viewport.height, self._viewport.width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._viewport, self._context)
        return np.ascontiguousarray(pixels[::-1])  # OpenGL's first row is the lowest

    def close(self) -> None:
        """Free the OpenGL context. Closing twice is allowed."""
        if self._context is not None:
            with self._gl.as_current():
                self._context.free()
        if self._gl is not None:
            self._gl.free()
        self._context = self._gl = None

    def __enter__(self) -> "Renderer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def _open_context(width: int, height: int) -> object:
    """An off-screen OpenGL context of one of MuJoCo's backends."""
    backend = os.environ.get("MUJOCO_GL", "").strip().lower()
    if not backend and sys.platform == "linux":
        backend = "egl"
    try:
        return _backend(backend).GLContext(width, height)
    # Without a library PyOpenGL fails as ImportError, as an attribute of None, as ctypes.ArgumentError, ...
    except Exception as error:
        raise RuntimeError(
            f"Rendering needs OpenGL, and its backend {backend or 'glfw'!r} does not work here ({error}): on "
            "Debian and Ubuntu install libegl1 libopengl0 libgl1-mesa-dri, or install libosmesa6 and set "
            "MUJOCO_GL=osmesa."
        ) from error


def _backend(name: str) -> ModuleType:
    if name == "egl":
        import mujoco.egl as module
    elif name == "osmesa":
        import mujoco.osmesa as module
    else:
        module = mujoco
    return module
