"""Covariances of Gaussian-window inducing functions under the squared exponential (generalised SE-ARD).

A window of widths c at x̃ averages f: φ = ∫ f(x) N(x; x̃, diag c²) dx / √∏_d l_d/√(l_d² + 2c_d²). The
division makes var φ = k(x, x). Without it, in many dimensions, the variance would be below the jitter.
Source: Walder et al. 2008, Sec. 4; Cheng and Boots 2017, Sec. 4.
"""

from __future__ import annotations

from jaxtyping import Float

from svgpbench.kernels.bases import Features, common_centre
from svgpbench.ops import Array, Ops

# Below, `l2` are the squared lengthscales, one column if isotropic; correlations are covariances / variance.


def function_with_function(
    ops: Ops, l2: Float[Array, "Q #D"], A: Features, B: Features
) -> Float[Array, "Q n m"]:
    """Return the correlations of two sets of inducing functions, by a loop over dimensions.

    ∏_d √(√(l_d² + 2a_d²) √(l_d² + 2b_d²) / v_d) exp(−½(x_d − x'_d)²/v_d), v_d = l_d² + a_d² + b_d².
    """
    D, a2, b2 = A.centres.shape[-1], A.widths * A.widths, B.widths * B.widths
    log_product, d2 = 0.0, 0.0
    for d in range(D):  # a loop, so that no array is [n, m, D]
        l2_d = l2[:, d if l2.shape[-1] > 1 else 0]  # an isotropic kernel has one for all
        # v depends on both widths, so that (x − x')²/v is no product of a row's and a column's
        # factor
        v = l2_d[:, None, None] + a2[None, :, d, None] + b2[None, None, :, d]
        gap = A.centres[None, :, d, None] - B.centres[None, None, :, d]
        # a sum of logarithms, because the product leaves the range of floats in many dimensions
        log_product = log_product + ops.log(v)
        d2 = d2 + gap * gap / v
    norm = _log_norm(ops, l2, a2)[..., :, None] + _log_norm(ops, l2, b2)[..., None, :]
    return ops.exp(norm - 0.5 * log_product - 0.5 * d2)


def function_with_point(
    ops: Ops, l2: Float[Array, "Q #D"], A: Features, X: Float[Array, "m D"]
) -> Float[Array, "Q n m"]:
    """Return the correlations of inducing functions A and f at X, by matrix products."""
    centre = common_centre(ops, A.centres)
    centres, X = A.centres - centre, X - centre
    a2 = A.widths * A.widths
    v = l2[:, None, :] + a2[None, ...]  # [Q, n, D]
    scaled = centres[None, ...] / v
    d2 = (
        ops.sum(centres[None, ...] * scaled, axis=-1)[..., None]
        - 2.0 * (scaled @ ops.matrix_transpose(X)[None, ...])
        + (1.0 / v) @ ops.matrix_transpose(X * X)[None, ...]
    )
    norm = _log_norm(ops, l2, a2) + _log_norm(ops, l2, 0.0 * a2)  # a point has width 0
    log_ratio = norm - 0.5 * ops.sum(ops.log(v), axis=-1)
    # the expanded square may round below 0, which would give more than the largest covariance
    return ops.exp(log_ratio[..., None] - 0.5 * ops.maximum(d2, 0.0))


def _log_norm(ops: Ops, l2: Float[Array, "Q #D"], c2: Float[Array, "n D"]) -> Float[Array, "Q n"]:
    """Compute ¼ Σ_d log(l_d² + 2c_d²), each function's share of the scaling and of ∏ l_d."""
    return 0.25 * ops.sum(ops.log(l2[:, None, :] + 2.0 * c2[None, ...]), axis=-1)
