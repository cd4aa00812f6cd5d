"""A line is printed when there is something to wait for, and then only."""

import time

import pytest

from diffenvs.sim.announce import announced


def test_what_takes_long_is_announced(capsys):
    with announced("compiling", after=0.01):
        time.sleep(0.3)
    assert capsys.readouterr().err == "compiling\n"


def test_what_is_quick_is_not(capsys):
    with announced("compiling", after=0.2):
        pass
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_an_error_ends_the_wait(capsys):
    with pytest.raises(ValueError, match="no"), announced("compiling", after=0.2):
        raise ValueError("no")
    time.sleep(0.3)
    assert capsys.readouterr().err == ""
