"""Differentiable robot environments: Gymnasium outside, NVIDIA Warp inside, gradients through contact.

Importing the package registers its environments; see `diffenvs.registry.ENVS`.
"""

from diffenvs.env import DiffVecEnv
from diffenvs.parameters import Parameters
from diffenvs.randomization import Randomization
from diffenvs.registry import ENVS, register
from diffenvs.rollout import Rollout
from diffenvs.sim.contact import CONTACT, Hard, Smoothed, Soft
from diffenvs.sim.load import load_model
from diffenvs.sim.model import Model
from diffenvs.single import SingleEnv
from diffenvs.task import Config, State, Task

__all__ = [
    "CONTACT",
    "ENVS",
    "Config",
    "DiffVecEnv",
    "Hard",
    "Model",
    "Parameters",
    "Randomization",
    "Rollout",
    "SingleEnv",
    "Smoothed",
    "Soft",
    "State",
    "Task",
    "load_model",
]

register()
