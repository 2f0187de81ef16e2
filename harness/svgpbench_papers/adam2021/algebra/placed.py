"""Binary classification at a chosen kernel, and the methods' M-step objectives by dense algebra."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import SmallProblem
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import Likelihood
from svgpbench.methods.registry import build_named
from svgpbench.tree import tree_map
from svgpbench_papers.algebra.objectives import converged_state
from svgpbench_papers.algebra.random_problems import Floats


@dataclass(frozen=True)
class Placed(SmallProblem):
    """A problem with binary labels and chosen inducing inputs, at a squared exponential kernel."""

    kernel: KernelParameters

    @classmethod
    def build(
        cls, X: Floats, labels: Floats, Z: Floats, variance: float, lengthscale: float
    ) -> Placed:
        """Build a problem from X [n, D], labels [n] in {0, 1}, inducing inputs Z [M, D] and a lengthscale."""
        parameters = KernelParameters(np.array([variance]), np.array([[lengthscale]]))
        no_batches = np.empty((0, 0), np.int64)
        return cls(X, labels, labels, labels, labels, Z, Z[:0], no_batches, parameters)

    def theta(self, model: Model, basis: str = "inducing", *, moved: bool = False) -> Theta:
        """Return θ: the kernel, the likelihood's initial parameters and Z."""
        parameters = tree_map(np.float64, model.likelihood.initial_parameters())
        return Theta(self.kernel, parameters, self.Z)


def placed_bench(method: str, likelihood: Likelihood, problem: Placed) -> Bench:
    """Build the bench of one of `METHODS` on the NumPy backend."""
    model = Model(kernel("se"), likelihood)
    return Bench(load_backend("numpy"), model, build_named(METHODS[method].name), problem)


e_phase = functools.partial(converged_state, still=1e-10, most=200)
"""Full-batch E-steps at a bench's θ."""


Moments = tuple[Floats, Floats]


@dataclass(frozen=True)
class OptimalQ:
    """Optimal q(u) = N(m, S) at θ_old, with dense algebra at θ_old and at another θ."""

    old: Dense
    new: Dense
    m: Floats  # [1, M]
    S: Floats  # [1, M, M]

    def by_sites(self, projection: Dense, sums: Dense) -> Moments:
        """Return (m, S) at the new θ from the sums (λ̄₁, Λ̄₂) over sites at one θ, projected at another.

        An optimal q is the prior times the sites. S⁻¹ = K⁻¹ + T₂ and S⁻¹m = T₁, with T₁ = K⁻¹λ̄₁ and
        T₂ = K⁻¹Λ̄₂K⁻¹.
        """
        mu, _ = self.old.marginals(self.m, self.S)
        _, (alpha,), (beta,) = self.old.expectations(self.m, self.S)
        lambda1, Lambda2 = sums.Kuf @ (beta * mu[0] + alpha), (sums.Kuf * beta) @ sums.Kuf.T
        T1, T2 = projection.K_inv @ lambda1, projection.K_inv @ Lambda2 @ projection.K_inv
        S: Floats = np.asarray(np.linalg.inv(self.new.K_inv + T2), np.float64)
        return (S @ T1)[None], S[None]

    def whitened(self) -> Moments:
        """Return (m, S) at the new θ with the whitened q held fixed."""
        R = np.linalg.cholesky(self.new.K) @ np.linalg.inv(np.linalg.cholesky(self.old.K))
        return self.m @ R.T, R @ self.S @ R.T


class Variant(NamedTuple):
    """A method by its name in `svgpbench check`, and a function for its q at another θ."""

    name: str
    moments: Callable[[OptimalQ], Moments]


DUALS = {
    "t-SVGP untied": Variant("t-svgp untied", lambda q: q.by_sites(q.new, q.new)),
    "t-SVGP tied-projected": Variant("t-svgp tied-projected", lambda q: q.by_sites(q.old, q.old)),
    "t-SVGP tied": Variant("t-svgp tied", lambda q: q.by_sites(q.new, q.old)),
}
STANDARD = {
    "whitened q-SVGP": Variant("q-svgp natgrad", OptimalQ.whitened),
    "q-SVGP": Variant("q-svgp natgrad unwhitened", lambda q: (q.m, q.S)),
}
METHODS = DUALS | STANDARD
"""Methods by their names in figures and claims."""


def iterations_until(margins: Floats) -> float:
    """Return the first iteration after which no margin is negative, at most one past the last; NaN if NaN."""
    if np.isnan(margins).any():
        return float("nan")
    short = np.flatnonzero(margins < 0.0)
    return float(short[-1] + 1) if len(short) else 0.0
