"""Kobe 2021: the best q in the diagonal family (claim 01), and formulas without K⁻¹ (claim 02)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from svgpbench.backends import load_backend, new_backend
from svgpbench.checks.bench import worst_of
from svgpbench.checks.cases import SmallProblem, build_model
from svgpbench.checks.dense.diagonal import moments
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench.cost import CountingBackend, Size, Tally, count
from svgpbench.likelihoods import Conditional, GaussianLikelihood, GaussianParameters
from svgpbench.methods import build_method
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.methods.registry import build_named
from svgpbench.numerics.gaussian import factor, log_determinant, matvec, prior
from svgpbench.ops import Array, Ops
from svgpbench_papers.algebra.objectives import dense_of
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    LOG_CONCAVE,
    SEEDS,
    Floats,
    Row,
    frame_over,
    positive_part,
)
from svgpbench_papers.kobe2021.algebra.cases import (
    converged_state,
    diagonal_bench,
    random_problem,
    random_state,
)

PRINTED_STEP = "diagonal-precision projected-b"
NOISE = 0.3
JITTER_OF_G = 1e-10
"""Number that the thesis adds to g; it is all that remains where g is 0."""


def best_of_all(dense: Dense) -> float:
    """Return the bound of the best Gaussian q, found by dense natural-gradient steps from the prior."""
    m, S = np.zeros((1, len(dense.K))), dense.K[None].copy()
    for _ in range(100):
        before = [m, S]
        m, S = dense.natural_step(m, S, 0.7)
        if worst_of(before, [m, S]) < 1e-8:
            break  # the error of the bound is then of the order of its square
    return dense.elbo(m, S)


def gap(check: str, likelihood: str, problem: SmallProblem, jitter: float) -> Row:
    """Return the gap in nats between the best q of the family and the best of all, and its smallest g."""
    b = diagonal_bench("exact", likelihood, problem, jitter)
    state = converged_state(b)
    shortfall = best_of_all(dense_of(b)) - float(b.bound(state, b.full))
    case = {"check": check, "likelihood": likelihood, "M": len(problem.Z), "jitter": jitter}
    return case | {"residual": abs(shortfall), "least_g": float(state.g.min())}


@frame_over(seed=SEEDS)
def best_q(seed: int) -> Iterator[Row]:
    """Return gaps in nats at Z = X, with jitter, duplicated rows and few Z (Kobe 2021, Sec. 3.1.2)."""
    small, few = random_problem(seed, n=8, M=4), random_problem(seed)
    data = replace(small, Z=small.X)
    twice = np.concatenate([small.X[:4], small.X[:4]])
    for likelihood in LIKELIHOODS:
        yield gap("Z = X", likelihood, data, 0.0)
        yield gap("Z = X with jitter", likelihood, data, 1e-6)
        yield gap("M < n", likelihood, few, 1e-6)
    for likelihood in LOG_CONCAVE:
        yield gap("Z = X, rows twice", likelihood, replace(small, X=twice, Z=twice), 1e-6)
    outlier = replace(data, y=data.y + 6.0 * (np.arange(8) == 0))
    far = gap("Z = X, an outlier", "student-t", outlier, 0.0)
    yield from (far, far | {"check": "negative g", "residual": positive_part(-far["least_g"])})


def printed_formulas(
    ops: Ops, K: Array, Kuf: Array, kff: Array, mu: Array, g: Array
) -> list[Array]:
    """Compute KL [], means and variances [P, b] of q(f) by Eqs. 3.6 (where the mean is K_nm μ) and 3.7."""
    # K + G⁻¹ needs every g > 0, and overflows as g falls to 0; I + LᵀGL does neither
    chol = ops.cholesky(K + ops.eye(K.shape[-1]) * (1.0 / g)[..., None])
    half = ops.solve_triangular(chol, K)
    trace = ops.sum(ops.diagonal(ops.solve_triangular(chol, half, transpose=True)))
    fit = ops.sum(mu * matvec(K, mu))
    # tr B⁻¹ − M = −tr (K + G⁻¹)⁻¹K and log|B| = log|K + G⁻¹| + log|G|
    kl = 0.5 * (fit - trace + ops.sum(log_determinant(ops, chol)) + ops.sum(ops.log(g)))
    thin = ops.solve_triangular(chol, Kuf)
    return [kl, ops.sum(Kuf * mu[..., None], axis=-2), kff - ops.sum(thin * thin, axis=-2)]


def formulas_of_the_method(
    ops: Ops, K: Array, Kuf: Array, kff: Array, mu: Array, g: Array
) -> list[Array]:
    """Compute KL, means and variances by the method's own code, which factorises K and B = I + LᵀGL."""
    f, family = factor(ops, prior(ops, K), Kuf, kff), build_method("diagonal-precision", {})
    q = family.factorise(ops, f, DiagonalState(mu, g, ops.zeros(()), ()))
    return [family.kl(ops, f, q), *family.marginals(ops, f, q)]


def formulas(seed: int) -> Iterator[Row]:
    """Compare the printed and our formulas with the dense q, and K + G⁻¹ for a negative entry of g."""
    dense = dense_of(diagonal_bench("exact", "gaussian", random_problem(seed)))
    state = random_state(seed, 8)
    (m,), (S,) = moments(dense.K, state.mu, state.g)
    mean, variance = dense.marginals(m, S)
    expected = [np.asarray(dense.kl(m, S)), mean[None], variance[None]]
    blocks = (dense.K[None], dense.Kuf[None], dense.kff[None], state.mu, state.g)
    ops = load_backend("numpy")
    # g ≤ 2 here: I + LᵀGL ⪰ 0.8 I, while K + G⁻¹ has a negative entry on its diagonal
    g = state.g[0] * np.where(np.arange(8) == 0, -0.1 / np.linalg.eigvalsh(dense.K)[-1], 1.0)
    values = np.linalg.eigvalsh(dense.K + np.diag(1 / g))
    for check, residual in (
        ("printed formulas", worst_of(printed_formulas(ops, *blocks), expected)),
        ("our formulas", worst_of(formulas_of_the_method(ops, *blocks), expected)),
        ("negative g", positive_part(-values[0] / values[-1])),
    ):
        yield {"check": check, "seed": seed, "residual": residual}


def ill_conditioned(
    seed: int, condition: float, g: float, M: int = 8, b: int = 16
) -> Iterator[Row]:
    """Return errors of KL, marginals and a step's target at K = Q diag(λ) Qᵀ and G = gI, exact by λ."""
    rng = np.random.default_rng(seed)
    values = np.logspace(0.0, -np.log10(condition), M)
    Q = np.linalg.qr(rng.standard_normal((M, M)))[0]
    A, mu = rng.standard_normal((M, b)), rng.standard_normal(M)  # A = K⁻¹K_ub
    K, Kuf = (Q * values) @ Q.T, (Q * values) @ (Q.T @ A)
    kff = np.sum(A * Kuf, axis=0) + 0.1
    # G = gI shares K's eigenvectors: sums over λ keep all digits at any condition
    shrunk = values / (1.0 + g * values)
    KL = np.sum(values * (Q.T @ mu) ** 2 - g * shrunk + np.log1p(g * values)) / 2
    variance = kff - np.sum((g * values * shrunk)[:, None] * (Q.T @ A) ** 2, axis=0)
    expected = [np.asarray(KL), (mu @ Kuf)[None], variance[None]]
    m, S = moments(K, mu, np.full(M, g))
    K_inv = np.linalg.inv(K)
    log_ratio = np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
    kl_with_inverse = 0.5 * (np.trace(K_inv @ S) + m @ K_inv @ m - M + log_ratio)
    ops = load_backend("numpy")
    blocks = (K[None], Kuf[None], kff[None], mu[None], np.full((1, M), g))
    for form, residual in (
        ("printed form", worst_of(printed_formulas(ops, *blocks), expected)),
        ("our form", worst_of(formulas_of_the_method(ops, *blocks), expected)),
        ("KL through K⁻¹", difference(kl_with_inverse, KL)),
        ("natural step", target_error(ops, K, Kuf, A)),
    ):
        row = {"check": f"{form}, cond K = {condition:.0e}", "residual": residual}
        yield row | {"seed": seed, "condition": condition, "g": g}


def target_error(ops: Ops, K: Floats, Kuf: Floats, A: Floats) -> float:
    """Return the relative error of g = diag(A diag(β) Aᵀ) after the printed step of rate 1 (Eq. 3.20)."""
    M, b = A.shape
    f = factor(ops, prior(ops, K[None]), Kuf[None], np.ones((1, b)))
    likelihood = Conditional(GaussianLikelihood(), GaussianParameters(np.float64(NOISE)))
    data = DataTerm(likelihood, np.zeros(b), np.arange(b), np.ones(()))
    start = DiagonalState(np.zeros((1, M)), np.ones((1, M)), np.zeros(()), ())
    stepped = build_named(PRINTED_STEP).e_step(ops, f, data, start, np.ones(()))
    return difference(stepped.g[0], np.sum(A * A, axis=1) / NOISE)


def one_cholesky() -> pd.DataFrame:
    """Compare Eqs. 3.5–3.7 with dense algebra, also at ill-conditioned K; count their Choleskys less 1."""
    M, n = 50, 100
    ops: CountingBackend = new_backend("counting")  # type: ignore[assignment]
    K, Kuf, kff, mu = (ops.zeros(x) for x in ((1, M, M), (1, M, n), (1, n), (1, M)))
    _, bound = ops.count(lambda: printed_formulas(ops, K, Kuf, kff, mu, mu))
    step = count(build_named(PRINTED_STEP), build_model("gaussian", "se"), Size(n=n, M=M, D=1))
    rows: list[Row] = [
        {"check": f"Choleskys of a {part}", "choleskys": k, "residual": float(k - 1)}
        for part, k in (("bound", Tally(*bound).choleskys), ("step", step.e_step.choleskys))
    ]
    for seed in SEEDS:
        rows += formulas(seed)
        for condition, g in itertools.product((1e6, 1e10, 1e14), (JITTER_OF_G, 1.0, 1e2)):
            rows += ill_conditioned(seed, condition, g)
    return pd.DataFrame(rows)
