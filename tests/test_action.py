import re

import numpy as np
import pytest
import torch

from diffenvs.action import clip_action, read_action

LIKE = torch.zeros(3, 2)


@pytest.mark.parametrize(
    "action",
    [
        np.full((3, 2), 0.25),
        np.full((2, 3), 0.25, dtype=np.float32).T,
        [[0.25, 0.25]] * 3,
        torch.full((3, 2), 0.25, dtype=torch.float64),
        np.broadcast_to(np.float32(0.25), (3, 2)),
    ],
)
def test_real_numbers_of_the_right_shape_are_read(action):
    read = read_action(action, (3, 2), LIKE)
    assert read.dtype == torch.float32
    assert torch.equal(read, torch.full((3, 2), 0.25))


def test_integers_are_real_numbers():
    assert torch.equal(read_action([[1, 0]] * 3, (3, 2), LIKE), torch.tensor([[1.0, 0.0]] * 3))


@pytest.mark.parametrize("shape", [(2,), (3,), (3, 3), (2, 3), (1, 3, 2), ()])
def test_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=re.escape(f"action has shape {shape}; 3 worlds expect (3, 2)")):
        read_action(np.zeros(shape), (3, 2), LIKE)


def test_a_ragged_sequence_is_refused():
    with pytest.raises(ValueError, match="action is a ragged sequence; 3 worlds expect"):
        read_action([[0.0, 0.0], [0.0], [0.0, 0.0]], (3, 2), LIKE)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_the_world_of_a_non_finite_action_is_named(bad, kind):
    action = np.zeros((3, 2))
    action[1, 1] = bad
    words = rf"action of world 1 holds {bad} at index 1; expected finite numbers of shape \(3, 2\)"
    with pytest.raises(ValueError, match=words):
        read_action(kind(action), (3, 2), LIKE)


def test_a_number_too_large_for_float32_is_not_finite():
    action = np.zeros((3, 2))
    action[2, 0] = 1e300
    with pytest.raises(ValueError, match="action of world 2 holds inf"):
        read_action(action, (3, 2), LIKE)


@pytest.mark.parametrize(
    "action",
    [
        np.zeros((3, 2), bool),
        np.zeros((3, 2), complex),
        np.full((3, 2), "a"),
        torch.zeros(3, 2, dtype=torch.bool),
        torch.zeros(3, 2, dtype=torch.complex64),
        None,
    ],
)
def test_what_is_not_a_real_number_is_refused(action):
    with pytest.raises(TypeError, match="expected real numbers of shape"):
        read_action(action, (3, 2), LIKE)


def test_a_tensor_on_another_device_is_refused():
    with pytest.raises(TypeError, match="action is on meta, but the worlds are on cpu"):
        read_action(torch.zeros(3, 2, device="meta"), (3, 2), LIKE)


def test_clipping_passes_gradients_inside_only():
    action = torch.tensor([-1.5, -0.5, 0.5, 1.5], requires_grad=True)
    clipped = clip_action(action)
    clipped.sum().backward()
    assert clipped.tolist() == [-1.0, -0.5, 0.5, 1.0]
    assert action.grad.tolist() == [0.0, 1.0, 1.0, 0.0]
