"""Products K a from some of K's columns, at a cost linear in the number of basis points.

With R a random subset of r of the M basis points, (M/r) K[:, R] a_R has the mean K a. Sampling both
sides, a_Rᵀ K_RR a_R, would be biased. The jitter is a multiple of the identity and needs no sampling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float, Int

from svgpbench.kernels.covariance import Covariance
from svgpbench.numerics.gaussian import matvec
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map


class Columns(NamedTuple):
    """Columns of K + jitter·I over one basis."""

    K: Any  # [Q, M, r], without jitter; () if the sampled points come with the batch
    basis_points: Int[Array, "r"] | tuple[()]  # () for all
    jitter: Float[Array, ""]


def no_columns(ops: Ops, cov: Covariance) -> Columns:
    """Return the jitter alone, for use when the columns come with the batch."""
    return Columns((), (), ops.zeros(()) + cov.jitter)


def all_columns(ops: Ops, cov: Covariance, basis: Tree) -> Columns:
    """Return all columns, with memory M²."""
    return no_columns(ops, cov)._replace(K=cov.cross(basis, basis))


def sampled_columns(
    ops: Ops, cov: Covariance, basis: Tree, basis_points: Int[Array, "r"]
) -> Columns:
    """Return the columns of `basis_points`, which must be distinct."""
    points = tree_map(lambda x: ops.take(x, basis_points, axis=0), basis)
    return Columns(cov.cross(basis, points), basis_points, ops.zeros(()) + cov.jitter)


def product(ops: Ops, columns: Columns, a: Float[Array, "P M"]) -> Float[Array, "P M"]:
    """Return (K + jitter·I) a, or an unbiased estimate from sampled columns.

    Source: Cheng and Boots 2017, Sec. 3.4 (sampling of columns).
    """
    if isinstance(columns.basis_points, tuple):
        return matvec(columns.K, a) + columns.jitter * a
    share = columns.K.shape[-2] / columns.K.shape[-1]  # M/r
    sampled = ops.take(a, columns.basis_points, axis=-1)
    return share * matvec(columns.K, sampled) + columns.jitter * a
