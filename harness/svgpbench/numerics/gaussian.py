"""Gaussian algebra shared by all families, and the values that pass from kernels to methods."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float

from svgpbench.ops import Array, Ops

LOG_2PI = math.log(2.0 * math.pi)


class Prior(NamedTuple):
    """The prior p(u) = N(0, K); it depends on θ only, so training reuses it while θ is fixed."""

    Kuu: Float[Array, "Q M M"]  # jitter added; Q is 1 (shared kernel) or P
    L: Float[Array, "Q M M"]  # lower Cholesky factor of Kuu


@runtime_checkable
class Whitener(Protocol):
    """A `Prior` or a `Factor`: a value with the factor L of Kuu."""

    @property
    def L(self) -> Float[Array, "Q M M"]:  # noqa: N802
        """Lower Cholesky factor of Kuu."""


class Factor(NamedTuple):
    """The blocks of θ and a batch that a coupled method uses."""

    L: Float[Array, "Q M M"]
    W: Float[Array, "_ M b"]  # L⁻¹ Kuf; leading axis Q, or P after `tilted`
    kff: Float[Array, "Q b"]


def prior(ops: Ops, Kuu: Float[Array, "Q M M"]) -> Prior:
    """Factorise K(Z, Z); a matrix that is not positive definite gives NaN."""
    return Prior(Kuu, ops.cholesky(Kuu))


def factor(ops: Ops, p: Prior, Kuf: Float[Array, "Q M b"], kff: Float[Array, "Q b"]) -> Factor:
    """Whiten the cross-covariance: W = L⁻¹ Kuf."""
    return Factor(p.L, ops.solve_triangular(p.L, Kuf), kff)


def matvec(a: Float[Array, "... n k"], x: Float[Array, "... k"]) -> Float[Array, "... n"]:
    """Compute Ax."""
    return (a @ x[..., None])[..., 0]


def vecmat(x: Float[Array, "... n"], a: Float[Array, "... n k"]) -> Float[Array, "... k"]:
    """Compute xᵀA, without a transposed copy of A."""
    return (x[..., None, :] @ a)[..., 0, :]


def log_determinant(ops: Ops, chol: Float[Array, "*batch n n"]) -> Float[Array, "*batch"]:
    """Compute log|A| from a triangular factor of A whose diagonal may have any sign."""
    d = ops.diagonal(chol)
    # log d² and not 2 log d: Adam may make an entry of a factor negative, which leaves its square
    # alone
    return ops.sum(ops.log(d * d), axis=-1)


def symmetrise(ops: Ops, x: Float[Array, "*batch n n"]) -> Float[Array, "*batch n n"]:
    """Compute (X + Xᵀ)/2."""
    return 0.5 * (x + ops.matrix_transpose(x))


WORTH_SPLITTING = 256
"""Least rows for which the saved arithmetic outweighs the extra calls."""


def symmetric_product(
    ops: Ops, x: Float[Array, "... n k"], y: Float[Array, "... n k"]
) -> Float[Array, "... n n"]:
    """Compute a symmetric xyᵀ; one quarter is mirrored."""
    n = x.shape[-2]
    if n < WORTH_SPLITTING:
        return x @ ops.matrix_transpose(y)
    h = n // 2
    first = x[..., :h, :] @ ops.matrix_transpose(y[..., :h, :])
    below = x[..., h:, :] @ ops.matrix_transpose(y)
    above = ops.matrix_transpose(below[..., :h])
    return ops.concat([ops.concat([first, above], axis=-1), below], axis=-2)


def lower_inverse(ops: Ops, chol: Float[Array, "*batch n n"]) -> Float[Array, "*batch n n"]:
    """Compute L⁻¹ of a lower triangular factor."""
    return ops.solve_triangular(chol, ops.broadcast_to(ops.eye(chol.shape[-1]), chol.shape))


def lower_gram(ops: Ops, R: Float[Array, "*batch n n"]) -> Float[Array, "*batch n n"]:
    """Compute RᵀR of a lower triangular R, in half of the arithmetic."""
    h = R.shape[-1] // 2
    first, right = R[..., :, :h], ops.matrix_transpose(R[..., h:, :]) @ R[..., h:, h:]
    mirrored = ops.matrix_transpose(right[..., :h, :])
    return ops.concat(
        [ops.concat([ops.matrix_transpose(first) @ first, mirrored], axis=-2), right], axis=-1
    )


def lower_congruence(
    ops: Ops, R: Float[Array, "... n n"], C: Float[Array, "... n n"]
) -> Float[Array, "... n n"]:
    """Compute RᵀCR of a lower triangular R and a symmetric C, in 9/16 of the arithmetic."""
    h = R.shape[-1] // 2
    first_columns, corner = R[..., :, :h], R[..., h:, h:]
    across = C @ first_columns
    turned = ops.matrix_transpose(corner)
    below, last = turned @ across[..., h:, :], turned @ (C[..., h:, h:] @ corner)
    first = ops.concat([ops.matrix_transpose(first_columns) @ across, below], axis=-2)
    return ops.concat([first, ops.concat([ops.matrix_transpose(below), last], axis=-2)], axis=-1)


def unwhitened_precision(
    ops: Ops, L: Float[Array, "*batch n n"], C: Float[Array, "*batch n n"]
) -> Float[Array, "*batch n n"]:
    """Compute L⁻ᵀCL⁻¹ of a symmetric C."""
    # halfᵀ = CL⁻¹ by the symmetry of C, so that both solves are from the left
    half = ops.solve_triangular(L, C, transpose=True)
    return ops.solve_triangular(L, ops.matrix_transpose(half), transpose=True)


def cholesky_solve(
    ops: Ops, chol: Float[Array, "... n n"], x: Float[Array, "... n"]
) -> Float[Array, "... n"]:
    """Compute A⁻¹x from the lower Cholesky factor of A."""
    half = ops.solve_triangular(chol, x[..., None])
    return ops.solve_triangular(chol, half, transpose=True)[..., 0]


def cholesky_of_inverse(
    ops: Ops, precision: Float[Array, "*batch n n"]
) -> Float[Array, "*batch n n"]:
    """Compute the lower Cholesky factor of Λ⁻¹ from Λ, with one factorisation of Λ.

    Λ = UUᵀ with U upper triangular (a Cholesky of Λ read backwards), so Λ⁻¹ = U⁻ᵀU⁻¹ and U⁻ᵀ is lower.
    """
    # `cholesky` reads the lower triangle of the flipped matrix, which is the upper one of Λ
    flipped = ops.cholesky(ops.flip(precision, axis=(-2, -1)))
    upper = ops.flip(flipped, axis=(-2, -1))
    identity = ops.broadcast_to(ops.eye(upper.shape[-1]), upper.shape)
    return ops.solve_triangular(upper, identity, lower=False, transpose=True)
