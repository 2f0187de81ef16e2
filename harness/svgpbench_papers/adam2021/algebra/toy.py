"""Toy problem of Adam et al. 2021, Figures 1 (left) and 2: M-step objectives and their maxima.

Appendix F.3 prints n, M, the lengthscale and "noisy sinc, thresholded". The rest is from the authors'
public notebook (AaltoML/t-SVGP, classification_1D): inputs, noise, link, kernel, the square of θ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import minimize_scalar

from svgpbench.checks.bench import Bench
from svgpbench.likelihoods import Likelihood
from svgpbench.likelihoods.bernoulli import BernoulliLogit, BernoulliProbit
from svgpbench.ops import Tree
from svgpbench_papers.adam2021.algebra.placed import (
    METHODS,
    OptimalQ,
    Placed,
    e_phase,
    placed_bench,
)
from svgpbench_papers.algebra.objectives import dense_of, dual, theta_at

N, M, LENGTHSCALE, NOISE, SEED = 100, 10, 0.5, 0.2, 123
LINKS: dict[str, Likelihood] = {
    "squashed probit": BernoulliProbit(squash=1e-3),
    "probit": BernoulliProbit(),
    "logit": BernoulliLogit(),
}
LINK = "squashed probit"
"""The authors' link; the other links show whether a claim depends on it."""
STRIDE, PRECISION = 0.15, 1e-7
"""Step of the first search for a maximum in log θ, and the precision of the second."""
LOWEST, HIGHEST = np.log(1e-3), np.log(1e2)
"""Limits of the search in log θ."""


@cache
def toy(variance: float, seed: int = SEED) -> Placed:
    """Draw the data: labels are the sign of sin(12x)/x with noise. The kernel has the given variance."""
    # the legacy generator: the same seed of `default_rng` draws other data than the notebook's
    rng = np.random.RandomState(seed)
    X = rng.rand(N, 1) * 2.0 - 1.0
    f = np.sin(12.0 * X[:, 0]) / X[:, 0] + NOISE * rng.randn(N)
    Z = np.linspace(X.min(), X.max(), M)[:, None]
    return Placed.build(X, (f > 0.0).astype(np.float64), Z, variance, LENGTHSCALE)


@dataclass(frozen=True)
class MObjective:
    """M-step objective of a method over the variance, after E-steps to convergence at θ_old."""

    method: str
    old: float
    bench: Bench
    state: Tree

    def __call__(self, theta: float) -> float:
        """Return the method's own objective at θ."""
        return dual(self.bench, self.state, theta_at(self.bench, variance=theta / self.old))

    def by_dense_algebra(self, theta: float) -> float:
        """Return the objective at θ, computed by dense algebra from the optimal q(u) at θ_old."""
        b, at_theta = self.bench, theta_at(self.bench, variance=theta / self.old)
        q = OptimalQ(dense_of(b), dense_of(b, at_theta), *b.posterior(self.state)[:2])
        return q.new.elbo(*METHODS[self.method].moments(q))

    @property
    def best(self) -> float:
        """Local maximum θ*(θ_old) that an ascent from θ_old reaches."""
        return ascent(self, self.old)


def ascent(objective: Callable[[float], float], start: float) -> float:
    """Return the θ of the local maximum uphill from `start`, or where the search passed a limit."""

    def objective_at(t: float) -> float:
        return objective(float(np.exp(t)))

    t, height = float(np.log(start)), objective(start)
    for stride in (STRIDE, -STRIDE):
        while LOWEST < t < HIGHEST and (next_height := objective_at(t + stride)) > height:
            t, height = t + stride, next_height
    if LOWEST < t < HIGHEST:
        # neither neighbour is higher, so that a local maximum lies between them
        near = (t - STRIDE, t + STRIDE)
        optimum = minimize_scalar(
            lambda t: -objective_at(t), bounds=near, method="bounded", options={"xatol": PRECISION}
        )
        t = float(optimum.x)
    return float(np.exp(t))


def e_step(method: str, old: float, link: str = LINK, seed: int = SEED) -> MObjective:
    """Return the M-step objective of a method at the optimal q for the variance `old`."""
    b = placed_bench(method, LINKS[link], toy(old, seed))
    return MObjective(method, old, b, e_phase(b))
