"""One vector lane a world: the same kernels, eight or sixteen worlds at a time.

Warp compiles the body of a CPU kernel for one thread at a time. Its C++ templates for vectors and matrices take any
scalar, though: a preamble defines a scalar of several floats, ``lanes.h``, and has the generated code use it in place
of ``float``. Adjoints that Warp generates follow, since they are made of the same templates.
"""

import dataclasses
import functools
from pathlib import Path

import warp as wp

from diffenvs.sim.precision import FLOAT32, FLOAT64, Precision

# Everything is inlined into one loop over registers; the slots of a world lie too far apart to be paired by the
# compiler's own search for vectors (slp), which takes longest of all.
_FLAGS = (
    "-march=native -mllvm=-inline-threshold=9000 -mllvm=-inline-cold-callsite-threshold=3000 "
    "-mllvm=-slp-recursion-max-depth=4"
)


@functools.cache
def with_lanes(precision: Precision, lanes: int) -> Precision:
    """The float32 ``precision`` on the CPU, with ``lanes`` (a power of 2) worlds in a scalar."""
    preamble = f"#define DIFFENVS_LANES {lanes}\n" + Path(__file__).with_name("lanes.h").read_text()
    options = {
        "cpu_compiler_flags": _FLAGS,
        "extra_build_options": wp.ModuleBuildOptions(extra_cpu_preamble=preamble),
    }
    return dataclasses.replace(precision, name=f"{precision.name} x {lanes}", lanes=lanes, options=options)


# precision of a simulation, by the name of its type and of its device
PRECISION = {
    ("float32", "cpu"): with_lanes(FLOAT32, 8),
    ("float32", "cuda"): FLOAT32,
    ("float64", "cpu"): FLOAT64,
    ("float64", "cuda"): FLOAT64,
}
