"""Adam et al. 2021, closed forms of the dual objective and of q: claim 08."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import SmallProblem
from svgpbench.checks.dense import log_normal
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench.ops import Tree
from svgpbench.training.blocks import data_term
from svgpbench_papers.adam2021.algebra.bounds import expected_log_sites
from svgpbench_papers.algebra.objectives import dense_of, dual, partial_state, raw_at, theta_at
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    LOG_CONCAVE,
    SEEDS,
    Floats,
    Row,
    bench_of,
    frame_over,
    random_problem,
)

MOVES: tuple[dict[str, float], ...] = (
    {},
    {"variance": 0.4},
    {"lengthscales": 1.3},
    {"variance": 2.0, "lengthscales": 0.8},
)
NEAR = 0.003
"""Spread of inducing inputs that are so near to each other that cond K is 3e10 to 1e12."""


@frame_over(seed=SEEDS)
def log_partition(seed: int) -> Iterator[Row]:
    """Compare log Z + c and the forms in R = K + Λ̄₂ with the methods' own bound, q and KL (claim 08)."""
    problem = random_problem(seed)
    for check, likelihood in itertools.product((_without_inducing, _with_inducing), LOG_CONCAVE):
        yield from check(likelihood, problem)
    for likelihood in LIKELIHOODS:
        b = bench_of("t-svgp untied", likelihood, problem)
        yield from _forms_in_r(b, partial_state(b), "R")
    few = random_problem(seed, n=12, M=8)
    b = bench_of("t-svgp untied", "poisson", few)
    singular = b.e_step(b.start, b.batch(few.batches[0]), 1.0)
    yield from _forms_in_r(b, singular, "R, Λ̄₂ singular")
    Lambda2 = _sums(b, singular, dense_of(b))[1]  # a batch smaller than M: no inverse for Eq. 41
    share = 1.0 - float(np.linalg.matrix_rank(Lambda2)) / len(Lambda2)
    yield {"check": "Eq. 41, Λ̄₂ singular", "residual": share}
    offsets = NEAR * np.random.default_rng(seed).standard_normal(problem.Z.shape)
    crowded = dataclasses.replace(problem, Z=problem.X[:1] + offsets)
    b = bench_of("t-svgp untied", "poisson", crowded, kernel="se", jitter=0.0)
    condition = float(np.linalg.cond(dense_of(b).K))
    for row in _forms_in_r(b, partial_state(b), "R, cond K 1e12"):
        yield row | {"condition": condition}


def _without_inducing(likelihood: str, problem: SmallProblem) -> Iterator[Row]:
    """Check Eqs. 16–17 at several θ, with sites as normalised densities and as printed, exp(λ₁f − ½βf²)."""
    b = bench_of("t-vgp", likelihood, problem)
    state = partial_state(b)
    lambda1, beta = (b.ops.to_numpy(x)[0] for x in state)
    for move in MOVES:
        theta = theta_at(b, **move)
        dense = dense_of(b, theta)
        S = np.linalg.inv(dense.K_inv + np.diag(beta))
        m, v = S @ lambda1, np.diag(S)
        # ∫ p(f) ∏ N(ỹᵢ; fᵢ, 1/βᵢ) df, which needs β > 0: hence log-concave likelihoods alone
        log_Z = log_normal(lambda1 / beta, dense.K + np.diag(1.0 / beta))
        V = dense.expectations(m[None], S[None])[0].sum()
        value = dual(b, state, theta)
        normalised = log_Z + V - expected_log_sites(lambda1, beta, m, v).sum()
        printed = log_Z + V - (lambda1 * m - 0.5 * beta * (m**2 + v)).sum()
        case = {"likelihood": likelihood, **move}
        yield {**case, "check": "Eq. 17", "residual": difference(value, normalised)}
        raw = raw_at(b, theta)
        f, data = (
            b.steps.factor(raw, b.steps.prior(raw), b.full),
            data_term(b.model, theta, b.full, b.one),
        )
        own = b.method.bound_by_log_partition(b.ops, f, data, state)  # type: ignore[attr-defined]
        yield {**case, "check": "Eq. 17", "residual": difference(own, normalised)}
        yield {**case, "check": "Eq. 17 as printed", "residual": difference(value, printed)}


def _sums(b: Bench, state: Tree, dense: Dense) -> tuple[Floats, Floats]:
    """Return the dual parameters of q(u): λ̄₁ = Σ λ₁ᵢ k_i [M] and Λ̄₂ = Σ β_i k_i k_iᵀ [M, M]."""
    lambda1, beta = (b.ops.to_numpy(x)[0] for x in state.sites)
    return dense.Kuf @ lambda1, (dense.Kuf * beta) @ dense.Kuf.T


def _with_inducing(likelihood: str, problem: SmallProblem) -> Iterator[Row]:
    """Check Eqs. 40–41 at several θ; the site there is N(ỹ; u, KΛ̄₂⁻¹K) with ỹ = KΛ̄₂⁻¹λ̄₁."""
    b = bench_of("t-svgp untied", likelihood, problem)
    state = partial_state(b)
    for move in MOVES:
        theta = theta_at(b, **move)
        dense = dense_of(b, theta)
        K, (lambda1, Lambda2) = dense.K, _sums(b, state, dense)
        cov, target = (K @ np.linalg.solve(Lambda2, x) for x in (K, lambda1))
        R = K + Lambda2
        m, S = K @ np.linalg.solve(R, lambda1), K @ np.linalg.solve(R, K)
        V = dense.expectations(m[None], S[None])[0].sum()
        log_Z = log_normal(target, cov + K)
        # E log N(ỹ; u, C) = log N(ỹ; m, C) − ½ tr C⁻¹S for u ~ N(m, S)
        expected = log_normal(target - m, cov) - 0.5 * np.trace(np.linalg.solve(cov, S))
        T1 = np.linalg.solve(K, lambda1)
        T2 = np.linalg.solve(K, np.linalg.solve(K, Lambda2).T)
        printed = T1 @ m - 0.5 * np.sum(T2 * (S + np.outer(m, m)))
        value, case = dual(b, state, theta), {"likelihood": likelihood, **move}
        residual = difference(value, log_Z + V - expected)
        yield {**case, "check": "Eq. 41", "residual": residual}
        residual = difference(value, log_Z + V - printed)
        yield {**case, "check": "Eq. 41 as printed", "residual": residual}


def _forms_in_r(b: Bench, state: Tree, check: str) -> Iterator[Row]:
    """Check Eqs. 47–51: S = KR⁻¹K, m = KR⁻¹λ̄₁, the marginals and KL, none of which needs Λ̄₂⁻¹."""
    dense = dense_of(b)
    K, Kuf, (lambda1, Lambda2) = dense.K, dense.Kuf, _sums(b, state, dense)
    R = K + Lambda2
    weights, turned = np.linalg.solve(R, lambda1), np.linalg.solve(R, K)
    v = dense.kff + np.sum(Kuf * (np.linalg.solve(R, Kuf) - np.linalg.solve(K, Kuf)), axis=0)
    # B = K^−½RK^−½: log|B| = log|R| − log|K|, and tr B⁻¹ = tr R⁻¹K
    log_ratio = np.linalg.slogdet(R)[1] - np.linalg.slogdet(K)[1]
    kl = 0.5 * (np.trace(turned) - len(K) + weights @ K @ weights + log_ratio)
    values = [*b.posterior(state)[:2], *b.marginals(state)]
    forms = {"m": K @ weights, "S": K @ turned, "μ": Kuf.T @ weights, "v": v}
    case = {"check": check, "likelihood": b.model.likelihood.name}
    for value, (name, form) in zip(values, forms.items(), strict=True):
        yield {**case, "of": name, "residual": difference(value[0], form)}
    yield {**case, "of": "KL", "residual": difference(b.kl(state), kl)}
