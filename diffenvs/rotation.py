"""Quaternions w x y z of a body's attitude, as MuJoCo has them. Leading dimensions are free; gradients are
exact.

Every function expects a quaternion of length one and does not normalise: the simulator does that once a step.
"""

import torch
from torch import Tensor


def to_body(quaternion: Tensor, vector: Tensor) -> Tensor:
    """World vector (..., 3) in body axes: R^T v = v - w t + u x t with t = 2 u x v, quaternion (w, u)."""
    axis = quaternion[..., 1:]
    twice = 2.0 * torch.linalg.cross(axis, vector)
    return vector - quaternion[..., :1] * twice + torch.linalg.cross(axis, twice)


def gravity_in_body(quaternion: Tensor) -> Tensor:
    """Direction of gravity (0, 0, -1) in body axes (..., 3): minus the third row of R."""
    w, x, y, z = quaternion.unbind(-1)
    return torch.stack((2.0 * (w * y - x * z), -2.0 * (w * x + y * z), 2.0 * (x * x + y * y) - 1.0), -1)


def up_alignment(quaternion: Tensor) -> Tensor:
    """Cosine (...) between the body's z axis and the world's: R_zz, 1 when upright."""
    x, y = quaternion[..., 1], quaternion[..., 2]
    return 1.0 - 2.0 * (x * x + y * y)


def heading_alignment(quaternion: Tensor) -> Tensor:
    """Cosine (...) between the body's x axis and the world's: R_xx, 1 when it faces along +x."""
    y, z = quaternion[..., 2], quaternion[..., 3]
    return 1.0 - 2.0 * (y * y + z * z)


def from_small_rotation(rotation: Tensor) -> Tensor:
    """Quaternion (..., 4) of a turn about `rotation` (..., 3) by 2 atan(|rotation| / 2), which is |rotation|
    [rad] to third order. Built from products and a square root alone, so that it is the same to the last bit
    on any batch.
    """
    x, y, z = (0.5 * rotation).unbind(-1)
    length = torch.sqrt(1.0 + x * x + y * y + z * z)
    return torch.stack((torch.ones_like(x), x, y, z), -1) / length[..., None]
