"""Adam et al. 2021, E-steps and their fixed points: claims 01 and 02."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import SmallProblem
from svgpbench.checks.dense.gaussians import natural_gradient_step
from svgpbench.checks.evaluate import RATE
from svgpbench.checks.matrix import difference
from svgpbench.likelihoods.quadrature import gauss_hermite
from svgpbench.methods.mean_covariance import MeanCholesky
from svgpbench_papers.algebra.objectives import converged_state, dense_of, slope_along
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    SEEDS,
    Floats,
    Row,
    bench_of,
    frame_over,
    full_method,
    random_problem,
)

DUAL = "t-svgp tied-projected"
NATURAL = ("q-svgp natgrad", "q-svgp natgrad autodiff")
STEPS = 50


@frame_over(seed=SEEDS)
def steps_agree(seed: int) -> Iterator[Row]:
    """Compare 50 minibatch steps of both methods and dense algebra, and the gradient of KL (claim 01)."""
    problem = random_problem(seed, n=24)
    for likelihood in LIKELIHOODS:
        yield from _same_q(likelihood, problem)
    yield _same_updates("clipped", "student-t", problem, negative_beta="clip")  # β < 0 set to 0
    yield _same_updates("sampled", "softmax", problem)  # Monte Carlo noise, β = E[p(1 − p)]
    yield _kl_gradient(problem, seed)
    yield from _printed_steps(problem)


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

    def kl(mean: Floats, second_moment: Floats) -> float:
        chol = np.linalg.cholesky(second_moment - np.outer(mean, mean))
        return b.kl(b.start._replace(q=MeanCholesky(mean[None], chol[None])))

    measured, expected = [], []
    for _ in range(10):
        # in the scale of S: on the way S must stay positive definite, for its Cholesky in `kl`
        d1, G = root @ rng.standard_normal(M), rng.standard_normal((M, M)) / M
        d2 = root @ (G + G.T) @ root.T + np.outer(m, d1) + np.outer(d1, m)
        measured.append(slope_along(kl, (m, S + np.outer(m, m)), (d1, d2)))
        expected.append(d1 @ S_inv @ m + 0.5 * np.sum(d2 * (K_inv - S_inv)))
    return {"check": "kl", "residual": difference(measured, expected)}


def _printed_steps(problem: SmallProblem) -> Iterator[Row]:
    """Compare our step with one whose β is a quadrature of −∇²log p, and one without n/b (Eqs. 22–23)."""
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
    # ∂S has −½sA diag(β)Aᵀ: our β is taken out, the printed one put in
    printed_d_S = d_S + 0.5 * dense.scale * dense.weighted(our_beta - beta)
    printed = natural_gradient_step(m, S, d_m, printed_d_S, RATE)
    q = b.posterior(b.e_step(state, b.batch(rows), RATE))[:2]
    yield {"check": "printed β", "likelihood": "student-t", "residual": worst_of(q, [*printed])}
    b = bench_of(DUAL, "bernoulli-logit", problem)
    state, batch = b.minibatch_run(5), b.batch(rows)
    f = b.steps.factor(b.raw, b.prior, batch)
    without = b.steps.e_phase(b.raw, f, batch, state, b.number(RATE), b.one)
    m, S = b.posterior(state)[:2]
    exact = dense_of(b, rows=rows).natural_step(m, S, RATE)
    yield {"check": "without n/b", "residual": worst_of(b.posterior(without)[:2], [*exact])}


@frame_over(seed=SEEDS, likelihood=LIKELIHOODS)
def optimum_is_additive(seed: int, likelihood: str) -> Iterator[Row]:
    """Compare t-VGP at its fixed point with α* and β* of its own marginals (claim 02)."""
    b = bench_of(full_method(likelihood), likelihood, random_problem(seed, n=24))
    kind = "log-concave" if b.model.likelihood.log_concave else "not log-concave"
    m, S = b.posterior(converged_state(b))[:2]
    dense = dense_of(b)
    _, alpha, beta = dense.expectations(m, S)
    K, n = dense.K, len(dense.K)
    yield {"check": kind, "of": "m* = K α*", "residual": difference(m, alpha @ K)}
    # (K⁻¹ + D)⁻¹ = (I + KD)⁻¹K: K_ff has no jitter, and is not inverted
    cov = np.linalg.solve(np.eye(n) + K * beta, K)
    yield {"check": kind, "of": "S* = (K⁻¹ + diag β*)⁻¹", "residual": difference(S[0], cov)}
    rng, root = np.random.default_rng(seed), np.linalg.cholesky(S[0])
    slopes = []
    for _ in range(5):  # of the bound, along random directions
        d, G = root @ rng.standard_normal(n), rng.standard_normal((n, n)) / n
        slopes.append(abs(slope_along(dense.elbo, (m, S), (d, root @ (G + G.T) @ root.T))))
    steepest = np.max(slopes) / abs(dense.elbo(m, S))
    yield {"check": kind, "of": "∂ELBO = 0", "residual": steepest}
    yield {"check": "minus sign", "residual": difference(m, -alpha @ K)}
