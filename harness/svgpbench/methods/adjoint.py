"""Closed-form gradients of the bound in the blocks of the Gram matrix, for M-steps.

The bound depends on K(Z, Z) through its factor L, and on the rest of θ through W = L⁻¹K(Z, X), κ and the
likelihood's parameters. Let W̄ be its gradient in W with q's coordinates held. Let H = LᵀL̄, where L̄ is
its gradient in L, with W moving with L. Then K̄(Z, X) = L⁻ᵀW̄ and K̄(Z, Z) = L⁻ᵀ sym(Φ(H)) L⁻¹, where Φ
takes the lower triangle and halves its diagonal (Murray 2016, arXiv:1602.07527). No Cholesky factor is
differentiated. If the bound depends on L through K alone, H is symmetric and sym(Φ(H)) = H/2.

In whitened coordinates q(v) = N(m, S), with J = I − S, D = diag(sβ) and g = sWα,

    μ = Wᵀm,   v = κ − diag(WᵀJW),   W̄ = m(sα)ᵀ + JWD,   κ̄ = −sβ/2,

so JW is used three times. How m and S move with L depends on what the M-step holds fixed; only this
differs between methods. If q(f|u) is narrower than p(f|u), v is smaller by (1 − v_i)d_i with
d = κ − diag(WᵀW) (see `residual_variance.py`). Then W̄ has the further term −W diag(1 − v_i)D, κ̄ is
−v_isβ/2, and H has the further term W diag(1 − v_i)DWᵀ.

If H is −J² − JWD(JW)ᵀ plus outer products of vectors, V = L⁻ᵀJ and Y = VW can replace J and JW:
v = κ − diag(K(X, Z)Y), K̄(Z, X) contains YD, K̄(Z, Z) contains −½(VVᵀ + YDYᵀ), and one solve against L
replaces three. The rounding error of each form grows with the condition number of L, not of K.
(L⁻ᵀJL⁻¹)K(Z, X), which needs no W, would be less accurate: by 1.5 digits at a condition number of 1e8.

Latents that share a kernel share L and W, and the kernel needs only the sum of their gradients. So W̄ and
H are summed over latents before any solve against L, by products of arrays in which latents are stacked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float

from svgpbench.kernels.pullback import DifferentiableCovariance, total
from svgpbench.methods.data_term import DataTerm
from svgpbench.numerics.gaussian import (
    matvec,
    symmetric_product,
    unwhitened_precision,
    vecmat,
)
from svgpbench.numerics.latents import (
    lower_symmetrised,
    outer,
    outer_sum,
    sum_shared,
    summed_product,
    summed_square,
    symmetric_outer,
    times_shared,
)
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import leaves, tree_map


class BoundGradient(NamedTuple):
    """The bound's gradient in kernel parameters, likelihood parameters and inducing inputs."""

    kernel: Tree
    likelihood: Tree
    inducing: Tree


class Whitened(NamedTuple):
    """q(v) = N(m, S) of the whitened u = Lv."""

    m: Float[Array, "P M"]
    S: Float[Array, "P M M"]


class DataSlopes(NamedTuple):
    """The gradient of the data term."""

    alpha: Float[Array, "P b"]  # sα
    beta: Float[Array, "P b"]  # sβ
    kff: Float[Array, "P b"]  # κ̄
    g: Float[Array, "P M"]  # sWα
    likelihood: Tree  # ∂/∂parameters of s Σ V


class Cross(NamedTuple):
    """Blocks of θ and a batch for an adjoint; W = L⁻¹Kuf is computed where it is needed."""

    L: Float[Array, "Q M M"]
    Kuf: Float[Array, "Q M b"]
    kff: Float[Array, "Q b"]


class GramGradient(NamedTuple):
    """The bound's gradient in the blocks, and the gradient of the data term, which includes κ̄."""

    cross: Float[Array, "Q M b"]  # in K(Z, X)
    square: Float[Array, "Q M M"]  # in K(Z, Z)
    slopes: DataSlopes


class BatchTerms(NamedTuple):
    """q in whitened coordinates, and the gradient of the data term at q."""

    m: Float[Array, "P M"]
    W: Float[Array, "Q M b"]
    J: Float[Array, "P M M"]  # I − S
    JW: Float[Array, "P M b"]
    direct: Float[Array, "P M b"]  # JWD, or (J − 1 + v_i)WD where q(f|u) is narrower than p(f|u)
    slopes: DataSlopes
    removed_fraction: Float[Array, "P b"] | None  # 1 − v_i; None where q(f|u) = p(f|u)


def batch_terms(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> BatchTerms:
    """Compute the quantities that W̄ and H share."""
    W = ops.solve_triangular(f.L, f.Kuf)
    J = ops.eye(q.m.shape[-1]) - q.S
    JW = times_shared(ops, J, W)
    fraction, removed = removed_variance(ops, f, data, W)
    slopes = data_slopes(ops, data, q.m, W, f.kff - ops.sum(W * JW, axis=-2) - removed, fraction)
    direct = JW if fraction is None else JW - W * fraction[..., None, :]
    return BatchTerms(q.m, W, J, JW, direct * slopes.beta[..., None, :], slopes, fraction)


def removed_variance(
    ops: Ops, f: Cross, data: DataTerm, W: Float[Array, "Q M b"]
) -> tuple[Float[Array, "P b"] | None, Float[Array, "P b"] | float]:
    """Return 1 − v and (1 − v)d, the reduction of variance; None and 0 if q(f|u) = p(f|u)."""
    if data.residual_scale is None:
        return None, 0.0
    d = f.kff - ops.sum(W * W, axis=-2)
    fraction = 1.0 - data.residual_scale(ops, data.likelihood, d)
    removed = fraction * d
    return ops.broadcast_to(fraction, removed.shape), removed


def data_slopes(
    ops: Ops,
    data: DataTerm,
    m: Float[Array, "P M"],
    W: Float[Array, "Q M b"],
    v: Float[Array, "P b"],
    removed_fraction: Float[Array, "P b"] | None = None,
) -> DataSlopes:
    """Return the data term's gradient at μ = Wᵀm and v; `removed_fraction` is 1 − v_i."""
    _, likelihood, alpha, beta = data.likelihood.expectations(ops, data.y, vecmat(m, W), v)
    alpha, beta = data.scale * alpha, data.scale * beta
    likelihood = tree_map(lambda bar: data.scale * bar, likelihood)
    kff = -0.5 * (beta if removed_fraction is None else (1.0 - removed_fraction) * beta)
    return DataSlopes(alpha, beta, kff, matvec(W, alpha), likelihood)


def unwhitened(
    ops: Ops,
    f: Cross,
    slopes: DataSlopes,
    W_bar: Float[Array, "Q M b"],
    square: Float[Array, "Q M M"],
) -> GramGradient:
    """Return the gradient in the blocks, given W̄ and sym(Φ(H))."""
    cross = ops.solve_triangular(f.L, W_bar, transpose=True)
    return GramGradient(cross, unwhitened_precision(ops, f.L, square), slopes)


def pull_back(
    ops: Ops, cov: DifferentiableCovariance, Z: Tree, X: Float[Array, "b D"], bar: GramGradient
) -> BoundGradient:
    """Return the gradient in the parameters and Z, given the gradient in the blocks."""
    kernels = leaves(cov.parameters)[0].shape[0]
    from_square = cov.pull_square(Z, bar.square)
    from_cross = cov.pull_cross(Z, X, bar.cross)
    from_diagonal = cov.pull_diagonal(X, sum_shared(ops, bar.slopes.kff, kernels))
    return BoundGradient(
        total(ops, from_square.parameters, from_cross.parameters, from_diagonal),
        bar.slopes.likelihood,
        total(ops, from_square.basis, from_cross.basis),
    )


# --- gradients, by what is held fixed while θ moves ----------------------------------------------


def grad_fixed_whitened(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with q(v) held: only W moves with L, and H = −W̄Wᵀ."""
    terms = batch_terms(ops, f, data, q)
    return _through_cross(ops, f, terms.slopes, _direct(ops, f, terms), terms.W)


def grad_fixed_factor(
    ops: Ops, f: Cross, data: DataTerm, m: Float[Array, "P M"], chol: Float[Array, "P M M"]
) -> GramGradient:
    """Return the gradient with q(v) held, given the lower factor of S.

    S itself is not formed: JW = W − Rᵀ(RW) with R = cholᵀ.
    """
    W = ops.solve_triangular(f.L, f.Kuf)
    R = ops.matrix_transpose(chol)  # [P, M, M]
    RW = times_shared(ops, R, W)
    fraction, removed = removed_variance(ops, f, data, W)
    v = f.kff - ops.sum(W * W, axis=-2) + ops.sum(RW * RW, axis=-2) - removed
    slopes = data_slopes(ops, data, m, W, v, fraction)
    # W̄ = (J − 1 + v_i)WD + … = v_iWD − SWD + …: weights of a shared W are summed before its
    # product
    SWD = summed_product(ops, R, RW * slopes.beta[..., None, :], f.L.shape[0])
    scaled_beta = sum_shared(ops, -2.0 * slopes.kff[..., None, :], f.L.shape[0])  # v_i D
    W_bar = outer_sum(ops, m, slopes.alpha, f.L.shape[0]) + scaled_beta * W - SWD
    return _through_cross(ops, f, slopes, W_bar, W)


def _through_cross(
    ops: Ops, f: Cross, slopes: DataSlopes, W_bar: Float[Array, "Q M b"], W: Float[Array, "Q M b"]
) -> GramGradient:
    """Return the gradient if only W moves with L: H = −W̄Wᵀ."""
    # W = L⁻¹K(Z, X) gives dW = −L⁻¹dL W, so L̄ = −L⁻ᵀW̄Wᵀ and H = LᵀL̄ = −W̄Wᵀ
    H = -_product(ops, W_bar, W)
    # H is not symmetric where L matters beyond K = LLᵀ, as it does if q(v) is held: not H/2
    return unwhitened(ops, f, slopes, W_bar, lower_symmetrised(ops, H))


def grad_fixed_posterior(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with q(u) held: H = X + Xᵀ − J + mmᵀ − gmᵀ − mgᵀ, X = WD(W/2 − JW)ᵀ."""
    terms, kernels = batch_terms(ops, f, data, q), f.L.shape[0]
    half = 0.5 * terms.W
    if terms.removed_fraction is not None:
        half = (0.5 + 0.5 * terms.removed_fraction[..., None, :]) * terms.W
    half = (half - terms.JW) * terms.slopes.beta[..., None, :]
    X = _product(ops, terms.W, sum_shared(ops, half, kernels))
    rank = symmetric_outer(terms.m, 0.5 * terms.m - terms.slopes.g)
    H = X + ops.matrix_transpose(X) + sum_shared(ops, rank - terms.J, kernels)
    return unwhitened(ops, f, terms.slopes, _direct(ops, f, terms), 0.5 * H)


def grad_fixed_projected(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with K⁻¹λ̄₁ and K⁻¹Λ̄₂K⁻¹ held.

    H = −J² − JWD(JW)ᵀ + m(h + m/2)ᵀ + (h + m/2)mᵀ, h = S(g − m) − g.
    """

    def x_of(J: Float[Array, "P M M"], g: Float[Array, "P M"]) -> Float[Array, "P M"]:
        gap = g - q.m
        h = gap - matvec(J, gap) - g
        return h + 0.5 * q.m

    return _grad_explained(ops, f, data, q, x_of)


def grad_fixed_weights(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with K⁻¹m and S⁻¹ − K⁻¹ (of u) held: H = −(J² + JWD(JW)ᵀ + mmᵀ)."""
    return _grad_explained(ops, f, data, q, lambda J, g: -0.5 * q.m)


def _grad_explained(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    q: Whitened,
    x_of: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient for H = −J² − JWD(JW)ᵀ + mxᵀ + xmᵀ with x = x_of(J, g)."""
    if data.residual_scale is not None:
        return _grad_explained_scaled(ops, f, data, q, x_of)
    J = ops.eye(q.m.shape[-1]) - q.S
    W = ops.solve_triangular(f.L, f.Kuf)
    # V = L⁻ᵀJ takes a solve per latent; latents that share L need one solve of their summed H
    # instead
    grad = _grad_explained_separate if f.L.shape[0] == J.shape[0] else _grad_explained_shared
    return grad(ops, f, data, q.m, J, W, x_of)


def _grad_explained_separate(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    m: Float[Array, "P M"],
    J: Float[Array, "P M M"],
    W: Float[Array, "Q M b"],
    x_of: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient if every latent has its own kernel, by V = L⁻ᵀJ."""
    V = ops.solve_triangular(f.L, J, transpose=True)
    Y = V @ W
    slopes = data_slopes(ops, data, m, W, f.kff - ops.sum(f.Kuf * Y, axis=-2))
    YD = Y * slopes.beta[..., None, :]
    vectors = ops.concat([m[..., None], x_of(J, slopes.g)[..., None]], axis=-1)
    vectors = ops.solve_triangular(f.L, vectors, transpose=True)
    a, x = vectors[..., 0], vectors[..., 1]
    rank = symmetric_outer(a, x)
    square = 0.5 * (rank - symmetric_product(ops, V, V) - symmetric_product(ops, YD, Y))
    return GramGradient(YD + outer(a, slopes.alpha), square, slopes)


def _grad_explained_shared(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    m: Float[Array, "P M"],
    J: Float[Array, "P M M"],
    W: Float[Array, "Q M b"],
    x_of: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient if all latents share a kernel, by one H and one solve for all."""
    # rows of a batch first: those of all latents stack to [P·b, M], and one product sums over
    # latents
    across, kernels = ops.matrix_transpose(W), f.L.shape[0]
    rows = across @ J  # [P, b, M], (JW)ᵀ
    slopes = data_slopes(ops, data, m, W, f.kff - ops.sum(across * rows, axis=-1))
    weighted = slopes.beta[..., None] * rows
    direct = ops.matrix_transpose(sum_shared(ops, weighted, kernels))
    rank = outer_sum(ops, m, x_of(J, slopes.g), kernels)
    H = (
        rank
        + ops.matrix_transpose(rank)
        - summed_square(ops, J, J, kernels)
        - summed_square(ops, weighted, rows, kernels)
    )
    W_bar = direct + outer_sum(ops, m, slopes.alpha, f.L.shape[0])
    return unwhitened(ops, f, slopes, W_bar, 0.5 * H)


def _grad_explained_scaled(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    q: Whitened,
    x_of: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient of `_grad_explained` if q(f|u) is narrower than p(f|u).

    By W(tDt)Wᵀ − JWD(JW)ᵀ = sym((tW − JW)D(tW + JW)ᵀ), t² = 1 − v_i, the gradient in K(Z, Z) takes no
    further product over the batch. The gradient in K(Z, X) takes a solve.
    """
    terms = batch_terms(ops, f, data, q)
    assert terms.removed_fraction is not None
    # rounding may leave d_i and so 1 − v_i just below 0, where u determines f_i; its root would be
    # NaN
    t = terms.W * ops.sqrt(ops.maximum(terms.removed_fraction, 0.0))[..., None, :]
    X = _product(ops, (t - terms.JW) * terms.slopes.beta[..., None, :], t + terms.JW)
    H = (
        0.5 * (X + ops.matrix_transpose(X))
        - terms.J @ terms.J
        + symmetric_outer(terms.m, x_of(terms.J, terms.slopes.g))
    )
    H = sum_shared(ops, H, f.L.shape[0])
    return unwhitened(ops, f, terms.slopes, _direct(ops, f, terms), 0.5 * H)


class DualGradient(NamedTuple):
    """The bound's gradient in c = S⁻¹m and C = S⁻¹ − I."""

    c: Float[Array, "P M"]
    C: Float[Array, "P M M"]  # symmetric


def dual_gradient(ops: Ops, terms: BatchTerms) -> DualGradient:
    """Compute c̄ = S(g − m) and C̄ = −½S(C − WDWᵀ)S − sym(c̄mᵀ), where SCS = J − J²."""
    gap = terms.slopes.g - terms.m
    c = gap - matvec(terms.J, gap)
    SW = terms.W - terms.JW
    SPS = _product(ops, SW * terms.slopes.beta[..., None, :], SW)
    return DualGradient(c, 0.5 * (SPS - terms.J + terms.J @ terms.J - symmetric_outer(c, terms.m)))


def grad_fixed_sums(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    q: Whitened,
    c: Float[Array, "P M"],
    C: Float[Array, "P M M"],
) -> GramGradient:
    """Return the gradient with λ̄₁ and Λ̄₂ held: H = −2C̄C − c̄cᵀ − W̄Wᵀ."""
    terms = batch_terms(ops, f, data, q)
    bar, W_bar = dual_gradient(ops, terms), _direct(ops, f, terms)
    # with λ̄₁ and Λ̄₂ held, dc = −L⁻¹dL c and dC = −L⁻¹dL C − (L⁻¹dL C)ᵀ
    dual = sum_shared(ops, -2.0 * (bar.C @ C) - outer(bar.c, c), f.L.shape[0])
    H = dual - _product(ops, W_bar, terms.W)
    return unwhitened(ops, f, terms.slopes, W_bar, lower_symmetrised(ops, H))


def grad_fixed_sites(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    q: Whitened,
    lambda1: Float[Array, "P n"],
    beta: Float[Array, "P n"],
) -> GramGradient:
    """Return the gradient with every site (λ₁, β) held, divided by the likelihood's precision.

    W̄ has the further terms 2C̄W diag β + c̄λ₁ᵀ.
    """
    terms = batch_terms(ops, f, data, q)
    bar = dual_gradient(ops, terms)
    CW = bar.C @ terms.W
    through = 2.0 * CW * beta[..., None, :] + outer(bar.c, lambda1)
    W_bar = _direct(ops, f, terms) + sum_shared(ops, through, f.L.shape[0])
    # sites are proportional to u, the likelihood's precision: u ∂/∂u = Σ(β_i ∂/∂β_i + λ₁ᵢ ∂/∂λ₁ᵢ),
    # where ∂/∂β_i = w_iᵀC̄w_i and ∂/∂λ₁ᵢ = c̄ᵀw_i
    in_unit = ops.sum(beta * ops.sum(terms.W * CW, axis=-2)) + ops.sum(
        lambda1 * vecmat(bar.c, terms.W)
    )
    unit = data.likelihood.site_precision(ops)
    precision = data.likelihood.pull_site_precision(ops, in_unit / unit)
    slopes = terms.slopes._replace(likelihood=total(ops, terms.slopes.likelihood, precision))
    return _through_cross(ops, f, slopes, W_bar, terms.W)


def _direct(ops: Ops, f: Cross, terms: BatchTerms) -> Float[Array, "Q M b"]:
    """Return W̄ with q(v) held."""
    kernels = f.L.shape[0]
    # ∂V_i/∂w_i = α_i m − ½β_i ∂v_i/∂w_i, and v_i = κ_i − w_iᵀJw_i gives ∂v_i/∂w_i = −2Jw_i
    return outer_sum(ops, terms.m, terms.slopes.alpha, kernels) + sum_shared(
        ops, terms.direct, kernels
    )


def _product(
    ops: Ops, x: Float[Array, "... M b"], y: Float[Array, "... M b"]
) -> Float[Array, "... M M"]:
    """Return xyᵀ."""
    return x @ ops.matrix_transpose(y)
