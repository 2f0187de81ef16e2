"""The bases that θ may hold instead of plain inducing inputs Z [M, D]."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float

from svgpbench.ops import Array, Ops


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


def common_centre(ops: Ops, A: Float[Array, "n D"]) -> Float[Array, "1 D"]:
    """Return what to subtract from inputs A and from any others before a formula of their differences.

    ‖a‖² + ‖b‖² − 2aᵀb cancels where inputs lie far from 0, such as seconds since 1970. The centre is the mean
    of A, or 0 in a column whose mean is within 4 times its spread: there at most a factor of 25 cancels, and
    inputs keep every bit. Differences do not depend on the centre, so no gradient passes through it.
    """
    if A.shape[0] == 0:  # an empty γ
        return ops.zeros((1, A.shape[1]))
    mean = ops.sum(A, axis=0, keepdims=True) / float(A.shape[0])
    spread = ops.max(ops.abs(A - mean), axis=0, keepdims=True)
    return ops.stop_gradient(ops.where(ops.abs(mean) > 4.0 * spread, mean, 0.0 * mean))
