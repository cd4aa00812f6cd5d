"""Bodies small enough for pen and paper, and a plain rollout of them."""

import dataclasses

import numpy as np
import torch

from diffenvs.bridge import Simulator
from diffenvs.sim.load import load_model

G = 9.81

# A mass that moves along z only, and one that moves along x and z.
MASS = """<mujoco model="mass"><option gravity="0 0 -9.81"/><worldbody><body name="mass">
  <joint name="z" type="slide" axis="0 0 1"/><geom name="point" type="sphere" size="0.001" mass="1"/>
  </body></worldbody></mujoco>"""
BLOCK = """<mujoco model="block"><option gravity="0 0 -9.81"/><worldbody><body name="block">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
  <geom name="point" type="sphere" size="0.001" mass="2"/></body></worldbody></mujoco>"""

# A point mass in space, with a motor along every axis.
POINT = """<mujoco model="point"><option gravity="0 0 -9.81"/><worldbody><body name="point">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
  <joint name="z" type="slide" axis="0 0 1"/><geom name="point" type="sphere" size="0.001" mass="2"/>
  </body></worldbody><actuator><motor joint="x"/><motor joint="y"/><motor joint="z"/></actuator></mujoco>"""

# A ball that is free to turn.
BALL = """<mujoco model="ball"><option gravity="0 0 -9.81"/><worldbody><body name="ball"><freejoint/>
  <geom name="ball" type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""

# A box of 0.4 x 0.3 x 0.2 m on four spheres of 2 cm, whose order is given.
CORNERS = {"lf": (0.2, 0.15), "rf": (0.2, -0.15), "lh": (-0.2, 0.15), "rh": (-0.2, -0.15)}


def box(order=tuple(CORNERS), mass: float = 3.0, joints: str = "<freejoint/>") -> str:
    """MJCF of the box; the centre is 0.1 m above the lowest point of its feet."""
    feet = "".join(
        f'<geom name="{name}" type="sphere" size="0.02" mass="0" pos="{CORNERS[name][0]} {CORNERS[name][1]} -0.08"/>'
        for name in order
    )
    return f"""<mujoco model="box"><option gravity="0 0 -9.81"/><worldbody><body name="box">{joints}
      <geom type="box" size="0.2 0.15 0.1" mass="{mass}" contype="0" conaffinity="0"/>{feet}
      </body></worldbody></mujoco>"""


def tensor(*rows) -> torch.Tensor:
    """Rows of numbers as one float64 tensor."""
    return torch.tensor(rows, dtype=torch.float64)


def tilted(model, angle: float):
    """The model on a slope that falls along x [rad], seen in the slope's own axes."""
    size = np.linalg.norm(model.gravity)
    return dataclasses.replace(model, gravity=size * np.array([np.sin(angle), 0.0, -np.cos(angle)]))


def simulation(model, law, worlds=1, timestep=0.01, dtype=torch.float64):
    """A simulator with one step a call, and its parameters; ``model`` may be MJCF."""
    model = load_model(model) if isinstance(model, str) else model
    sim = Simulator(model, law, worlds, control_timestep=timestep, timestep=timestep, dtype=dtype, threads=1)
    return sim, sim.default_parameters()


def point_simulator(xml, law, worlds, timestep=0.01):
    """One contact point of radius zero, so that its height is the coordinate."""
    sim, parameters = simulation(xml, law, worlds, timestep)
    return sim, parameters.replace(contact_radius=torch.zeros(worlds, 1, dtype=torch.float64))


def run(sim, parameters, qpos, qvel, steps, control=None):
    """State after some steps under one control (zero by default)."""
    control = torch.zeros(len(qpos), sim.model.nu, dtype=sim.dtype) if control is None else control
    for _ in range(steps):
        motion = sim.simulate(qpos, qvel, control, parameters)
        qpos, qvel = motion.qpos, motion.qvel
    return qpos, qvel
