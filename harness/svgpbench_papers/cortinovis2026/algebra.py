"""R-SVGP beside L-SVGP by dense algebra, and the steps that find T: claims 01 to 06 and 09."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pandas as pd

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import build_model
from svgpbench.checks.dense.relaxed import natural_direction
from svgpbench.checks.matrix import difference
from svgpbench.cost import Size, count
from svgpbench.methods.diagonal_precision import DiagonalPrecision, DiagonalState
from svgpbench.numerics.adam import adam_ascent, adam_start
from svgpbench_papers.algebra.objectives import dense_of
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    LOG_CONCAVE,
    SEEDS,
    Check,
    Floats,
    bench_of,
    frame_over,
    positive_part,
    random_problem,
)
from svgpbench_papers.cortinovis2026.relaxed import (
    Moved,
    RelaxedState,
    RelaxedSVGP,
    half_lower,
    scaled_down,
)

PLAIN = RelaxedSVGP(precondition=False, tolerance=1e-13)
OPS = load_backend("numpy")
ERRORS = (0.01, 0.1, 0.5, 2.0)
"""Relative sizes of random errors of B."""


def drawn(b: Bench, seed: int, error: float = 0.0) -> RelaxedState:
    """Return a random μ and s, with B at the optimum or off it by a random lower triangle."""
    rng = np.random.default_rng(seed)
    K = np.array(b.prior.K)
    latents, M = b.start.moved.a.shape
    s = rng.uniform(0.05, 2.0, (latents, M))
    best = factor_of_inverse(K + s[..., None] * np.eye(M))
    B = best @ (np.eye(M) + error * np.tril(rng.standard_normal((latents, M, M))))
    moved = Moved(rng.standard_normal((latents, M)), np.log(np.expm1(s)))
    start: RelaxedState = b.start
    return start._replace(moved=moved, B=B)


def factor_of_inverse(A: Floats) -> Floats:
    """Return the lower Cholesky factor of A⁻¹."""
    return np.asarray(np.linalg.cholesky(np.linalg.inv(A)))


def gap(A: Floats, B: Floats) -> float:
    """Return ‖BᵀAB − I‖ / √M."""
    M = A.shape[-1]
    return float(np.linalg.norm(B.T @ A @ B - np.eye(M)) / np.sqrt(M))


@frame_over(likelihood=LIKELIHOODS, seed=SEEDS)
def same_at_best(likelihood: str, seed: int) -> Iterator[Check]:
    """Return claim 01's differences of R-SVGP at T = K̃⁻¹ from L-SVGP, and of both from dense algebra."""
    problem = random_problem(seed)
    b = bench_of(PLAIN, likelihood, problem)
    other = bench_of(DiagonalPrecision(), likelihood, problem)
    state = drawn(b, seed)
    s = np.log1p(np.exp(state.moved.raw_s))
    same = DiagonalState(state.moved.a, 1.0 / s, other.start.halvings, ())
    K = np.array(b.prior.K)
    m = np.einsum("pmk,pk->pm", np.broadcast_to(K, (len(s), *K.shape[1:])), state.moved.a)
    S = K - K @ np.linalg.solve(K + s[..., None] * np.eye(s.shape[-1]), K)
    yield "bound, dense", difference(_bound(b, state), dense_of(b).elbo(m, S))
    yield "bound", difference(_bound(b, state), _bound(other, same))
    yield "divergence", difference(b.kl(state), other.kl(same))
    yield "marginals", worst_of(b.marginals(state), other.marginals(same))
    ours, theirs = (x.objective(q, x.raw)[1] for x, q in ((b, state), (other, same)))
    yield "slope in θ", worst_of(ours, theirs)


@frame_over(likelihood=LIKELIHOODS, seed=SEEDS, error=ERRORS)
def never_above(likelihood: str, seed: int, error: float) -> Iterator[Check]:
    """Return claim 02's excesses over L-SVGP at the same μ and s, with T off its best."""
    b = bench_of(PLAIN, likelihood, random_problem(seed))
    best, off = (drawn(b, seed, x) for x in (0.0, error))
    variances = b.marginals(best)[1] - b.marginals(off)[1]
    yield "variances", positive_part(float(np.max(variances / b.marginals(best)[1])))
    yield "divergence", positive_part((b.kl(best) - b.kl(off)) / b.kl(best))
    excess = (_bound(b, off) - _bound(b, best)) / abs(_bound(b, best))
    kind = "log-concave" if likelihood in LOG_CONCAVE else likelihood
    yield f"bound, {kind}", positive_part(excess)
    m, S = b.posterior(off)[:2]
    own = dense_of(b).elbo(m, S)
    yield "bound of its own q", positive_part((_bound(b, off) - own) / abs(own))


@frame_over(seed=SEEDS)
def steps_on_factor(seed: int) -> Iterator[Check]:
    """Return claim 03's difference of a step from the natural gradient, and how errors of steps shrink."""
    A = matrix(seed, 8)
    rng = np.random.default_rng(seed)
    B = factor_of_inverse(A) @ (np.eye(8) + 0.3 * np.tril(rng.standard_normal((8, 8))))
    yield "natural gradient", difference(step_of(A, B), natural_direction(A, B))
    B, errors = factor_of_inverse(A) @ (np.eye(8) + 0.1 * np.tril(rng.standard_normal((8, 8)))), []
    for _ in range(8):
        errors.append(float(np.linalg.norm(B.T @ A @ B - np.eye(8))))
        B = B - step_of(A, B)
    for before, after in pairwise(errors):
        # ‖E'‖ ≤ (½ + √2)‖E‖² + ½‖E‖³, as ‖Φ‖ ≤ ‖E‖/√2; below 1e-7 rounding is as large as a square
        if before > 1e-7:
            most = (0.5 + np.sqrt(2.0)) * before**2 + 0.5 * before**3
            yield "errors square", positive_part(after / most - 1.0)
    yield "from 1e-3 I", gap(A, after_steps(A, 60))


@frame_over(seed=SEEDS)
def beside_adam(seed: int) -> Iterator[Check]:
    """Return claim 04's gap of B after 60 natural steps, and after 1,000 of Adam at its best rate."""
    A = matrix(seed, 60)
    yield "natural steps", gap(A, after_steps(A, 60))
    yield "Adam", min(gap(A, by_adam(A, rate, 1000)) for rate in (1e-3, 3e-3, 1e-2, 3e-2, 1e-1))


@frame_over(seed=SEEDS, jump=(2.0, 4.0, 8.0))
def line_search(seed: int, jump: float) -> Iterator[Check]:
    """Return claim 05's share of the returned criterion that lies above the least that the search met.

    The search starts after a step of θ that multiplies K̃ by `jump` while B stays.
    """
    k = np.random.default_rng(seed).standard_normal((8, 36))
    A = matrix(seed, 8)
    with np.errstate(over="ignore", invalid="ignore"):  # steps may diverge
        returned, least = authors_search(jump * A, factor_of_inverse(A), k)
    yield "returned above the least", 1.0 - least / returned


@frame_over(seed=SEEDS, jump=(2.0, 8.0, 100.0, 1e4))
def scaled_steps(seed: int, jump: float) -> Iterator[Check]:
    """Return claim 09's gaps after 60 steps where K̃ was multiplied by `jump`: 1 where they are not finite."""
    A = jump * matrix(seed, 30)
    start = factor_of_inverse(A / jump)
    for name, scaled in (("plain", False), ("scaled", True)):
        if name == "scaled" or jump >= 8.0:
            yield name, min(gap(A, after_steps(A, 60, start, scaled=scaled)), 1.0)


def authors_search(A: Floats, B: Floats, k: Floats, most: int = 30) -> tuple[float, float]:
    """Return the criterion ‖(I − AT)k‖² of the B that the search returns, and the least that it met.

    Source: class NaturalGradientInverseCholesky of the authors' code, branch by branch.
    """

    def criterion_at(B: Floats) -> float:
        return float(np.sum((k - A @ (B @ (B.T @ k))) ** 2) / k.shape[-1])

    least, rate, proposal = np.inf, 1.0, B
    for _ in range(most):
        criterion = criterion_at(proposal)
        if criterion < 1e-12:  # converged
            least, B = criterion, proposal
            break
        if criterion > least:
            B = proposal
        elif criterion < least:
            least, B = criterion, proposal
        proposal = proposal - rate * step_of(A, proposal)
        rate = min(2.0 * rate, 1.0)
    return criterion_at(B), least


def products_alone() -> pd.DataFrame:
    """Return claim 06's FLOPs of factorisations and solves of a step and a prediction, per FLOP."""
    rows = []
    model = build_model("gaussian", "se")
    for M in (100, 1000):
        cost = count(RelaxedSVGP(), model, Size(n=40_000, M=M, D=8, b=100))
        usual = count(
            DiagonalPrecision(optimiser="adam", start="unit"),
            model,
            Size(n=40_000, M=M, D=8, b=100),
        )
        for name in ("e_step", "m_step", "prediction"):
            tally, other = getattr(cost, name), getattr(usual, name)
            share = (tally.cholesky_flops + tally.solve_flops) / tally.flops
            rows.append({"check": "R-SVGP", "what": name, "M": M, "residual": share})
            share = (other.cholesky_flops + other.solve_flops) / other.flops
            rows.append({"check": "L-SVGP", "what": name, "M": M, "residual": share})
    return pd.DataFrame(rows)


def matrix(seed: int, M: int) -> Floats:
    """Return K̃ of M random points of the plane: a squared exponential, and s from 1e-3 to 1."""
    rng = np.random.default_rng(seed)
    X, s = rng.uniform(-2.0, 2.0, (M, 2)), 10.0 ** rng.uniform(-3.0, 0.0, M)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    return np.asarray(np.exp(-0.5 * squares) + np.diag(s))


def step_of(A: Floats, B: Floats) -> Floats:
    """Return BΦ, the step of rate 1 down from B."""
    return np.asarray(B @ half_lower(OPS, B.T @ A @ B))


def after_steps(
    A: Floats, steps: int, start: Floats | None = None, *, scaled: bool = False
) -> Floats:
    """Return B after steps of rate 1, from 1e-3 I without a start; infinite where they are not finite."""
    B = 1e-3 * np.eye(len(A)) if start is None else start
    with np.errstate(over="ignore", invalid="ignore"):  # plain steps may diverge
        for _ in range(steps):
            if scaled:
                B, _ = scaled_down(OPS, B, B.T @ A @ B)
            B = B - step_of(A, B)
    return np.where(np.all(np.isfinite(B)), B, np.inf)


def slope(A: Floats, B: Floats) -> Floats:
    """Return the gradient of KL[N(0, BBᵀ) ‖ N(0, A⁻¹)] in the lower triangle of B: AB − diag(1/B)."""
    return np.asarray(np.tril(A @ B) - np.diag(1.0 / np.diag(B)))


def by_adam(A: Floats, rate: float, steps: int) -> Floats:
    """Return B after steps of Adam down the divergence from 1e-3 I."""
    B = 1e-3 * np.eye(len(A))
    moments = adam_start(OPS, B)
    for _ in range(steps):
        B, moments = adam_ascent(OPS, moments, B, -slope(A, B), OPS.asarray(rate))
    return B


def _bound(b: Bench, state: RelaxedState | DiagonalState) -> float:
    return float(b.ops.to_numpy(b.bound(state, b.full)))


CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "cortinovis2026-01": same_at_best,
    "cortinovis2026-02": never_above,
    "cortinovis2026-03": steps_on_factor,
    "cortinovis2026-04": beside_adam,
    "cortinovis2026-05": line_search,
    "cortinovis2026-06": products_alone,
    "cortinovis2026-09": scaled_steps,
}
"""Functions that compute a frame, by claim."""
