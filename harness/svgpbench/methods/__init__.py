"""Methods: parameterizations of the posterior with an E-step and an M-step, one file per family."""

from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import AnyMethod, CoupledMethod, Method
from svgpbench.methods.registry import build_method

__all__ = ["AnyMethod", "CoupledMethod", "DataTerm", "Method", "build_method"]
