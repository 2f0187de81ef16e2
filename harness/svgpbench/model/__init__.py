"""A model: θ goes in, blocks of the Gram matrix come out."""

from svgpbench.model.model import (
    SMALLEST_POSITIVE,
    Model,
    Theta,
    constrain,
    pull_constrain,
    unconstrain,
)

__all__ = ["SMALLEST_POSITIVE", "Model", "Theta", "constrain", "pull_constrain", "unconstrain"]
