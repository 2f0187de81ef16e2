"""Closed-form gradients of the bound in the blocks of the Gram matrix: what an M-step goes up.

The bound sees K(Z, Z) through its factor L and the rest of θ through W = L⁻¹K(Z, X), κ and the
likelihood's parameters. Let W̄ be its gradient in W with q's coordinates held, and H = LᵀL̄ that in L,
W among what moves with L. Then K̄(Z, X) = L⁻ᵀW̄ and K̄(Z, Z) = L⁻ᵀ sym(Φ(H)) L⁻¹, where Φ takes the
lower triangle and halves its diagonal (Murray 2016, arXiv:1602.07527): no Cholesky factor is
differentiated, and where the bound depends on L through K alone, H is symmetric and sym(Φ(H)) = H/2.

In whitened coordinates q(v) = N(m, S), with J = I − S, D = diag(sβ) and g = sWα,

    μ = Wᵀm,   v = κ − diag(WᵀJW),   W̄ = m(sα)ᵀ + JWD,   κ̄ = −sβ/2,

so that JW serves three times. What a method's M-step holds says how m and S move with L: that, and
nothing else, is the method's own.
"""

from __future__ import annotations

from typing import NamedTuple

from svgpbench.methods.data_term import DataTerm
from svgpbench.model.kernels import KernelParameters
from svgpbench.model.pullback import DifferentiableCovariance, total
from svgpbench.numerics.gaussian import Factor, matvec, unwhitened_precision, vecmat
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map


class BoundGradient(NamedTuple):
    """The bound's gradient in what the blocks and the likelihood are made of."""

    kernel: KernelParameters
    likelihood: Tree
    inducing: Tree


class Whitened(NamedTuple):
    """q(v) = N(m, S) of the whitened u = Lv."""

    m: Array  # [P, M]
    S: Array  # [P, M, M]


class AtBatch(NamedTuple):
    """q and the slopes of the data's term there."""

    m: Array  # [P, M]
    J: Array  # [P, M, M], I − S
    JW: Array  # [P, M, b]
    JWD: Array  # [P, M, b], JW diag(sβ)
    alpha: Array  # [P, b], sα
    beta: Array  # [P, b], sβ
    g: Array  # [P, M], sWα
    likelihood: Tree  # ∂/∂parameters of s Σ V


class FactorGradient(NamedTuple):
    """The bound's gradient in W, in K(Z, Z) between L⁻ᵀ and L⁻¹, and in the likelihood's parameters."""

    W: Array  # [P, M, b]
    square: Array  # [P, M, M], sym(Φ(H))
    likelihood: Tree


def at_batch(ops: Ops, f: Factor, data: DataTerm, q: Whitened) -> AtBatch:
    """What all gradients at a batch share."""
    J = ops.eye(q.m.shape[-1]) - q.S
    JW = J @ f.W
    mu, v = vecmat(q.m, f.W), f.kff - ops.sum(f.W * JW, axis=-2)
    _, likelihood, alpha, beta = data.likelihood.expectations(ops, data.y, mu, v)
    alpha, beta = data.scale * alpha, data.scale * beta
    likelihood = tree_map(lambda bar: data.scale * bar, likelihood)
    JWD = JW * beta[..., None, :]
    return AtBatch(q.m, J, JW, JWD, alpha, beta, matvec(f.W, alpha), likelihood)


def pulled_back(
    ops: Ops,
    cov: DifferentiableCovariance,
    Z: Tree,
    X: Array,
    f: Factor,
    at: AtBatch,
    bar: FactorGradient,
) -> BoundGradient:
    """The gradient in kernel parameters and Z: latents that share a kernel are summed."""
    kernels = f.L.shape[0]
    cross = ops.solve_triangular(f.L, over_latents(ops, bar.W, kernels), transpose=True)
    square = unwhitened_precision(ops, f.L, over_latents(ops, bar.square, kernels))
    from_square, from_cross = cov.pull_square(Z, square), cov.pull_cross(Z, X, cross)
    from_diagonal = cov.pull_diagonal(X, -0.5 * over_latents(ops, at.beta, kernels))
    return BoundGradient(
        total(ops, from_square.parameters, from_cross.parameters, from_diagonal),
        bar.likelihood,
        total(ops, from_square.basis, from_cross.basis),
    )


# --- what is held while θ moves -------------------------------------------------------------------


def whitened_held(ops: Ops, f: Factor, at: AtBatch) -> FactorGradient:
    """q(v) itself: only W moves with L, and H = −W̄Wᵀ."""
    W_bar = _direct(at)
    return FactorGradient(W_bar, lower_symmetrised(ops, -_product(ops, W_bar, f.W)), at.likelihood)


def posterior_held(ops: Ops, f: Factor, at: AtBatch) -> FactorGradient:
    """q(u): H = X + Xᵀ − J + mmᵀ − gmᵀ − mgᵀ, X = WD(W/2 − JW)ᵀ."""
    X = _product(ops, f.W * at.beta[..., None, :], 0.5 * f.W - at.JW)
    rank = paired(at.m, 0.5 * at.m - at.g)
    H = X + ops.matrix_transpose(X) - at.J + rank
    return FactorGradient(_direct(at), 0.5 * H, at.likelihood)


def projected_held(ops: Ops, f: Factor, at: AtBatch) -> FactorGradient:
    """K⁻¹λ̄₁ and K⁻¹Λ̄₂K⁻¹: H = −J² − JWD(JW)ᵀ + m(h + m/2)ᵀ + (h + m/2)mᵀ, h = S(g − m) − g."""
    rest = at.g - at.m
    h = rest - matvec(at.J, rest) - at.g
    H = paired(at.m, h + 0.5 * at.m) - _explained(ops, at)
    return FactorGradient(_direct(at), 0.5 * H, at.likelihood)


def weights_held(ops: Ops, f: Factor, at: AtBatch) -> FactorGradient:
    """K⁻¹m and S⁻¹ − K⁻¹ (of u): H = −(J² + JWD(JW)ᵀ + mmᵀ)."""
    H = -_explained(ops, at) - paired(at.m, 0.5 * at.m)
    return FactorGradient(_direct(at), 0.5 * H, at.likelihood)


class DualGradient(NamedTuple):
    """The bound's gradient in c = S⁻¹m and C = S⁻¹ − I."""

    c: Array  # [P, M]
    C: Array  # [P, M, M], symmetric


def dual_gradient(ops: Ops, f: Factor, at: AtBatch) -> DualGradient:
    """c̄ = S(g − m) and C̄ = −½S(C − WDWᵀ)S − sym(c̄mᵀ), where SCS = J − J²."""
    rest = at.g - at.m
    c = rest - matvec(at.J, rest)
    SW = f.W - at.JW
    SPS = _product(ops, SW * at.beta[..., None, :], SW)
    return DualGradient(c, 0.5 * (SPS - at.J + at.J @ at.J - paired(c, at.m)))


def sums_held(ops: Ops, f: Factor, at: AtBatch, c: Array, C: Array) -> FactorGradient:
    """λ̄₁ and Λ̄₂: H = −2C̄C − c̄cᵀ − W̄Wᵀ."""
    bar, W_bar = dual_gradient(ops, f, at), _direct(at)
    H = -2.0 * (bar.C @ C) - outer(bar.c, c) - _product(ops, W_bar, f.W)
    return FactorGradient(W_bar, lower_symmetrised(ops, H), at.likelihood)


def sites_held(
    ops: Ops, f: Factor, data: DataTerm, at: AtBatch, lambda1: Array, beta: Array
) -> FactorGradient:
    """Every site (λ₁, β) [P, n] over the precision of the likelihood: W̄ has 2C̄W diag β + c̄λ₁ᵀ more."""
    bar = dual_gradient(ops, f, at)
    CW = bar.C @ f.W
    W_bar = _direct(at) + 2.0 * CW * beta[..., None, :] + outer(bar.c, lambda1)
    in_unit = ops.sum(beta * ops.sum(f.W * CW, axis=-2)) + ops.sum(lambda1 * vecmat(bar.c, f.W))
    unit = data.likelihood.site_precision(ops)
    precision = data.likelihood.pull_site_precision(ops, in_unit / unit)
    likelihood = total(ops, at.likelihood, precision)
    return FactorGradient(W_bar, lower_symmetrised(ops, -_product(ops, W_bar, f.W)), likelihood)


# --- pieces ---------------------------------------------------------------------------------------


def lower_symmetrised(ops: Ops, H: Array) -> Array:
    """sym(Φ(H)): half of the lower triangle and its mirror image."""
    lower = 0.5 * ops.tril(H)
    return lower + ops.matrix_transpose(lower) - 0.5 * ops.eye(H.shape[-1]) * H


def _direct(at: AtBatch) -> Array:
    """W̄ with q(v) held."""
    return outer(at.m, at.alpha) + at.JWD


def _explained(ops: Ops, at: AtBatch) -> Array:
    """J² + JWD(JW)ᵀ."""
    return at.J @ at.J + _product(ops, at.JWD, at.JW)


def outer(x: Array, y: Array) -> Array:
    """xyᵀ [..., m, n] of x [..., m] and y [..., n]."""
    return x[..., :, None] * y[..., None, :]


def _product(ops: Ops, x: Array, y: Array) -> Array:
    """xyᵀ [..., M, M] of x and y [..., M, b]."""
    return x @ ops.matrix_transpose(y)


def paired(x: Array, y: Array) -> Array:
    """xyᵀ + yxᵀ [..., M, M] of x and y [..., M]."""
    return outer(x, y) + outer(y, x)


def over_latents(ops: Ops, bar: Array, kernels: int) -> Array:
    """The sum over latents [1, ...] where one kernel serves them all."""
    return ops.sum(bar, axis=0, keepdims=True) if kernels < bar.shape[0] else bar
