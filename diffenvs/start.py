"""Where an episode of a floating robot begins: its home pose, and noise."""

import torch
from torch import Tensor

from diffenvs import rotation
from diffenvs.random import Draws


def noisy_home(
    random: Draws, home: Tensor, height: Tensor, *, tilt: float, joint: float, speed: float, nv: int
) -> tuple[Tensor, Tensor]:
    """qpos (n, nq) and qvel (n, nv) of n robots whose first joint is free and whose others are hinges or slides.

    home: (nq,). height: (n, 1) [m] of the base. tilt [rad]: largest component of the base's rotation vector. joint
    [rad]: largest offset of a joint from home. speed [m/s, rad/s]: largest velocity.
    """
    attitude = rotation.from_small_rotation(random.uniform(-tilt, tilt, 3))
    joints = home[7:] + random.uniform(-joint, joint, len(home) - 7)
    qvel = random.uniform(-speed, speed, nv)
    return torch.cat((home[:2].expand(len(height), 2), height, attitude, joints), -1), qvel
