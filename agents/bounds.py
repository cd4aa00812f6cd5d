"""Checks of settings before anything is built from them."""

from __future__ import annotations

import math
from dataclasses import fields


def require_positive(settings: object, *names: str) -> None:
    """Raises ValueError, in one sentence, for the first named field that is not above zero."""
    for name in names:
        if not getattr(settings, name) > 0:
            raise ValueError(f"{name} is {getattr(settings, name)!r} in {type(settings).__name__}: expected above 0")


def require_fraction(settings: object, *names: str) -> None:
    """Raises ValueError, in one sentence, for the first named field outside of [0, 1]."""
    for name in names:
        if not 0.0 <= getattr(settings, name) <= 1.0:
            raise ValueError(
                f"{name} is {getattr(settings, name)!r} in {type(settings).__name__}: expected from 0 to 1"
            )


def require_finite(settings: object) -> None:
    """Raises ValueError, in one sentence, for the first number of a dataclass that is infinite or not a number."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            raise ValueError(f"{field.name} is {value!r} in {type(settings).__name__}: expected finite numbers")
