import pytest
import torch
from gymnasium.vector import AutoresetMode

from diffenvs import options


def test_time_limits():
    assert options.read_limit(None, 7) == 7
    assert options.read_limit(5000, 7) == 5000
    assert options.read_limit(-1, 7) is None


def test_dtypes_by_name_and_by_value():
    assert options.read_dtype("float64") is options.read_dtype(torch.float64) is torch.float64


def test_autoreset_modes_by_value_and_by_enumeration():
    assert options.read_autoreset_mode("SameStep") is AutoresetMode.SAME_STEP
    assert options.read_autoreset_mode(AutoresetMode.DISABLED) is AutoresetMode.DISABLED


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: options.read_limit(0, 7), "max_episode_steps is 0; expected an integer of at least 1"),
        (lambda: options.read_count("num_envs", 2.5), "num_envs is 2.5; expected an integer of at least 1"),
        (lambda: options.read_count("num_envs", True), "num_envs is True"),
        (lambda: options.read_dtype("float16"), "dtype is 'float16'; expected one of 'float32', 'float64'"),
        (lambda: options.read_autoreset_mode("NextStep"), "autoreset_mode is 'NextStep'; expected"),
        (lambda: options.read_device("tpu"), "device is 'tpu'"),
        (lambda: options.read_device("meta"), "device is 'meta'"),
    ],
)
def test_anything_else_is_named(read, words):
    with pytest.raises(ValueError, match=words):
        read()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"device is 'cuda', but .* CUDA"):
        options.read_device("cuda")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_says_that_it_is_untested():
    with pytest.warns(UserWarning, match="untested"):
        options.read_device("cuda")
