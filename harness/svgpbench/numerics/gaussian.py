"""The Gaussian algebra that every family shares: the values that pass from kernels to methods."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from svgpbench.ops import Array, Ops

LOG_2PI = math.log(2.0 * math.pi)


class Prior(NamedTuple):
    """p(u) = N(0, K): depends on θ only, so a training loop holds it while θ stands still."""

    Kuu: Array  # [Q, M, M], jitter added; Q is 1 (shared kernel) or P
    L: Array  # [Q, M, M], lower Cholesky factor of Kuu


class Whitener(Protocol):
    """What both `Prior` and `Factor` have."""

    @property
    def L(self) -> Array:  # noqa: N802
        """Lower Cholesky factor of Kuu [Q, M, M]."""


class Factor(NamedTuple):
    """What a coupled method sees of θ and a batch."""

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
    """A [..., n, k] times x [..., k]."""
    return (a @ x[..., None])[..., 0]


def vecmat(x: Array, a: Array) -> Array:
    """xᵀA [..., k] of x [..., n] and A [..., n, k], without a transposed copy of A."""
    return (x[..., None, :] @ a)[..., 0, :]


def log_determinant(ops: Ops, chol: Array) -> Array:
    """log|A| [...] from a triangular factor of A whose diagonal may have any sign."""
    d = ops.diagonal(chol)
    return ops.sum(ops.log(d * d), axis=-1)


def symmetrise(ops: Ops, x: Array) -> Array:
    """(X + Xᵀ)/2 of the last two axes."""
    return 0.5 * (x + ops.matrix_transpose(x))


WORTH_SPLITTING = 256
"""From so many rows on, arithmetic that is left out outweighs the calls that it takes."""


def symmetric_product(ops: Ops, x: Array, y: Array) -> Array:
    """xyᵀ [..., n, n] of x and y [..., n, k], where it is symmetric: a quarter is mirrored."""
    n = x.shape[-2]
    if n < WORTH_SPLITTING:
        return x @ ops.matrix_transpose(y)
    h = n // 2
    first = x[..., :h, :] @ ops.matrix_transpose(y[..., :h, :])
    below = x[..., h:, :] @ ops.matrix_transpose(y)
    above = ops.matrix_transpose(below[..., :h])
    return ops.concat([ops.concat([first, above], axis=-1), below], axis=-2)


def lower_inverse(ops: Ops, chol: Array) -> Array:
    """L⁻¹ [..., n, n] of a lower triangular factor."""
    return ops.solve_triangular(chol, ops.broadcast_to(ops.eye(chol.shape[-1]), chol.shape))


def lower_gram(ops: Ops, R: Array) -> Array:
    """RᵀR [..., n, n] of a lower triangular R, half of the arithmetic by leaving out its zero quarter."""
    h = R.shape[-1] // 2
    left, right = R[..., :, :h], ops.matrix_transpose(R[..., h:, :]) @ R[..., h:, h:]
    mirrored = ops.matrix_transpose(right[..., :h, :])
    return ops.concat(
        [ops.concat([ops.matrix_transpose(left) @ left, mirrored], axis=-2), right], axis=-1
    )


def lower_congruence(ops: Ops, R: Array, C: Array) -> Array:
    """RᵀCR [..., n, n] of a lower triangular R and a symmetric C, in 9/16 of the arithmetic."""
    h = R.shape[-1] // 2
    left, corner = R[..., :, :h], R[..., h:, h:]
    across = C @ left
    turned = ops.matrix_transpose(corner)
    below, last = turned @ across[..., h:, :], turned @ (C[..., h:, h:] @ corner)
    first = ops.concat([ops.matrix_transpose(left) @ across, below], axis=-2)
    return ops.concat([first, ops.concat([ops.matrix_transpose(below), last], axis=-2)], axis=-1)


def unwhitened_precision(ops: Ops, L: Array, C: Array) -> Array:
    """L⁻ᵀCL⁻¹ of a symmetric C."""
    half = ops.solve_triangular(L, C, transpose=True)
    return ops.solve_triangular(L, ops.matrix_transpose(half), transpose=True)


def cholesky_solve(ops: Ops, chol: Array, x: Array) -> Array:
    """A⁻¹x [..., n] from the lower Cholesky factor of A."""
    half = ops.solve_triangular(chol, x[..., None])
    return ops.solve_triangular(chol, half, transpose=True)[..., 0]


def cholesky_of_inverse(ops: Ops, precision: Array) -> Array:
    """Lower Cholesky factor of Λ⁻¹ from Λ [..., n, n], with one factorisation of Λ.

    Λ = UUᵀ with U upper triangular (a Cholesky of Λ read backwards), so Λ⁻¹ = U⁻ᵀU⁻¹ and U⁻ᵀ is lower.
    """
    flipped = ops.cholesky(ops.flip(precision, axis=(-2, -1)))
    upper = ops.flip(flipped, axis=(-2, -1))
    identity = ops.broadcast_to(ops.eye(upper.shape[-1]), upper.shape)
    return ops.solve_triangular(upper, identity, lower=False, transpose=True)
