"""The data term of the bound, as one value that the E-step and the bound take."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from jaxtyping import Float, Int

from svgpbench.likelihoods import Conditional
from svgpbench.ops import Array, Ops

ResidualScale: TypeAlias = Callable[[Ops, Conditional, Float[Array, "Q b"]], Float[Array, "P #b"]]
"""A function of the variance of p(f_i|u): the variance of q(f_i|u) divided by it."""


class DataTerm(NamedTuple):
    """The data term of the bound, s Σ_i log p(y_i | f_i) of a batch; s = n/b if it stands for all n."""

    likelihood: Conditional  # bound to its parameters, and to the batch's noise if it samples
    y: Float[Array, "b"]
    index: Int[Array, "b"]  # row numbers in the data
    scale: Float[Array, ""]  # s
    residual_scale: ResidualScale | None = None  # None if q(f|u) = p(f|u)
