"""A model: θ goes in, blocks of the Gram matrix come out."""

from svgpbench.kernels.model import (
    SMALLEST_POSITIVE,
    Model,
    Theta,
    constrain,
    pull_constrain,
    unconstrain,
)

__all__ = ["SMALLEST_POSITIVE", "Model", "Theta", "constrain", "pull_constrain", "unconstrain"]
