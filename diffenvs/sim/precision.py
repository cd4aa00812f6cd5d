"""The scalar type of a simulation, and the vector types that follow from it.

Kernels are written once, inside factories that take a :class:`Precision`; float32 trains, float64 proves.
"""

from dataclasses import dataclass
from typing import Any

import warp as wp


@dataclass(frozen=True)
class Precision:
    """Warp types of one floating-point width."""

    name: str
    real: Any
    vec2: Any
    vec3: Any
    vec4: Any
    vec6: Any
    mat33: Any


FLOAT32 = Precision(
    *("float32", wp.float32, wp.vec2f, wp.vec3f, wp.vec4f),
    *(wp.types.vector(length=6, dtype=wp.float32), wp.mat33f),
)
FLOAT64 = Precision(
    *("float64", wp.float64, wp.vec2d, wp.vec3d, wp.vec4d),
    *(wp.types.vector(length=6, dtype=wp.float64), wp.mat33d),
)
PRECISION = {p.name: p for p in (FLOAT32, FLOAT64)}
