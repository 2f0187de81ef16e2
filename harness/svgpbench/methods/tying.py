"""Tyings: the choices of the invariant of a dual M-step, the quantity that is fixed while θ moves.

The dual parameters are sums over sites projected through the kernel, so "the dual parameters are
fixed" can mean several things, and the M-step objectives differ (Adam et al. 2021, Eqs. 15 and 21):

* `untied`: every site (λ₁ᵢ, βᵢ); the sums are rebuilt with k_i(θ). With a Gaussian likelihood this is
  the collapsed bound, the tightest with q(f|u) = p(f|u) (see `residual_variance.py`). Needs a full pass.
* `tied-projected`: T₁ = K⁻¹λ̄₁ and T₂ = K⁻¹Λ̄₂K⁻¹; unbiased on minibatches.
* `tied`: λ̄₁ and Λ̄₂, Eq. 21 as printed. It can lie below even the standard objective.
* `whitened`: L⁻¹λ̄₁ and L⁻¹Λ̄₂L⁻ᵀ, that is q(v) of the whitened u = Lv.
* `standard`: q(u) itself, the objective of q-SVGP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Float

from svgpbench.likelihoods import Conditional
from svgpbench.methods.adjoint import (
    Cross,
    GramGradient,
    Whitened,
    grad_fixed_posterior,
    grad_fixed_projected,
    grad_fixed_sites,
    grad_fixed_sums,
    grad_fixed_whitened,
)
from svgpbench.methods.data_term import DataTerm
from svgpbench.numerics.gaussian import Factor, Whitener, lower_congruence, matvec
from svgpbench.ops import Array, Ops


class Sites(NamedTuple):
    """Gaussian sites t_i(f_i) ∝ exp(λ₁ᵢ f_i − ½βᵢ f_i²)."""

    lambda1: Float[Array, "P n"]
    beta: Float[Array, "P n"]


def step_sites(
    ops: Ops,
    sites: Sites,
    data: DataTerm,
    lambda1: Float[Array, "P b"],
    beta: Float[Array, "P b"],
    rate: Float[Array, ""],
) -> Sites:
    """Return (1 − r)·sites, with r·s·(λ₁, β) added at the batch's rows.

    Every site decays, so that sums over sites follow the dual step on minibatches too.
    """
    step = rate * data.scale
    return Sites(
        ops.index_add((1.0 - rate) * sites.lambda1, data.index, step * lambda1),
        ops.index_add((1.0 - rate) * sites.beta, data.index, step * beta),
    )


def per_unit_precision(ops: Ops, p: Conditional, sites: Sites) -> Sites:
    """Return the sites divided by the factor that the likelihood's parameters alone determine.

    It is 1/σ² for Gaussian noise. With sites held in this form, a Gaussian bound stays tight when σ² moves.
    """
    unit = p.site_precision(ops)
    return Sites(sites.lambda1 / unit, sites.beta / unit)


def at_precision(ops: Ops, p: Conditional, invariant: Sites) -> Sites:
    """Return the sites at new likelihood parameters, from the result of `per_unit_precision`."""
    unit = p.site_precision(ops)
    return Sites(invariant.lambda1 * unit, invariant.beta * unit)


class DualState(NamedTuple):
    """Whitened dual parameters, and the sites if the tying keeps them (else the empty tuple)."""

    c: Float[Array, "P M"]  # L⁻¹λ̄₁
    C: Float[Array, "P M M"]  # L⁻¹Λ̄₂L⁻ᵀ
    sites: Any  # Sites, or ()
    halvings: Float[Array, ""]  # halvings of the E-step's rate since the start
    residual: Float[Array, "P"] | tuple[()] = ()  # 1/v of one residual variance, or ()


class DualInvariant(NamedTuple):
    """A state and the factor L of K(Z, Z) at the old θ; together they define what is fixed."""

    state: DualState
    L: Float[Array, "Q M M"]


@dataclass(frozen=True)
class Tying:
    """A choice of the invariant, which is found at the old θ, and the state at a new θ that it gives."""

    invariant: Callable[[Ops, Float[Array, "Q M M"], Conditional, DualState], Any]
    state_at: Callable[[Ops, Any, Conditional, Any], DualState]  # takes a Factor if sites are kept
    adjoint: Callable[[Ops, Cross, DataTerm, Whitened, DualState], GramGradient]
    keeps_sites: bool = False


def _state_and_factor(ops: Ops, L: Array, _: Conditional, s: DualState) -> DualInvariant:
    return DualInvariant(s, L)


def _state_projected(ops: Ops, f: Whitener, _: Conditional, fixed: DualInvariant) -> DualState:
    R = ops.solve_triangular(fixed.L, f.L)  # L⁻¹L': near I, as T₁ and T₂ themselves are not
    c = matvec(ops.matrix_transpose(R), fixed.state.c)
    return fixed.state._replace(c=c, C=lower_congruence(ops, R, fixed.state.C))


def _state_tied(ops: Ops, f: Whitener, _: Conditional, fixed: DualInvariant) -> DualState:
    R = ops.solve_triangular(f.L, fixed.L)  # L'⁻¹L
    C = R @ fixed.state.C @ ops.matrix_transpose(R)
    return fixed.state._replace(c=matvec(R, fixed.state.c), C=C)


def _state_standard(ops: Ops, f: Whitener, p: Conditional, fixed: DualInvariant) -> DualState:
    # q(u) has S⁻¹ = L⁻ᵀ(I + C)L⁻¹ and S⁻¹m = L⁻ᵀc: I + C moves as C alone does in `tied-projected`
    identity = ops.eye(fixed.state.c.shape[-1])
    s = _state_projected(
        ops, f, p, fixed._replace(state=fixed.state._replace(C=identity + fixed.state.C))
    )
    return s._replace(C=s.C - identity)


def _state_untied(ops: Ops, f: Factor, p: Conditional, fixed: DualState) -> DualState:
    sites = at_precision(ops, p, fixed.sites)
    # the sites of all n rows are summed, and their steps had the factor n/b
    C = (f.W * sites.beta[..., None, :]) @ ops.matrix_transpose(f.W)
    return fixed._replace(c=matvec(f.W, sites.lambda1), C=C, sites=sites)


TYINGS: dict[str, Tying] = {
    "tied-projected": Tying(
        _state_and_factor,
        _state_projected,
        lambda ops, f, data, q, s: grad_fixed_projected(ops, f, data, q),
    ),
    "tied": Tying(
        _state_and_factor,
        _state_tied,
        lambda ops, f, data, q, s: grad_fixed_sums(ops, f, data, q, s.c, s.C),
    ),
    "untied": Tying(
        lambda ops, L, p, s: s._replace(sites=per_unit_precision(ops, p, s.sites)),
        _state_untied,
        lambda ops, f, data, q, s: grad_fixed_sites(ops, f, data, q, *s.sites),
        keeps_sites=True,
    ),
    "whitened": Tying(
        lambda ops, L, p, s: s,
        lambda ops, f, p, h: h,
        lambda ops, f, data, q, s: grad_fixed_whitened(ops, f, data, q),
    ),
    "standard": Tying(
        _state_and_factor,
        _state_standard,
        lambda ops, f, data, q, s: grad_fixed_posterior(ops, f, data, q),
    ),
}
