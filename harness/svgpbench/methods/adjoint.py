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
    of_each,
    outer,
    outer_sum,
    over_latents,
    paired,
    summed_product,
    summed_square,
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

    m: Array  # [P, M]
    S: Array  # [P, M, M]


class DataSlopes(NamedTuple):
    """The gradient of the data term."""

    alpha: Array  # [P, b], sα
    beta: Array  # [P, b], sβ
    kff: Array  # [P, b], κ̄
    g: Array  # [P, M], sWα
    likelihood: Tree  # ∂/∂parameters of s Σ V


class Cross(NamedTuple):
    """Blocks of θ and a batch for an adjoint; W = L⁻¹Kuf is computed where it is needed."""

    L: Array  # [Q, M, M]
    Kuf: Array  # [Q, M, b]
    kff: Array  # [Q, b]


class GramGradient(NamedTuple):
    """The bound's gradient in the blocks, and the gradient of the data term, which includes κ̄."""

    cross: Array  # [Q, M, b], in K(Z, X)
    square: Array  # [Q, M, M], in K(Z, Z)
    slopes: DataSlopes


class AtBatch(NamedTuple):
    """q in whitened coordinates, and the gradient of the data term at q."""

    m: Array  # [P, M]
    W: Array  # [Q, M, b]
    J: Array  # [P, M, M], I − S
    JW: Array  # [P, M, b]
    direct: Array  # [P, M, b], JWD, or (J − 1 + v_i)WD where q(f|u) is narrower than p(f|u)
    slopes: DataSlopes
    taken: Array | None  # [P, b], 1 − v_i; None where q(f|u) = p(f|u)


def at_batch(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> AtBatch:
    """Compute the quantities that W̄ and H share."""
    W = ops.solve_triangular(f.L, f.Kuf)
    J = ops.eye(q.m.shape[-1]) - q.S
    JW = of_each(ops, J, W)
    taken, by = narrowing(ops, f, data, W)
    slopes = data_slopes(ops, data, q.m, W, f.kff - ops.sum(W * JW, axis=-2) - by, taken)
    direct = (JW if taken is None else JW - W * taken[..., None, :]) * slopes.beta[..., None, :]
    return AtBatch(q.m, W, J, JW, direct, slopes, taken)


def narrowing(ops: Ops, f: Cross, data: DataTerm, W: Array) -> tuple[Array | None, Array | float]:
    """Return 1 − v [P, b] and (1 − v)d, the reduction of variance; None and 0 if q(f|u) = p(f|u)."""
    if data.narrowing is None:
        return None, 0.0
    d = f.kff - ops.sum(W * W, axis=-2)
    taken = 1.0 - data.narrowing(ops, data.likelihood, d)
    by = taken * d
    return ops.broadcast_to(taken, by.shape), by


def data_slopes(
    ops: Ops, data: DataTerm, m: Array, W: Array, v: Array, taken: Array | None = None
) -> DataSlopes:
    """Return the data term's gradient at μ = Wᵀm and v [P, b]; `taken` is as in `narrowing`."""
    _, likelihood, alpha, beta = data.likelihood.expectations(ops, data.y, vecmat(m, W), v)
    alpha, beta = data.scale * alpha, data.scale * beta
    likelihood = tree_map(lambda bar: data.scale * bar, likelihood)
    kff = -0.5 * (beta if taken is None else (1.0 - taken) * beta)
    return DataSlopes(alpha, beta, kff, matvec(W, alpha), likelihood)


def unwhitened(ops: Ops, f: Cross, slopes: DataSlopes, W_bar: Array, square: Array) -> GramGradient:
    """Return the gradient in the blocks, given W̄ [Q, M, b] and sym(Φ(H)) [Q, M, M]."""
    cross = ops.solve_triangular(f.L, W_bar, transpose=True)
    return GramGradient(cross, unwhitened_precision(ops, f.L, square), slopes)


def pulled_back(
    ops: Ops, cov: DifferentiableCovariance, Z: Tree, X: Array, bar: GramGradient
) -> BoundGradient:
    """Return the gradient in the parameters and Z, given the gradient in the blocks."""
    kernels = leaves(cov.parameters)[0].shape[0]
    from_square = cov.pull_square(Z, bar.square)
    from_cross = cov.pull_cross(Z, X, bar.cross)
    from_diagonal = cov.pull_diagonal(X, over_latents(ops, bar.slopes.kff, kernels))
    return BoundGradient(
        total(ops, from_square.parameters, from_cross.parameters, from_diagonal),
        bar.slopes.likelihood,
        total(ops, from_square.basis, from_cross.basis),
    )


# --- gradients, by what is held fixed while θ moves ----------------------------------------------


def whitened_held(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with q(v) held: only W moves with L, and H = −W̄Wᵀ."""
    at = at_batch(ops, f, data, q)
    return _through_cross(ops, f, at.slopes, _direct(ops, f, at), at.W)


def factor_held(ops: Ops, f: Cross, data: DataTerm, m: Array, chol: Array) -> GramGradient:
    """Return the gradient with q(v) held, given the lower factor of S.

    S itself is not formed: JW = W − Rᵀ(RW) with R = cholᵀ.
    """
    W = ops.solve_triangular(f.L, f.Kuf)
    R = ops.matrix_transpose(chol)  # [P, M, M]
    RW = of_each(ops, R, W)
    taken, by = narrowing(ops, f, data, W)
    v = f.kff - ops.sum(W * W, axis=-2) + ops.sum(RW * RW, axis=-2) - by
    slopes = data_slopes(ops, data, m, W, v, taken)
    SWD = summed_product(ops, R, RW * slopes.beta[..., None, :], f.L.shape[0])
    own = over_latents(ops, -2.0 * slopes.kff[..., None, :], f.L.shape[0])  # v_i D
    W_bar = outer_sum(ops, m, slopes.alpha, f.L.shape[0]) + own * W - SWD
    return _through_cross(ops, f, slopes, W_bar, W)


def _through_cross(ops: Ops, f: Cross, slopes: DataSlopes, W_bar: Array, W: Array) -> GramGradient:
    """Return the gradient if only W moves with L: H = −W̄Wᵀ."""
    H = -_product(ops, W_bar, W)
    return unwhitened(ops, f, slopes, W_bar, lower_symmetrised(ops, H))


def posterior_held(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with q(u) held: H = X + Xᵀ − J + mmᵀ − gmᵀ − mgᵀ, X = WD(W/2 − JW)ᵀ."""
    at, kernels = at_batch(ops, f, data, q), f.L.shape[0]
    half = 0.5 * at.W if at.taken is None else (0.5 + 0.5 * at.taken[..., None, :]) * at.W
    half = (half - at.JW) * at.slopes.beta[..., None, :]
    X = _product(ops, at.W, over_latents(ops, half, kernels))
    rank = paired(at.m, 0.5 * at.m - at.slopes.g)
    H = X + ops.matrix_transpose(X) + over_latents(ops, rank - at.J, kernels)
    return unwhitened(ops, f, at.slopes, _direct(ops, f, at), 0.5 * H)


def projected_held(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with K⁻¹λ̄₁ and K⁻¹Λ̄₂K⁻¹ held.

    H = −J² − JWD(JW)ᵀ + m(h + m/2)ᵀ + (h + m/2)mᵀ, h = S(g − m) − g.
    """

    def beside(J: Array, g: Array) -> Array:
        rest = g - q.m
        h = rest - matvec(J, rest) - g
        return h + 0.5 * q.m

    return _explained(ops, f, data, q, beside)


def weights_held(ops: Ops, f: Cross, data: DataTerm, q: Whitened) -> GramGradient:
    """Return the gradient with K⁻¹m and S⁻¹ − K⁻¹ (of u) held: H = −(J² + JWD(JW)ᵀ + mmᵀ)."""
    return _explained(ops, f, data, q, lambda J, g: -0.5 * q.m)


def _explained(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    q: Whitened,
    beside: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient for H = −J² − JWD(JW)ᵀ + mxᵀ + xmᵀ with x = beside(J, g) [P, M]."""
    if data.narrowing is not None:
        return _explained_narrower(ops, f, data, q, beside)
    J = ops.eye(q.m.shape[-1]) - q.S
    W = ops.solve_triangular(f.L, f.Kuf)
    each = _explained_each if f.L.shape[0] == J.shape[0] else _explained_together
    return each(ops, f, data, q.m, J, W, beside)


def _explained_each(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    m: Array,
    J: Array,
    W: Array,
    beside: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient if every latent has its own kernel, by V = L⁻ᵀJ."""
    V = ops.solve_triangular(f.L, J, transpose=True)
    Y = V @ W
    slopes = data_slopes(ops, data, m, W, f.kff - ops.sum(f.Kuf * Y, axis=-2))
    YD = Y * slopes.beta[..., None, :]
    vectors = ops.concat([m[..., None], beside(J, slopes.g)[..., None]], axis=-1)
    vectors = ops.solve_triangular(f.L, vectors, transpose=True)
    a, x = vectors[..., 0], vectors[..., 1]
    rank = paired(a, x)
    square = 0.5 * (rank - symmetric_product(ops, V, V) - symmetric_product(ops, YD, Y))
    return GramGradient(YD + outer(a, slopes.alpha), square, slopes)


def _explained_together(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    m: Array,
    J: Array,
    W: Array,
    beside: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient if all latents share a kernel, by one H and one solve for all."""
    across, kernels = ops.matrix_transpose(W), f.L.shape[0]
    rows = across @ J  # [P, b, M], (JW)ᵀ
    slopes = data_slopes(ops, data, m, W, f.kff - ops.sum(across * rows, axis=-1))
    weighted = slopes.beta[..., None] * rows
    direct = ops.matrix_transpose(over_latents(ops, weighted, kernels))
    rank = outer_sum(ops, m, beside(J, slopes.g), kernels)
    H = (
        rank
        + ops.matrix_transpose(rank)
        - summed_square(ops, J, J, kernels)
        - summed_square(ops, weighted, rows, kernels)
    )
    W_bar = direct + outer_sum(ops, m, slopes.alpha, f.L.shape[0])
    return unwhitened(ops, f, slopes, W_bar, 0.5 * H)


def _explained_narrower(
    ops: Ops,
    f: Cross,
    data: DataTerm,
    q: Whitened,
    beside: Callable[[Array, Array], Array],
) -> GramGradient:
    """Return the gradient of `_explained` if q(f|u) is narrower than p(f|u).

    By W(tDt)Wᵀ − JWD(JW)ᵀ = sym((tW − JW)D(tW + JW)ᵀ), t² = 1 − v_i, the gradient in K(Z, Z) takes no
    further product over the batch. The gradient in K(Z, X) takes a solve.
    """
    at = at_batch(ops, f, data, q)
    assert at.taken is not None
    t = at.W * ops.sqrt(ops.maximum(at.taken, 0.0))[..., None, :]
    X = _product(ops, (t - at.JW) * at.slopes.beta[..., None, :], t + at.JW)
    H = 0.5 * (X + ops.matrix_transpose(X)) - at.J @ at.J + paired(at.m, beside(at.J, at.slopes.g))
    H = over_latents(ops, H, f.L.shape[0])
    return unwhitened(ops, f, at.slopes, _direct(ops, f, at), 0.5 * H)


class DualGradient(NamedTuple):
    """The bound's gradient in c = S⁻¹m and C = S⁻¹ − I."""

    c: Array  # [P, M]
    C: Array  # [P, M, M], symmetric


def dual_gradient(ops: Ops, at: AtBatch) -> DualGradient:
    """Compute c̄ = S(g − m) and C̄ = −½S(C − WDWᵀ)S − sym(c̄mᵀ), where SCS = J − J²."""
    rest = at.slopes.g - at.m
    c = rest - matvec(at.J, rest)
    SW = at.W - at.JW
    SPS = _product(ops, SW * at.slopes.beta[..., None, :], SW)
    return DualGradient(c, 0.5 * (SPS - at.J + at.J @ at.J - paired(c, at.m)))


def sums_held(ops: Ops, f: Cross, data: DataTerm, q: Whitened, c: Array, C: Array) -> GramGradient:
    """Return the gradient with λ̄₁ and Λ̄₂ held: H = −2C̄C − c̄cᵀ − W̄Wᵀ."""
    at = at_batch(ops, f, data, q)
    bar, W_bar = dual_gradient(ops, at), _direct(ops, f, at)
    own = over_latents(ops, -2.0 * (bar.C @ C) - outer(bar.c, c), f.L.shape[0])
    H = own - _product(ops, W_bar, at.W)
    return unwhitened(ops, f, at.slopes, W_bar, lower_symmetrised(ops, H))


def sites_held(
    ops: Ops, f: Cross, data: DataTerm, q: Whitened, lambda1: Array, beta: Array
) -> GramGradient:
    """Return the gradient with every site (λ₁, β) [P, n] held, divided by the likelihood's precision.

    W̄ has the further terms 2C̄W diag β + c̄λ₁ᵀ.
    """
    at = at_batch(ops, f, data, q)
    bar = dual_gradient(ops, at)
    CW = bar.C @ at.W
    through = 2.0 * CW * beta[..., None, :] + outer(bar.c, lambda1)
    W_bar = _direct(ops, f, at) + over_latents(ops, through, f.L.shape[0])
    in_unit = ops.sum(beta * ops.sum(at.W * CW, axis=-2)) + ops.sum(lambda1 * vecmat(bar.c, at.W))
    unit = data.likelihood.site_precision(ops)
    precision = data.likelihood.pull_site_precision(ops, in_unit / unit)
    slopes = at.slopes._replace(likelihood=total(ops, at.slopes.likelihood, precision))
    return _through_cross(ops, f, slopes, W_bar, at.W)


def _direct(ops: Ops, f: Cross, at: AtBatch) -> Array:
    """Return W̄ [Q, M, b] with q(v) held."""
    kernels = f.L.shape[0]
    return outer_sum(ops, at.m, at.slopes.alpha, kernels) + over_latents(ops, at.direct, kernels)


def _product(ops: Ops, x: Array, y: Array) -> Array:
    """Return xyᵀ [..., M, M] of x and y [..., M, b]."""
    return x @ ops.matrix_transpose(y)
