"""The blocks and the state of a q with two parts, and the steps of γ's coefficients a.

All climb the gradient ∂_a = sK_⊥ᵀα − D_γa at fixed β: `adam` is what Salimbeni et al. 2018b and their
code do, `scaled` and `natural` are their Eqs. 17 and 16a, `newton` is ours. Before Adam the scaling of
Eq. 17 would do nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from svgpbench.gaussian import cholesky_solve
from svgpbench.methods.columns import Columns
from svgpbench.ops import Array, Ops
from svgpbench.optimisers import adam_ascent


class Blocks(NamedTuple):
    """Blocks of θ; with a batch, also those in which x appears."""

    coupled: Any  # of the coupled method on β, which have L (and W)
    V: Array  # [Q, M_β, M_γ], L⁻¹K_βγ
    D: Any  # [Q, M_γ, M_γ], D_γ or K_γ, jitter added; () where its columns are sampled
    L_D: Any  # its Cholesky factor, or ()
    columns: Columns  # of K_γ; they come with the batch
    variances: Array  # [Q, M_γ], diagonal of K_γ, jitter added
    K_xb: Any  # [Q, M_γ, b], k_γx − K_γβK_β⁻¹k_βx, or k_γx; () without a batch


class TwoPartState(NamedTuple):
    """The coupled method's state, γ's coefficients, and Adam's moments of them (else the empty tuple)."""

    coupled: Any
    a: Array  # [P, M_γ]
    adam: Any

    @property
    def halvings(self) -> Array:
        """The coupled method's count of halved rates [], where it keeps one."""
        return self.coupled.halvings


class Factorised(NamedTuple):
    """The coupled method's factorised state, and γ's coefficients."""

    coupled: Any
    a: Array  # [P, M_γ]


class Move(NamedTuple):
    """What a γ-step starts from."""

    f: Blocks
    state: TwoPartState
    gradient: Array  # [P, M_γ]
    beta: Array  # [P, b], times the minibatch scale
    rate: Array  # []


def _adam(ops: Ops, m: Move) -> TwoPartState:
    a, adam = adam_ascent(ops, m.state.adam, m.state.a, m.gradient, m.rate)
    return m.state._replace(a=a, adam=adam)


def _scaled(ops: Ops, m: Move) -> TwoPartState:
    """Eq. 17 of Salimbeni et al. 2018b; the jitter is in the diagonal of K_γ."""
    diagonal = m.f.variances - ops.sum(m.f.V * m.f.V, axis=-2)
    return m.state._replace(a=m.state.a + m.rate * m.gradient / diagonal)


def _natural(ops: Ops, m: Move) -> TwoPartState:
    """Eq. 16a of Salimbeni et al. 2018b; stable for rates below 2/(1 + λmax(D_γ⁻¹ s K_⊥ᵀ diag(β) K_⊥))."""
    return m.state._replace(a=m.state.a + m.rate * cholesky_solve(ops, m.f.L_D, m.gradient))


def _newton(ops: Ops, m: Move) -> TwoPartState:
    """Solve D_γ + s K_⊥ᵀ diag(β) K_⊥ against ∂_a; negative β count as 0, which leaves the fixed point."""
    weights = ops.maximum(m.beta, 0.0)[..., None, :]
    curvature = m.f.D + (m.f.K_xb * weights) @ ops.matrix_transpose(m.f.K_xb)
    step = cholesky_solve(ops, ops.cholesky(curvature), m.gradient)
    return m.state._replace(a=m.state.a + m.rate * step)


GAMMA_STEPS: dict[str, Callable[[Ops, Move], TwoPartState]] = {
    "adam": _adam,
    "scaled": _scaled,
    "natural": _natural,
    "newton": _newton,
}
DENSE_STEPS = ("natural", "newton")
"""These solve against D_γ, so they need all of it."""
