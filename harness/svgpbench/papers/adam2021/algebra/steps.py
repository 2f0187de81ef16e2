"""Adam et al. 2021, E-steps and their fixed points: claims 01 and 02."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import SmallProblem
from svgpbench.checks.dense.gaussians import Dense, natural_gradient_step
from svgpbench.checks.evaluate import RATE
from svgpbench.checks.matrix import difference
from svgpbench.likelihoods.quadrature import gauss_hermite
from svgpbench.methods.mean_covariance import QState
from svgpbench.papers.algebra.derivatives import slope
from svgpbench.papers.algebra.objectives import converged_state, dense_of
from svgpbench.papers.algebra.random_problems import LIKELIHOODS, bench_of, full_method, problems

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]
DUAL = "t-svgp tied-projected"
NATURAL = ("q-svgp natgrad", "q-svgp natgrad autodiff")
STEPS = 50


def steps_agree() -> pd.DataFrame:
    """Compare 50 minibatch steps of both methods and dense algebra, and the gradient of KL (claim 01)."""
    rows: list[Row] = []
    for seed, problem in problems(n=24):
        checks = [row for likelihood in LIKELIHOODS for row in _same_q(likelihood, problem)]
        checks += [
            _same_updates("clipped", "student-t", problem, negative_beta="clip"),  # β < 0 set to 0
            _same_updates("sampled", "softmax", problem),  # Monte Carlo noise, β = E[p(1 − p)]
            _kl_gradient(problem, seed),
            _printed_beta(problem),
            _printed_scale(problem),
        ]
        rows += [{"seed": seed, **row} for row in checks]
    return pd.DataFrame(rows)


def _after_batches(b: Bench) -> list[Floats]:
    """Return mean and covariance after 50 minibatch E-steps, from q = p."""
    return b.posterior(b.minibatch_run(STEPS))[:2]


def _same_q(likelihood: str, problem: SmallProblem) -> Iterator[Row]:
    """Compare t-SVGP with q-SVGP and with natural-gradient steps by dense algebra."""
    dual = bench_of(DUAL, likelihood, problem)
    q = _after_batches(dual)
    ends = {name: _after_batches(bench_of(name, likelihood, problem)) for name in NATURAL}
    m, S = (np.array(x) for x in dual.posterior(dual.start)[:2])
    for rows in problem.batches[:STEPS]:
        m, S = dense_of(dual, rows=rows).natural_step(m, S, RATE)
    ends["dense"] = [m, S]
    for against, end in ends.items():
        case = {"check": "same q", "likelihood": likelihood, "against": against}
        yield {**case, "residual": worst_of(q, end)}


def _same_updates(check: str, likelihood: str, problem: SmallProblem, **options: Any) -> Row:
    """Compare t-SVGP with q-SVGP at a likelihood with `options`."""
    methods = (DUAL, "q-svgp natgrad")
    ends = [_after_batches(bench_of(x, likelihood, problem, **options)) for x in methods]
    return {"check": check, "likelihood": likelihood, "residual": worst_of(*ends)}


def _kl_gradient(problem: SmallProblem, seed: int) -> Row:
    """Compare ∂KL/∂(m, S + mmᵀ) along random directions with η − η₀ = (S⁻¹m, ½K⁻¹ − ½S⁻¹)."""
    b = bench_of("q-svgp natgrad unwhitened", "gaussian", problem)
    m, S = (x[0] for x in b.posterior(b.minibatch_run(5))[:2])
    K_inv, S_inv = np.linalg.inv(b.ops.to_numpy(b.prior.Kuu)[0]), np.linalg.inv(S)
    root, rng, M = np.linalg.cholesky(S), np.random.default_rng(seed), len(m)
    measured, expected = [], []
    for _ in range(10):
        d1, G = root @ rng.standard_normal(M), rng.standard_normal((M, M)) / M
        d2 = root @ (G + G.T) @ root.T + np.outer(m, d1) + np.outer(d1, m)

        def kl(t: float, d1: Floats = d1, d2: Floats = d2) -> float:
            mean = m + t * d1
            cov = S + np.outer(m, m) + t * d2 - np.outer(mean, mean)
            return b.kl(mean_cholesky(b, mean, cov))

        measured.append(slope(kl))
        expected.append(d1 @ S_inv @ m + 0.5 * np.sum(d2 * (K_inv - S_inv)))
    return {"check": "kl", "residual": difference(measured, expected)}


def mean_cholesky(b: Bench, m: Floats, S: Floats) -> QState:
    """Return the state of unwhitened q-SVGP at N(m, S)."""
    q = b.start.q._replace(
        mean=b.ops.asarray(m[None]), chol=b.ops.asarray(np.linalg.cholesky(S)[None])
    )
    state: QState = b.start._replace(q=q)
    return state


def _printed_beta(problem: SmallProblem) -> Row:
    """Compare our step with one whose β is the same quadrature of −∇²log p.

    This β differs from −2∂V̂/∂v if there are few nodes.
    """
    b = bench_of(DUAL, "student-t", problem)
    rows = problem.batches[5]
    state = b.minibatch_run(5)
    m, S = b.posterior(state)[:2]
    dense = dense_of(b, rows=rows)
    mu, v = dense.marginals(m, S)
    t, w = gauss_hermite(b.model.likelihood.nodes)  # type: ignore[attr-defined]
    error = b.y[rows][:, None] - (mu[..., None] + np.sqrt(v)[..., None] * t)
    df = b.model.likelihood.df  # type: ignore[attr-defined]
    spread = df * float(dense.theta.likelihood.scale) ** 2
    beta = ((df + 1) * (spread - error**2) / (spread + error**2) ** 2) @ w
    d_m, d_S = dense.slopes(m, S)
    our_beta = dense.expectations(m, S)[2]
    printed_d_S = d_S + 0.5 * dense.scale * dense.weighted(our_beta - beta)
    printed = natural_gradient_step(m, S, d_m, printed_d_S, RATE)
    q = b.posterior(b.e_step(state, b.batch(rows), RATE))[:2]
    return {"check": "printed β", "likelihood": "student-t", "residual": worst_of(q, [*printed])}


def _printed_scale(problem: SmallProblem) -> Row:
    """Compare a minibatch step without n/b, as in Eqs. 22–23, with the bound's natural gradient."""
    b = bench_of(DUAL, "bernoulli-logit", problem)
    rows = problem.batches[5]
    state, batch = b.minibatch_run(5), b.batch(rows)
    f = b.steps.factor(b.raw, b.prior, batch)
    printed = b.steps.e_phase(b.raw, f, batch, state, b.number(RATE), b.one)
    m, S = b.posterior(state)[:2]
    exact = dense_of(b, rows=rows).natural_step(m, S, RATE)
    return {"check": "without n/b", "residual": worst_of(b.posterior(printed)[:2], [*exact])}


def optimum_is_additive() -> pd.DataFrame:
    """Compare t-VGP at its fixed point with α* and β* of its own marginals (claim 02)."""
    rows = [
        {"seed": seed, "likelihood": likelihood, **row}
        for seed, problem in problems(n=24)
        for likelihood in LIKELIHOODS
        for row in _at_optimum(bench_of(full_method(likelihood), likelihood, problem), seed)
    ]
    return pd.DataFrame(rows)


def _at_optimum(b: Bench, seed: int) -> Iterator[Row]:
    kind = "log-concave" if b.model.likelihood.log_concave else "not log-concave"
    m, S = b.posterior(converged_state(b))[:2]
    dense = dense_of(b)
    _, alpha, beta = dense.expectations(m, S)
    K, n = dense.K, len(dense.K)
    yield {"check": kind, "of": "m* = K α*", "residual": difference(m, alpha @ K)}
    cov = np.linalg.solve(np.eye(n) + K * beta, K)
    yield {"check": kind, "of": "S* = (K⁻¹ + diag β*)⁻¹", "residual": difference(S[0], cov)}
    yield {"check": kind, "of": "∂ELBO = 0", "residual": _steepest(dense, m, S, seed)}
    yield {"check": "minus sign", "residual": difference(m, -alpha @ K)}


def _steepest(dense: Dense, m: Floats, S: Floats, seed: int) -> float:
    """Return the largest slope of the bound at (m, S) along random directions, relative to the bound."""
    rng, n = np.random.default_rng(seed), len(dense.K)
    root = np.linalg.cholesky(S[0])
    slopes = []
    for _ in range(5):
        d, G = root @ rng.standard_normal(n), rng.standard_normal((n, n)) / n
        D = root @ (G + G.T) @ root.T

        def elbo(t: float, d: Floats = d, D: Floats = D) -> float:
            return dense.elbo(m + t * d, S + t * D)

        slopes.append(slope(elbo))
    return max(map(abs, slopes)) / abs(dense.elbo(m, S))
