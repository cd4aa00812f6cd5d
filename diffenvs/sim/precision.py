"""The scalar type of a simulation, and the vector types that follow from it.

Kernels are written once, inside factories that take a :class:`Precision`; float32 trains, float64 proves. With
``lanes`` above 1 a scalar stands for that many worlds side by side, and a thread moves them all at once with the
processor's vector instructions: see ``lanes``.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import warp as wp


@dataclass(frozen=True)
class Precision:
    """Warp types of one floating-point width.

    lanes: worlds in a scalar. options: what the kernels' modules are compiled with.

    Where ``lanes`` is above 1, kernels take numbers by value as float64 and convert them, and compare reals through
    ``wp.step``, ``wp.min`` and ``wp.max`` only: a branch would send all lanes the same way.
    """

    name: str
    real: Any
    vec2: Any
    vec3: Any
    vec4: Any
    vec6: Any
    mat33: Any
    lanes: int = 1
    options: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def single(self) -> "Precision":
        """The same with one world in a scalar."""
        return self if self.lanes == 1 else replace(self, lanes=1, options={})


FLOAT32 = Precision(
    *("float32", wp.float32, wp.vec2f, wp.vec3f, wp.vec4f),
    *(wp.types.vector(length=6, dtype=wp.float32), wp.mat33f),
)
FLOAT64 = Precision(
    *("float64", wp.float64, wp.vec2d, wp.vec3d, wp.vec4d),
    *(wp.types.vector(length=6, dtype=wp.float64), wp.mat33d),
)
