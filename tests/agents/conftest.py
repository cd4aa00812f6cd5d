"""Makes the toy environments importable, here and in the processes that the tests start."""

import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def environment(monkeypatch):
    """Environment variables under which ``python -m agents`` finds this checkout and the toys."""
    monkeypatch.setenv("PYTHONPATH", f"{HERE.parents[1]}:{HERE}")
