"""Cheng and Boots 2017, Secs. 3.3-3.4: the decoupled variance, the prior's and the exact GP's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from svgpbench.checks.cases import SmallProblem, small_problem
from svgpbench.checks.dense import gpr_bound, kernel_matrix
from svgpbench.kernels import Theta
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.likelihoods import GaussianParameters
from svgpbench.methods.decoupled import DecoupledState
from svgpbench_papers.algebra.random_problems import (
    SEEDS,
    Check,
    Floats,
    bench_of,
    frame_over,
    positive_part,
)
from svgpbench_papers.cheng2017.algebra.drawn import (
    gradients,
    lower_factor,
    random_parameters,
    state_of,
)

KERNEL, EDGE = "se", 3.0
M_ALPHA = 8
SIZES = (4, 8)  # of β
STRICT = 1e-9
"""Relative margin by which a variance must be below the prior's to count as below."""
START = np.log([0.3, 0.7, 0.04])
"""Logarithms of variance, lengthscale and noise variance: the fixed θ, and the start of learning."""


@dataclass(frozen=True)
class Sinc(SmallProblem):
    """Noisy values of sinc on [−3, 3] at one θ."""

    logs: Any = None  # of variance, lengthscale, noise variance

    @classmethod
    def build(cls, X: Floats, y: Floats, Z: Floats, gamma: Floats, logs: Floats) -> Sinc:
        """Build the problem of data, bases and θ; the targets of other tasks are not used."""
        return cls(**{**vars(small_problem()), "X": X, "y": y, "Z": Z, "gamma": gamma}, logs=logs)

    def theta(self, model: Any, basis: str = "inducing", *, moved: bool = False) -> Theta:
        variance, lengthscale, noise = np.exp(self.logs)
        parameters = KernelParameters(np.array([variance]), np.array([[lengthscale]]))
        return Theta(parameters, GaussianParameters(np.float64(noise)), self.inducing(basis))


def sinc(seed: int, M_beta: int) -> Sinc:
    """Draw 60 points of noisy sinc; α and β are evenly spaced."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-EDGE, EDGE, (60, 1)), axis=0)
    y = np.sinc(X[:, 0]) + 0.2 * rng.standard_normal(60)
    Z, gamma = (np.linspace(-0.9 * EDGE, 0.9 * EDGE, M)[:, None] for M in (M_beta, M_ALPHA))
    return Sinc.build(X, y, Z, gamma, START)


def regions(problem: Sinc) -> dict[str, Floats]:
    """Return inputs [k, 1] at β, on a grid over the range of the data, and outside this range."""
    outside = EDGE + np.linspace(0.1, 1.5, 8)
    return {
        "on beta": problem.Z,
        "between": np.linspace(-EDGE, EDGE, 97)[:, None],
        "far": np.concatenate([-outside, outside])[:, None],
    }


class DecoupledModel:
    """DECOUPLED on a problem at its θ, for any q."""

    def __init__(self, problem: Sinc) -> None:
        self.bench = bench_of("decoupled adam", "gaussian", problem, kernel=KERNEL)
        self.problem, self.theta = problem, problem.theta(self.bench.model, "decoupled")
        self.s2 = float(self.theta.likelihood.noise_variance)

    def cov(self, A: Floats, B: Floats) -> Floats:
        """Return the covariances of two sets of inputs."""
        return kernel_matrix(KERNEL, self.theta, A, B)

    @property
    def best(self) -> DecoupledState:
        """State at the optimum for θ: B = AAᵀ/σ² with A = K_β⁻¹K_βf, and a by regularised least squares."""
        p, jitter, s2 = self.problem, self.bench.model.jitter, self.s2
        A = np.linalg.solve(self.cov(p.Z, p.Z) + jitter * np.eye(len(p.Z)), self.cov(p.Z, p.X))
        K_af = self.cov(p.gamma, p.X)
        H = K_af @ K_af.T / s2 + self.cov(p.gamma, p.gamma) + jitter * np.eye(len(p.gamma))
        a: Floats = np.asarray(np.linalg.solve(H, K_af @ p.y / s2), dtype=np.float64)
        return state_of(a[None], lower_factor(A / np.sqrt(s2))[None])

    def bound(self, state: DecoupledState) -> float:
        """Return the bound on all data."""
        return float(self.bench.bound(state, self.bench.full))

    def marginals(self, state: DecoupledState, X: Floats) -> tuple[Floats, Floats]:
        """Return the mean and variance [k] of q(f) at inputs X [k, 1]."""
        mean, variance = replace(self.bench.session, q=state).marginals(X)
        return np.asarray(mean[0]), np.asarray(variance[0])

    def exact_variance(self, X: Floats) -> Floats:
        """Return the variance of p(f | y) at inputs, by conditioning."""
        p = self.problem
        K = self.cov(p.X, p.X) + self.s2 * np.eye(len(p.X))
        cross = self.cov(p.X, X)
        return np.asarray(np.diag(self.cov(X, X) - cross.T @ np.linalg.solve(K, cross)))


def learned(problem: Sinc, *, exact: bool) -> Sinc:
    """Return the problem at the best θ for DECOUPLED at its optimum or, if `exact`, for the exact GP."""

    def loss(logs: Floats) -> float:
        model = DecoupledModel(replace(problem, logs=logs))
        if exact:
            return -gpr_bound(model.theta, KERNEL, problem.X, problem.y)
        return -model.bound(model.best)

    result = minimize(loss, START, method="L-BFGS-B", bounds=[(x - 3, x + 3) for x in START])
    return replace(problem, logs=result.x)


@frame_over(seed=SEEDS, M_beta=SIZES)
def variances(seed: int, M_beta: int) -> Iterator[Check]:
    """Return q's excess over the prior's variance, and shares of inputs where it is below another one."""
    yield from _beside_prior(seed, M_beta)
    yield from _beside_exact(seed, M_beta)


def _beside_prior(seed: int, M: int) -> Iterator[Check]:
    model = DecoupledModel(sinc(seed, M))
    prior = float(model.theta.kernel.variance[0])
    rng = np.random.default_rng(seed)
    a, L_B = random_parameters(rng, M_ALPHA, M)
    X = np.concatenate(list(regions(model.problem).values()))
    _, v = model.marginals(state_of(a, L_B), X)
    yield "at most the prior's", positive_part(float(np.max(v) / prior - 1))
    yield "below the prior's, B definite", float(np.mean(v > prior * (1 - STRICT)))
    x = rng.uniform(-EDGE, EDGE, (1, 1))
    k = model.cov(model.problem.Z, x)[:, 0]
    singular = np.zeros((1, M, M))
    singular[0, :, 0] = a[0, :M] - k * (k @ a[0, :M]) / (k @ k)  # B = l lᵀ with lᵀk_βx = 0
    _, v = model.marginals(state_of(a, singular), x)
    yield "below the prior's, B singular", float(np.mean(v > prior * (1 - STRICT)))


def _beside_exact(seed: int, M: int) -> Iterator[Check]:
    problem = sinc(seed, M)
    model = DecoupledModel(problem)
    slopes = gradients(model.bench, model.best, model.bench.full, 1.0)
    pairs = zip(slopes, model.best.q, strict=True)
    yield "best q", max(np.max(np.abs(x)) / np.max(np.abs(y)) for x, y in pairs)
    at_its_theta, at_exact_theta = (
        DecoupledModel(learned(problem, exact=exact)) for exact in (False, True)
    )
    size = "M_beta = M_alpha" if M == M_ALPHA else "M_beta < M_alpha"
    for theta, q, gp in (("same", model, model), ("learned", at_its_theta, at_exact_theta)):
        for region, X in regions(problem).items():
            below = q.marginals(q.best, X)[1] < gp.exact_variance(X)
            yield f"{theta} theta, {region}, {size}", float(np.mean(below))
