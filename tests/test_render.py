"""Pictures, without a display."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from diffenvs.render import Renderer
from diffenvs.sim.load import load_model

ROOT = Path(__file__).parent.parent
ROBOTS = ["quadruped", "anymal_d"]


def load(robot: str):
    return load_model(ROOT / "diffenvs" / "assets" / f"{robot}.xml")


@pytest.fixture(scope="module")
def opengl() -> None:
    try:
        Renderer(load("quadruped"), width=8, height=8).close()
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("opengl")
@pytest.mark.parametrize("robot", ROBOTS)
def test_a_frame_shows_the_robot_and_the_floor(robot):
    model = load(robot)
    with Renderer(model, width=160, height=120) as renderer:
        frame = renderer.frame(model.home)
        bent = model.home.copy()
        bent[7:9] += 0.5
        moved = renderer.frame(bent)
    assert frame.shape == (120, 160, 3)
    assert frame.dtype == np.uint8
    # Sky above, floor below, and a leg that moves changes the picture but not most of it.
    assert frame[:5].mean() > frame[-5:].mean() + 20
    changed = np.any(frame != moved, axis=2).mean()
    assert 0.005 < changed < 0.5


@pytest.mark.usefixtures("opengl")
def test_the_camera_follows_the_robot():
    model = load("quadruped")
    with Renderer(model, width=160, height=120) as renderer:
        here = renderer.frame(model.home)
        far = model.home.copy()
        far[:2] += [20.0, -10.0]  # whole numbers of tiles, so that the floor looks the same
        there = renderer.frame(far)
        aside = model.home.copy()
        aside[:2] += [0.5, 0.5]
        between = renderer.frame(aside)
    assert np.abs(here.astype(int) - there).mean() < 1.0
    assert np.abs(here.astype(int) - between).mean() > 1.0


@pytest.mark.usefixtures("opengl")
def test_a_frame_depends_on_qpos_alone():
    model = load("anymal_d")
    with Renderer(model, width=64, height=48) as first, Renderer(model, width=64, height=48) as second:
        tilted = model.home.copy()
        tilted[3:7] = [np.cos(0.3), np.sin(0.3), 0.0, 0.0]
        second.frame(tilted)
        np.testing.assert_array_equal(first.frame(model.home), second.frame(model.home))


@pytest.mark.usefixtures("opengl")
@pytest.mark.parametrize(
    ("qpos", "words"),
    [
        (np.zeros(3), r"qpos must have shape \(19,\), got \(3,\)"),
        (np.full(19, np.nan), "qpos must be finite"),
    ],
)
def test_a_bad_state_is_refused(qpos, words):
    with Renderer(load("quadruped"), width=8, height=8) as renderer, pytest.raises(ValueError, match=words):
        renderer.frame(qpos)


@pytest.mark.usefixtures("opengl")
def test_a_closed_renderer_says_so():
    model = load("quadruped")
    renderer = Renderer(model, width=8, height=8)
    renderer.close()
    renderer.close()
    with pytest.raises(ValueError, match="has been closed"):
        renderer.frame(model.home)


def test_a_size_must_be_positive():
    with pytest.raises(ValueError, match="width and height must be positive, got 0 x 8"):
        Renderer(load("quadruped"), width=0, height=8)


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_importing_opens_no_opengl():
    code = "import diffenvs.render, sys; print('mujoco.egl' in sys.modules, 'OpenGL' in sys.modules)"
    assert python(code).stdout.split() == ["False", "False"]


def test_a_missing_library_is_one_sentence_with_the_packages():
    # PyOpenGL on another platform than EGL is how MuJoCo's EGL backend fails to import.
    code = (
        "from diffenvs.render import Renderer; from diffenvs.sim.load import load_model\n"
        "Renderer(load_model('diffenvs/assets/quadruped.xml'))"
    )
    done = python(code, PYOPENGL_PLATFORM="osmesa")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0
    assert last.startswith("RuntimeError: Rendering needs OpenGL, and its backend 'egl' does not work here")
    assert "libegl1 libopengl0 libgl1-mesa-dri" in last


@pytest.mark.usefixtures("opengl")
def test_a_renderer_left_open_is_closed_quietly_at_exit():
    code = (
        "from diffenvs.render import Renderer; from diffenvs.sim.load import load_model\n"
        "r = Renderer(load_model('diffenvs/assets/quadruped.xml'), width=8, height=8)"
    )
    done = python(code)
    assert done.returncode == 0
    assert done.stderr == ""
