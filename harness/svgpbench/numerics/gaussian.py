"""Gaussian algebra shared by all families, and the values that pass from kernels to methods."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from svgpbench.ops import Array, Ops

LOG_2PI = math.log(2.0 * math.pi)


class Prior(NamedTuple):
    """The prior p(u) = N(0, K); it depends on θ only, so training reuses it while θ is fixed."""

    Kuu: Array  # [Q, M, M], jitter added; Q is 1 (shared kernel) or P
    L: Array  # [Q, M, M], lower Cholesky factor of Kuu


class Whitener(Protocol):
    """A `Prior` or a `Factor`: a value with the factor L of Kuu."""

    @property
    def L(self) -> Array:  # noqa: N802
        """Lower Cholesky factor of Kuu [Q, M, M]."""


class Factor(NamedTuple):
    """The blocks of θ and a batch that a coupled method uses."""

    L: Array  # [Q, M, M]
    W: Array  # [Q, M, b], L⁻¹ Kuf
    kff: Array  # [Q, b]


def prior(ops: Ops, Kuu: Array) -> Prior:
    """Factorise K(Z, Z) [Q, M, M]; a matrix that is not positive definite gives NaN."""
    return Prior(Kuu, ops.cholesky(Kuu))


def factor(ops: Ops, p: Prior, Kuf: Array, kff: Array) -> Factor:
    """Whiten the cross-covariance: W = L⁻¹ Kuf."""
    return Factor(p.L, ops.solve_triangular(p.L, Kuf), kff)


def matvec(a: Array, x: Array) -> Array:
    """Compute A [..., n, k] times x [..., k]."""
    return (a @ x[..., None])[..., 0]


def vecmat(x: Array, a: Array) -> Array:
    """Compute xᵀA [..., k] of x [..., n] and A [..., n, k], without a transposed copy of A."""
    return (x[..., None, :] @ a)[..., 0, :]


def log_determinant(ops: Ops, chol: Array) -> Array:
    """Compute log|A| [...] from a triangular factor of A whose diagonal may have any sign."""
    d = ops.diagonal(chol)
    return ops.sum(ops.log(d * d), axis=-1)


def symmetrise(ops: Ops, x: Array) -> Array:
    """Compute (X + Xᵀ)/2 over the last two axes."""
    return 0.5 * (x + ops.matrix_transpose(x))


WORTH_SPLITTING = 256
"""Least rows for which the saved arithmetic outweighs the extra calls."""


def symmetric_product(ops: Ops, x: Array, y: Array) -> Array:
    """Compute a symmetric xyᵀ [..., n, n] of x and y [..., n, k]; one quarter is mirrored."""
    n = x.shape[-2]
    if n < WORTH_SPLITTING:
        return x @ ops.matrix_transpose(y)
    h = n // 2
    first = x[..., :h, :] @ ops.matrix_transpose(y[..., :h, :])
    below = x[..., h:, :] @ ops.matrix_transpose(y)
    above = ops.matrix_transpose(below[..., :h])
    return ops.concat([ops.concat([first, above], axis=-1), below], axis=-2)


def lower_inverse(ops: Ops, chol: Array) -> Array:
    """Compute L⁻¹ [..., n, n] of a lower triangular factor."""
    return ops.solve_triangular(chol, ops.broadcast_to(ops.eye(chol.shape[-1]), chol.shape))


def lower_gram(ops: Ops, R: Array) -> Array:
    """Compute RᵀR [..., n, n] of a lower triangular R, in half of the arithmetic."""
    h = R.shape[-1] // 2
    left, right = R[..., :, :h], ops.matrix_transpose(R[..., h:, :]) @ R[..., h:, h:]
    mirrored = ops.matrix_transpose(right[..., :h, :])
    return ops.concat(
        [ops.concat([ops.matrix_transpose(left) @ left, mirrored], axis=-2), right], axis=-1
    )


def lower_congruence(ops: Ops, R: Array, C: Array) -> Array:
    """Compute RᵀCR [..., n, n] of a lower triangular R and a symmetric C, in 9/16 of the arithmetic."""
    h = R.shape[-1] // 2
    left, corner = R[..., :, :h], R[..., h:, h:]
    across = C @ left
    turned = ops.matrix_transpose(corner)
    below, last = turned @ across[..., h:, :], turned @ (C[..., h:, h:] @ corner)
    first = ops.concat([ops.matrix_transpose(left) @ across, below], axis=-2)
    return ops.concat([first, ops.concat([ops.matrix_transpose(below), last], axis=-2)], axis=-1)


def unwhitened_precision(ops: Ops, L: Array, C: Array) -> Array:
    """Compute L⁻ᵀCL⁻¹ of a symmetric C."""
    half = ops.solve_triangular(L, C, transpose=True)
    return ops.solve_triangular(L, ops.matrix_transpose(half), transpose=True)


def cholesky_solve(ops: Ops, chol: Array, x: Array) -> Array:
    """Compute A⁻¹x [..., n] from the lower Cholesky factor of A."""
    half = ops.solve_triangular(chol, x[..., None])
    return ops.solve_triangular(chol, half, transpose=True)[..., 0]


def cholesky_of_inverse(ops: Ops, precision: Array) -> Array:
    """Compute the lower Cholesky factor of Λ⁻¹ from Λ [..., n, n], with one factorisation of Λ.

    Λ = UUᵀ with U upper triangular (a Cholesky of Λ read backwards), so Λ⁻¹ = U⁻ᵀU⁻¹ and U⁻ᵀ is lower.
    """
    flipped = ops.cholesky(ops.flip(precision, axis=(-2, -1)))
    upper = ops.flip(flipped, axis=(-2, -1))
    identity = ops.broadcast_to(ops.eye(upper.shape[-1]), upper.shape)
    return ops.solve_triangular(upper, identity, lower=False, transpose=True)
