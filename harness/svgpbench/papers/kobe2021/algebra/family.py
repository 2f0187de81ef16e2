"""Kobe 2021: the best q in the diagonal family (claim 01), and formulas without K⁻¹ (claim 02)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.checks.cases import Problem, build_model
from svgpbench.checks.dense.diagonal import moments
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench.cost import CountingBackend, Size, Tally, count
from svgpbench.likelihoods import Conditional, GaussianLikelihood, GaussianParameters
from svgpbench.methods import build_method
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.numerics.gaussian import factor, log_determinant, matvec, prior
from svgpbench.ops import Array, Ops
from svgpbench.papers.algebra.random_problems import LIKELIHOODS, LOG_CONCAVE, SEEDS, Floats
from svgpbench.papers.kobe2021.algebra.cases import (
    Rows,
    at_the_data,
    dense,
    diagonal,
    random_problem,
    random_state,
    settled,
)
from svgpbench.plugins import load_backend, new_backend

PRINTED_STEP: tuple[str, dict[str, Any]] = ("diagonal-precision", {"optimiser": "projected-b"})
NOISE = 0.3
JITTER_OF_G = 1e-10
"""Number that the thesis adds to g; it is all that remains where g is 0."""

# --- 01: the best q ----------------------------------------------------------------------------------


def best_of_all(judge: Dense, steps: int = 100) -> float:
    """Return the bound of the best Gaussian q, found by dense natural-gradient steps from the prior."""
    m, S = np.zeros((1, len(judge.K))), judge.K[None].copy()
    for _ in range(steps):
        before = m, S
        m, S = judge.natural_step(m, S, 0.7)
        if max(difference(x, y) for x, y in zip(before, (m, S), strict=True)) < 1e-8:
            break  # the error of the bound is then of the order of its square
    return judge.elbo(m, S)


def gap(check: str, likelihood: str, seed: int, problem: Problem, jitter: float) -> dict[str, Any]:
    """Return the gap in nats between the best q of the family and the best of all, and its smallest g."""
    b = diagonal("exact", likelihood, problem, jitter)
    state = settled(b)
    short = best_of_all(dense(likelihood, problem, jitter)) - float(b.bound(state, b.full))
    named = {"check": check, "likelihood": likelihood, "seed": seed, "M": len(problem.Z)}
    return named | {"jitter": jitter, "residual": abs(short), "least_g": float(state.g.min())}


def twice(problem: Problem) -> Problem:
    """Replace the second half of the inputs by the first half; the targets stay."""
    half = problem.X[: len(problem.X) // 2]
    return replace(problem, X=np.concatenate([half, half]))


def with_outlier(problem: Problem) -> Problem:
    """Move the first target far from the others."""
    return replace(problem, y=problem.y + 6.0 * (np.arange(len(problem.y)) == 0))


def best_q() -> pd.DataFrame:
    """Return gaps in nats at Z = X, with jitter, duplicated rows and few Z (Kobe 2021, Sec. 3.1.2)."""
    rows: Rows = []
    for seed in SEEDS:
        small = random_problem(seed, n=8, M=4)
        data, few = at_the_data(small), random_problem(seed)
        for likelihood in LIKELIHOODS:
            rows += [
                gap("Z = X", likelihood, seed, data, 0.0),
                gap("Z = X with jitter", likelihood, seed, data, 1e-6),
                gap("M < n", likelihood, seed, few, 1e-6),
            ]
        rows += [
            gap("Z = X, rows twice", likelihood, seed, at_the_data(twice(small)), 1e-6)
            for likelihood in LOG_CONCAVE
        ]
        far = gap("Z = X, an outlier", "student-t", seed, at_the_data(with_outlier(small)), 0.0)
        negative = far | {"check": "negative g", "residual": max(0.0, -far["least_g"])}
        rows += [far, negative]
    return pd.DataFrame(rows)


# --- 02: one Cholesky factor ---------------------------------------------------------------------------


def printed(
    ops: Ops, K: Array, Kuf: Array, kff: Array, mu: Array, g: Array
) -> tuple[Array, Array, Array]:
    """Compute KL [], and means and variances [P, b] of q(f), from the Cholesky factor of K + G⁻¹.

    Source: Kobe 2021, Eqs. 3.6 (where the mean is K_nm μ) and 3.7.
    """
    chol = ops.cholesky(K + ops.eye(K.shape[-1]) * (1.0 / g)[..., None])
    half = ops.solve_triangular(chol, K)
    trace = ops.sum(ops.diagonal(ops.solve_triangular(chol, half, transpose=True)))
    fit = ops.sum(mu * matvec(K, mu))
    kl = 0.5 * (fit - trace + ops.sum(log_determinant(ops, chol)) + ops.sum(ops.log(g)))
    thin = ops.solve_triangular(chol, Kuf)
    return kl, ops.sum(Kuf * mu[..., None], axis=-2), kff - ops.sum(thin * thin, axis=-2)


def ours(
    ops: Ops, K: Array, Kuf: Array, kff: Array, mu: Array, g: Array
) -> tuple[Array, Array, Array]:
    """Compute KL, means and variances by the method's own code, which factorises K and B = I + LᵀGL."""
    f, family = factor(ops, prior(ops, K), Kuf, kff), build_method("diagonal-precision", {})
    q = family.factorise(ops, f, DiagonalState(mu, g, ops.zeros(()), ()))
    mean, variance = family.marginals(ops, f, q)
    return family.kl(ops, f, q), mean, variance


def worst(found: tuple[Array, Array, Array], wanted: tuple[Array, Array, Array]) -> float:
    """Return the largest relative difference of KL, means and variances."""
    return max(difference(a, b) for a, b in zip(found, wanted, strict=True))


def formulas(seed: int) -> Rows:
    """Compare the printed and our formulas with the dense q.

    The check "negative g" is how far K + G⁻¹ is from positive definite if one entry of g is negative.
    """
    problem = random_problem(seed)
    judge, state = dense("gaussian", problem), random_state(seed, 8)
    (m,), (S,) = moments(judge.K, state.mu, state.g)
    mean, variance = judge.marginals(m, S)
    wanted = (judge.kl(m, S), mean[None], variance[None])
    blocks = (judge.K[None], judge.Kuf[None], judge.kff[None], state.mu, state.g)
    ops = load_backend("numpy")
    g = state.g[0] * np.where(np.arange(8) == 0, -0.1 / np.linalg.eigvalsh(judge.K)[-1], 1.0)
    values = np.linalg.eigvalsh(judge.K + np.diag(1 / g))
    return [
        {
            "check": "printed formulas",
            "seed": seed,
            "residual": worst(printed(ops, *blocks), wanted),
        },
        {"check": "our formulas", "seed": seed, "residual": worst(ours(ops, *blocks), wanted)},
        {"check": "negative g", "seed": seed, "residual": max(0.0, -values[0] / values[-1])},
    ]


def ill_conditioned(seed: int, condition: float, g: float, M: int = 8, b: int = 16) -> Rows:
    """Return the errors of KL, marginals and the target of a step at K = Q diag(λ) Qᵀ and G = gI.

    The exact values follow from λ.
    """
    rng = np.random.default_rng(seed)
    values = np.logspace(0.0, -np.log10(condition), M)
    Q = np.linalg.qr(rng.standard_normal((M, M)))[0]
    A, mu = rng.standard_normal((M, b)), rng.standard_normal(M)  # A = K⁻¹K_ub
    K, Kuf = (Q * values) @ Q.T, (Q * values) @ (Q.T @ A)
    kff = np.sum(A * Kuf, axis=0) + 0.1
    shrunk = values / (1.0 + g * values)
    KL = np.sum(values * (Q.T @ mu) ** 2 - g * shrunk + np.log1p(g * values)) / 2
    variance = kff - np.sum((g * values * shrunk)[:, None] * (Q.T @ A) ** 2, axis=0)
    wanted = (KL, (mu @ Kuf)[None], variance[None])
    gs = np.full((1, M), g)
    ops, blocks = load_backend("numpy"), (K[None], Kuf[None], kff[None], mu[None], gs)
    residuals = {
        "printed form": worst(printed(ops, *blocks), wanted),
        "our form": worst(ours(ops, *blocks), wanted),
        "KL through K⁻¹": difference(kl_with_inverse(K, mu, g), KL),
        "natural step": target_error(ops, K, Kuf, A),
    }
    named = {"seed": seed, "condition": condition, "g": g}
    return [
        named | {"check": f"{form}, cond K = {condition:.0e}", "residual": residual}
        for form, residual in residuals.items()
    ]


def kl_with_inverse(K: Floats, mu: Floats, g: float) -> float:
    """Compute the KL of N(Kμ, S) by the formula in m and S, with an explicit K⁻¹."""
    m, S = moments(K, mu, np.full(len(mu), g))
    K_inv = np.linalg.inv(K)
    log_ratio = np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
    return float(0.5 * (np.trace(K_inv @ S) + m @ K_inv @ m - len(m) + log_ratio))


def target_error(ops: Ops, K: Floats, Kuf: Floats, A: Floats) -> float:
    """Return the relative error of g = diag(A diag(β) Aᵀ) after the printed step of rate 1 (Eq. 3.20)."""
    M, b = A.shape
    f = factor(ops, prior(ops, K[None]), Kuf[None], np.ones((1, b)))
    likelihood = Conditional(GaussianLikelihood(), GaussianParameters(np.float64(NOISE)))
    data = DataTerm(likelihood, np.zeros(b), np.arange(b), np.ones(()))
    start = DiagonalState(np.zeros((1, M)), np.ones((1, M)), np.zeros(()), ())
    found = build_method(*PRINTED_STEP).e_step(ops, f, data, start, np.ones(()))
    return difference(found.g[0], np.sum(A * A, axis=1) / NOISE)


def cholesky_counts(M: int = 50, b: int = 100) -> Rows:
    """Count the Cholesky factors of a printed bound and of an E-step; the residual is the count less 1."""
    ops: CountingBackend = new_backend("counting")  # type: ignore[assignment]
    K, Kuf, kff, mu = (ops.zeros(x) for x in ((1, M, M), (1, M, b), (1, b), (1, M)))
    _, bound = ops.count(lambda: printed(ops, K, Kuf, kff, mu, mu))
    model, size = build_model("gaussian", "se"), Size(n=b, M=M, D=1)
    step = count(build_method(*PRINTED_STEP), model, size)
    counts = {"of a bound": Tally(*bound).choleskys, "of a step": step.e_step.choleskys}
    return [
        {"check": f"Choleskys {of}", "choleskys": k, "residual": float(k - 1)}
        for of, k in counts.items()
    ]


def one_cholesky() -> pd.DataFrame:
    """Compare Eqs. 3.5–3.7 with dense algebra, also at ill-conditioned K, and count their Choleskys."""
    rows: Rows = cholesky_counts()
    for seed in SEEDS:
        rows += formulas(seed)
        for condition in (1e6, 1e10, 1e14):
            for g in (JITTER_OF_G, 1.0, 1e2):
                rows += ill_conditioned(seed, condition, g)
    return pd.DataFrame(rows)
