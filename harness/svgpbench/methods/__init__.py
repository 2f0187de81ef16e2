"""Methods: each a parameterization of the posterior with its E-step and M-step, one file a family."""

from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import AnyMethod, CoupledMethod, Method
from svgpbench.methods.registry import build_method

__all__ = ["AnyMethod", "CoupledMethod", "DataTerm", "Method", "build_method"]
