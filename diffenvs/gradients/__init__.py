"""Is the gradient right? Judged by differences, for any environment, law and input."""

from diffenvs.gradients.check import check_gradients
from diffenvs.gradients.figure import draw
from diffenvs.gradients.report import GradientReport

__all__ = ["GradientReport", "check_gradients", "draw"]
