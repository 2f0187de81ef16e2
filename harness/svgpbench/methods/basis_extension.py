"""Moving a state to a larger basis [Z, Z⁺] without changing q(f).

With T₁ = S⁻¹m and T₂ = S⁻¹ − K⁻¹, q(f) and its KL do not change if T₁ and T₂ are padded with zeros.
The factor of K' begins with that of K, so whitened parameters are padded too: c and C = B − I with zeros,
S_v with the identity. Padding λ̄₁ = KT₁ and Λ̄₂ = KT₂K with zeros would change q(f). Cheng and Boots 2017,
Alg. 1, line 4, add basis points and do not print how the state changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float

from svgpbench.numerics.adam import AdamState, for_each
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map


def zero_pad(
    ops: Ops, x: Float[Array, "..."], shape: Sequence[int], fill: float = 0.0
) -> Float[Array, "..."]:
    """Return an array of `shape` with `x` in its leading corner and `fill` elsewhere."""
    for axis, size in enumerate(shape):
        more = list(x.shape)
        more[axis] = size - more[axis]
        if more[axis]:
            x = ops.concat([x, ops.zeros(more) + fill], axis=axis)
    return x


def extend_by_diagonal(
    ops: Ops, chol: Float[Array, "P M M"], size: int, diagonal: float = 1.0
) -> Float[Array, "P {size} {size}"]:
    """Return the lower factor extended by `diagonal`·I."""
    P, M, _ = chol.shape
    corner = ops.broadcast_to(diagonal * ops.eye(size - M), (P, size - M, size - M))
    below = ops.concat([ops.zeros((P, size - M, M)), corner], axis=-1)
    return ops.concat([zero_pad(ops, chol, (P, M, size)), below], axis=-2)


def extend_mean(
    ops: Ops, L: Float[Array, "Q N N"], mean: Float[Array, "P M"]
) -> Float[Array, "P N"]:
    """Return the mean of q(u') = p(u⁺ | u) q(u) from that of q(u); L is the factor of K', N is M'."""
    M = mean.shape[-1]
    # the blocks of K' = LLᵀ give K₊K⁻¹m = L₂₁L₁₁⁻¹m for the mean of p(u⁺ | u)
    whitened = ops.solve_triangular(L[..., :M, :M], mean[..., None])
    return ops.concat([mean, (L[..., M:, :M] @ whitened)[..., 0]], axis=-1)


def extend_factor(
    ops: Ops, L: Float[Array, "Q N N"], chol: Float[Array, "P M M"]
) -> Float[Array, "P N N"]:
    """Return the factor of the covariance of q(u') = p(u⁺ | u) q(u) from that of q(u); see `extend_mean`."""
    (P, M, _), size = chol.shape, L.shape[-1]
    across = L[..., M:, :M] @ ops.solve_triangular(L[..., :M, :M], chol)
    # L₂₂L₂₂ᵀ is the covariance of p(u⁺ | u), so that the new rows need no factorisation
    corner = ops.broadcast_to(L[..., M:, M:], (P, size - M, size - M))
    below = ops.concat([across, corner], axis=-1)
    return ops.concat([zero_pad(ops, chol, (P, M, size)), below], axis=-2)


def extend_moments(ops: Ops, adam: AdamState, parameters: Tree) -> AdamState:
    """Return Adam's state for `parameters` whose arrays have grown; new entries start as at a first step."""

    def power(weight: Array, old: Array, x: Array) -> Array:
        if tuple(old.shape) == tuple(x.shape):
            return weight
        # 1 is β⁰; a padding of 0 would be β^∞, which corrects no bias
        return zero_pad(ops, ops.broadcast_to(weight, old.shape), x.shape, 1.0)

    return AdamState(
        tree_map(lambda m, x: zero_pad(ops, m, x.shape), adam.mean, parameters),
        tree_map(lambda s, x: zero_pad(ops, s, x.shape), adam.square, parameters),
        tree_map(power, for_each(parameters, adam.power1), adam.mean, parameters),
        tree_map(power, for_each(parameters, adam.power2), adam.mean, parameters),
    )
