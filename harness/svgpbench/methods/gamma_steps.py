"""Blocks and state of a q with two parts, and the steps of γ's coefficients a.

All steps go up the gradient ∂_a = sK_⊥ᵀα − D_γa at fixed β. `adam` is what Salimbeni et al. 2018b and
their code do, `scaled` and `natural` are their Eqs. 17 and 16a, and `newton` is ours. Before Adam the
scaling of Eq. 17 would have no effect.

The gradient, marginals and KL take products of K_γβ with vectors only, in O(M_γM_β). The orthogonal
blocks K_⊥ and D_γ cost M_β times that; they are formed only if a step solves against them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Float

from svgpbench.methods.gram_columns import Columns
from svgpbench.numerics.adam import adam_ascent
from svgpbench.numerics.gaussian import Factor, Prior, cholesky_solve, matvec, vecmat
from svgpbench.ops import Array, Ops


class TwoPartPrior(NamedTuple):
    """Blocks of θ and the two bases."""

    coupled: Prior
    K_bg: Float[Array, "Q M_β M_γ"]  # K_βγ
    columns: Columns  # of K_γ; sampled columns come with the batch
    curvature: Any
    """The divisor of the γ-step: () for adam, diag D_γ [Q, M_γ] for scaled, the Cholesky factor of D_γ for
    natural, `DenseCurvature` for newton."""


class TwoPartFactor(NamedTuple):
    """Blocks of θ, the two bases and a batch."""

    coupled: Factor
    K_bg: Float[Array, "Q M_β M_γ"]  # K_βγ
    columns: Columns  # of K_γ
    curvature: Any  # as in `TwoPartPrior`
    K_gx: Float[Array, "Q M_γ b"]  # k_γx


TwoPartBlocks: TypeAlias = TwoPartPrior | TwoPartFactor


class DenseCurvature(NamedTuple):
    """Blocks of the curvature in a."""

    V: Float[Array, "Q M_β M_γ"]  # L⁻¹K_βγ
    D: Float[Array, "Q M_γ M_γ"]  # D_γ or K_γ, jitter added
    K_x: Float[Array, "Q M_γ b"] | tuple[()]  # K_⊥ᵀ or k_γx; () without a batch


class TwoPartState(NamedTuple):
    """The coupled method's state, γ's coefficients, and their Adam moments (else the empty tuple)."""

    coupled: Any  # its type depends on the coupled method
    a: Float[Array, "P M_γ"]
    adam: Any  # AdamState, or ()

    @property
    def halvings(self) -> Float[Array, ""]:
        """Number of halvings in the coupled method's state, if it counts them."""
        return self.coupled.halvings


class Factorised(NamedTuple):
    """The coupled method's factorised state, γ's coefficients, and the part of k_γa that β explains."""

    coupled: Any  # as in `TwoPartState`
    a: Float[Array, "P M_γ"]
    explained: Float[Array, "P M_β"]  # L⁻¹K_βγa


class Move(NamedTuple):
    """The inputs of a γ-step."""

    f: TwoPartFactor
    state: TwoPartState
    gradient: Float[Array, "P M_γ"]
    beta: Float[Array, "P b"]  # times the minibatch scale
    rate: Float[Array, ""]


def explained(ops: Ops, blocks: TwoPartBlocks, a: Float[Array, "P M_γ"]) -> Float[Array, "P M_β"]:
    """Return L⁻¹K_βγa: the function k_γa at β, whitened."""
    return ops.solve_triangular(blocks.coupled.L, matvec(blocks.K_bg, a)[..., None])[..., 0]


def explained_adjoint(
    ops: Ops, blocks: TwoPartBlocks, x: Float[Array, "P M_β"]
) -> Float[Array, "P M_γ"]:
    """Return K_γβL⁻ᵀx, the adjoint of `explained`."""
    half = ops.solve_triangular(blocks.coupled.L, x[..., None], transpose=True)[..., 0]
    return vecmat(half, blocks.K_bg)


def _adam(ops: Ops, m: Move) -> TwoPartState:
    a, adam = adam_ascent(ops, m.state.adam, m.state.a, m.gradient, m.rate)
    return m.state._replace(a=a, adam=adam)


def _scaled(ops: Ops, m: Move) -> TwoPartState:
    """Take the step of Eq. 17 of Salimbeni et al. 2018b; the diagonal of K_γ includes the jitter."""
    return m.state._replace(a=m.state.a + m.rate * m.gradient / m.f.curvature)


def _natural(ops: Ops, m: Move) -> TwoPartState:
    """Take the step of Eq. 16a of Salimbeni et al. 2018b.

    It is stable for rates below 2/(1 + λmax(D_γ⁻¹ s K_⊥ᵀ diag(β) K_⊥)).
    """
    return m.state._replace(a=m.state.a + m.rate * cholesky_solve(ops, m.f.curvature, m.gradient))


def _newton(ops: Ops, m: Move) -> TwoPartState:
    """Solve D_γ + s K_⊥ᵀ diag(β) K_⊥ against ∂_a and step by the result.

    Negative β count as 0, which does not change the fixed point.
    """
    # weights ≥ 0 keep the curvature at least D, which is positive definite: no rate is halved here
    weights, (_, D, K_x) = ops.maximum(m.beta, 0.0)[..., None, :], m.f.curvature
    curvature = D + (K_x * weights) @ ops.matrix_transpose(K_x)
    step = cholesky_solve(ops, ops.cholesky(curvature), m.gradient)
    return m.state._replace(a=m.state.a + m.rate * step)


GAMMA_STEPS: dict[str, Callable[[Ops, Move], TwoPartState]] = {
    "adam": _adam,
    "scaled": _scaled,
    "natural": _natural,
    "newton": _newton,
}
DENSE_STEPS = ("natural", "newton")
"""The steps that solve against D_γ, and so need all of it."""
