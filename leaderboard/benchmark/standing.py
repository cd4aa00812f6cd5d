"""Physics before timing: a robot that has fallen or flies is cheap to simulate, so its time is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

FEET = 4
LOAD_TOLERANCE = 0.05
LOWEST = 0.8


class Invalid(Exception):
    """The contestant does not simulate the scene; the message says what it did instead."""


@dataclass(frozen=True)
class Evidence:
    """What the robot did.

    load: mean vertical force of the feet while it stands, over m g. contacts: fewest and most feet that touch, over
    the steps and worlds of the timed window. height: lowest base in the window, over that of the home pose.
    substeps: simulation steps in 0.01 s. finite: states, and gradients where there are any.
    """

    load: float
    contacts: tuple[int, int]
    height: float
    substeps: int
    finite: bool


def faults(evidence: Evidence) -> tuple[str, ...]:
    """What speaks against timing it, a clause each; none for a robot that stands on four feet."""
    found = []
    if not evidence.finite:
        found.append("a state or gradient is not finite")
    # written so that NaN fails
    if not abs(evidence.load - 1.0) <= LOAD_TOLERANCE:
        found.append(f"standing, the feet carry {_number(evidence.load)} m g, expected 1 within {LOAD_TOLERANCE:g}")
    if evidence.contacts != (FEET, FEET):
        fewest, most = evidence.contacts
        found.append(f"{fewest} to {most} feet touch in the timed window, expected {FEET}")
    if not evidence.height >= LOWEST:
        found.append(f"the base sinks to {_number(evidence.height)} of its height, expected at least {LOWEST:g}")
    return tuple(found)


def require_standing(evidence: Evidence) -> Evidence:
    """The evidence, when it allows timing.

    Raises:
        Invalid: naming every fault and the simulation steps per 0.01 s.
    """
    if found := faults(evidence):
        raise Invalid(f"with {evidence.substeps} simulation steps in 0.01 s: {'; '.join(found)}")
    return evidence


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "non-finite"
