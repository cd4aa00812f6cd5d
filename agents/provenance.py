"""What a run was made with: versions, commit, command."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("diffenvs", "torch", "warp-lang", "mujoco", "gymnasium", "numpy")


def describe() -> dict:
    """Versions of Python and the packages that matter, the checkout's commit, the command line."""
    return {
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "arguments": sys.argv[1:],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Commit of the checkout, ``-dirty`` when files differ from it; None outside of a repository."""
    command = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    folder = Path(__file__).parent
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
