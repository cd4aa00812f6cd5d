"""One vector lane a world: the same kernels, eight or sixteen worlds at a time.

Warp compiles the body of a CPU kernel for one thread at a time. Its C++ templates for vectors and matrices take any
scalar, though: a preamble, ``lanes.h``, defines a scalar of several floats and has the generated code use it in place
of ``float``. Adjoints that Warp generates follow, since they are made of the same templates.
"""

import dataclasses
import functools
import platform
from pathlib import Path

import warp as wp

from diffenvs.sim.precision import FLOAT32, FLOAT64, Precision

# Everything is inlined into straight code on registers. The compiler's own search for numbers to pair into vectors
# (slp) finds nothing better and takes longest of all.
_INLINING = (
    "-mllvm=-inline-threshold=9000 -mllvm=-inline-cold-callsite-threshold=3000 -mllvm=-slp-recursion-max-depth=4"
)


def precision_for(name: str, device: str) -> Precision:
    """The fastest way to simulate in "float32" or "float64" on a "cpu" or "cuda" device."""
    if name == "float64":
        return FLOAT64
    if device != "cpu":
        return FLOAT32
    return with_lanes(FLOAT32, 16 if "avx512f" in _processor().split() else 8)


@functools.cache
def with_lanes(precision: Precision, lanes: int) -> Precision:
    """The float32 ``precision`` on the CPU, with ``lanes`` (a power of 2) worlds in a scalar."""
    # the processor's name is part of the text, and with it of the key under which Warp keeps the compiled module: a
    # cache that several machines share must not hand one the other's instructions
    preamble = f"// {_processor()}\n#define DIFFENVS_LANES {lanes}\n" + Path(__file__).with_name("lanes.h").read_text()
    native = "-march=native " if platform.machine() in ("x86_64", "AMD64") else ""
    options = {
        "cpu_compiler_flags": native + _INLINING,
        "extra_build_options": wp.ModuleBuildOptions(extra_cpu_preamble=preamble),
    }
    return dataclasses.replace(precision, name=f"{precision.name} x {lanes}", lanes=lanes, options=options)


@functools.cache
def _processor() -> str:
    """What the processor can do, as Linux says it, or its name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = (line.partition(":")[2].strip() for line in lines if line.startswith("flags"))
    return next(flags, platform.processor() or platform.machine())
