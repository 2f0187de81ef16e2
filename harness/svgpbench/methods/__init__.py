"""Methods: each a parameterization of the posterior with its E-step and M-step, one file a family."""

from svgpbench.methods.method import Method, elbo
from svgpbench.methods.registry import build_method

__all__ = ["Method", "build_method", "elbo"]
