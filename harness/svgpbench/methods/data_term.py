"""What an E-step and the bound see of the data, as one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from svgpbench.likelihoods import Conditional
from svgpbench.ops import Array, Ops

Narrowing: TypeAlias = Callable[[Ops, Conditional, Array], Array]
"""The variance of q(f_i|u) over that of p(f_i|u) [P, b or 1], from the latter [Q, b]."""


class DataTerm(NamedTuple):
    """The data's term of the bound, s Σ_i log p(y_i | f_i) of a batch: s = n/b where it stands for all n."""

    likelihood: Conditional  # at its parameters, and at the batch's noise where it samples
    y: Array  # [b]
    index: Array  # [b], which rows of the data these are
    scale: Array  # [], s
    narrowing: Narrowing | None = None  # None where q(f|u) = p(f|u)
