"""What the times were measured on and with; nothing that names the machine."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agents.provenance import describe
from leaderboard import records

PACKAGES = ("mujoco-mjx", "jax", "jaxlib", "newton")
# instruction sets that decide how wide compiled code is
FLAGS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "neon", "asimd", "sve")


def machine() -> dict[str, Any]:
    """CPU model, cores, instruction sets, and how busy the machine was in the last minute (None: not known)."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return records.machine() | {"flags": flags(_cpuinfo()), "load_average": load}


def flags(cpuinfo: str) -> list[str]:
    """Those of FLAGS that the text of /proc/cpuinfo lists."""
    lines = [
        line.partition(":")[2].split() for line in cpuinfo.splitlines() if line.lower().startswith(("flags", "fea"))
    ]
    return [flag for flag in FLAGS if lines and flag in lines[0]]


def made_with() -> dict[str, Any]:
    """Versions, commit and arguments; a package that is not installed has the version None."""
    known = describe()
    return known | {"versions": known["versions"] | {name: _version(name) for name in PACKAGES}}


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
