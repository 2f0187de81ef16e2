"""Models: a kernel, a likelihood and a jitter, which give blocks of the Gram matrix at θ."""

from svgpbench.kernels.model import (
    SMALLEST_POSITIVE,
    Model,
    Theta,
    constrain,
    pull_constrain,
    unconstrain,
)

__all__ = ["SMALLEST_POSITIVE", "Model", "Theta", "constrain", "pull_constrain", "unconstrain"]
