"""The bases that θ may hold instead of plain inducing inputs Z [M, D]."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float

from svgpbench.ops import Array


class Decoupled(NamedTuple):
    """One basis for the mean and one for the covariance (Cheng and Boots 2017; Salimbeni et al. 2018b)."""

    gamma: Any  # [M_γ, D] or Features, of the mean (α in Cheng and Boots)
    beta: Any  # [M_β, D] or Features, of the covariance


class Features(NamedTuple):
    """Inducing functions: averages of f under a Gaussian window, scaled to the variance of f itself.

    A width enters squared, so it needs no constraint. At width 0 the window is a point, and the derivative
    in the width is 0.
    """

    centres: Float[Array, "M D"]
    widths: Float[Array, "M D"]  # standard deviations of the window


def centres(basis: Any) -> Float[Array, "M D"]:
    """Return the positions of the inducing points or functions of one basis."""
    return basis.centres if isinstance(basis, Features) else basis
