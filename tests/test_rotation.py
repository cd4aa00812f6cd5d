import math

import mujoco
import numpy as np
import pytest
import torch

from diffenvs import rotation


@pytest.fixture
def quaternions():
    q = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 4)))
    return q / q.norm(dim=-1, keepdim=True)


def matrix(quaternion):
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quaternion.numpy())
    return torch.from_numpy(out.reshape(3, 3))


def test_agrees_with_mujocos_rotation_matrices(quaternions):
    r = torch.stack([matrix(q) for q in quaternions])
    v = torch.from_numpy(np.random.default_rng(1).normal(size=(50, 3)))
    down = torch.tensor([0.0, 0.0, -1.0], dtype=torch.float64).expand(50, 3)
    close = {"rtol": 0, "atol": 1e-14}
    torch.testing.assert_close(rotation.to_body(quaternions, v), (r.mT @ v[..., None])[..., 0], **close)
    torch.testing.assert_close(rotation.gravity_in_body(quaternions), (r.mT @ down[..., None])[..., 0], **close)
    torch.testing.assert_close(rotation.up_alignment(quaternions), r[:, 2, 2], **close)
    torch.testing.assert_close(rotation.heading_alignment(quaternions), r[:, 0, 0], **close)


def test_leading_dimensions_are_free(quaternions):
    v = torch.ones(50, 3, dtype=torch.float64)
    window = rotation.to_body(quaternions.reshape(5, 10, 4), v.reshape(5, 10, 3))
    assert torch.equal(window.reshape(50, 3), rotation.to_body(quaternions, v))


def test_small_rotations_turn_by_their_length():
    turn = torch.tensor([[0.0, 0.02, 0.0]], dtype=torch.float64)
    q = rotation.from_small_rotation(turn)[0]
    assert q.norm().item() == pytest.approx(1.0, abs=1e-15)
    angle = 2 * math.acos(q[0])
    assert angle == pytest.approx(2 * math.atan(0.01), abs=1e-12)
    # Body axes turned by +0.02 about y see gravity lean towards their +x.
    assert rotation.gravity_in_body(q)[0] == pytest.approx(math.sin(angle), abs=1e-12)


def test_small_rotations_do_not_depend_on_the_batch():
    turn = torch.rand(37, 3) - 0.5
    whole = rotation.from_small_rotation(turn)
    for size in (1, 3, 8, 20):
        assert torch.equal(rotation.from_small_rotation(turn[:size]), whole[:size])
