"""A peer that never returns is given up, one that fails is heard."""

import threading

import pytest

from leaderboard.benchmark.patience import Stuck, wait_for


def test_a_result_comes_back():
    assert wait_for(lambda: 3, "a call") == 3


def test_an_error_comes_back():
    with pytest.raises(KeyError, match="gone"):
        wait_for(lambda: {}["gone"], "a call")


def test_a_call_that_never_returns_is_given_up():
    ending = threading.Event()
    with pytest.raises(Stuck, match="a call did not return within 0.05 s"):
        wait_for(ending.wait, "a call", seconds=0.05)
    ending.set()
