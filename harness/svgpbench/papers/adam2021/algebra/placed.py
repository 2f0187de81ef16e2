"""Binary classification at a chosen kernel: E-steps to convergence, and M-step objectives.

M-step objectives are the methods' own. Dense algebra computes each of them a second time, from the
quantities that the method holds fixed while θ moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import VARIANTS, SmallProblem
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import Likelihood
from svgpbench.methods import build_method
from svgpbench.ops import Tree
from svgpbench.papers.algebra.objectives import dense_of
from svgpbench.plugins import load_backend
from svgpbench.tree import leaves, tree_map

Floats = npt.NDArray[np.float64]
RATE = 0.8
STANDS_STILL, MOST_STEPS = 1e-10, 200


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
    name, options = VARIANTS[METHODS[method].name]
    model = Model(kernel("se"), likelihood)
    return Bench(load_backend("numpy"), model, build_method(name, options), problem)


def e_phase(b: Bench, state: Tree) -> Tree:
    """Run full-batch E-steps at the bench's θ until the state changes by less than 1e-10; at most 200."""
    batch = b.full
    f = b.steps.factor(b.raw, b.prior, batch)
    for _ in range(MOST_STEPS):
        before = state
        state = b.steps.e_phase(b.raw, f, batch, before, b.number(RATE), b.one)
        if worst_of(leaves(state), leaves(before)) < STANDS_STILL:
            break
    return state


@dataclass(frozen=True)
class OptimalQ:
    """Optimal q(u) = N(m, S) at θ_old, with dense algebra at θ_old and at another θ."""

    old: Dense
    new: Dense
    m: Floats  # [1, M]
    S: Floats  # [1, M, M]

    @property
    def sites(self) -> tuple[Floats, Floats]:
        """Sites (λ₁, β), each [n]; an optimal q is the prior times these sites."""
        mu, _ = self.old.marginals(self.m, self.S)
        _, alpha, beta = self.old.expectations(self.m, self.S)
        return (beta * mu + alpha)[0], beta[0]

    def sums(self, dense: Dense) -> tuple[Floats, Floats]:
        """Return the sums (λ̄₁ [M], Λ̄₂ [M, M]) over the sites, at the θ of `dense`."""
        lambda1, beta = self.sites
        return dense.Kuf @ lambda1, (dense.Kuf * beta) @ dense.Kuf.T


Moments = tuple[Floats, Floats]


def _moments(dense: Dense, T1: Floats, T2: Floats) -> Moments:
    """Return (m, S) with S⁻¹ = K⁻¹ + T₂ and S⁻¹m = T₁."""
    S: Floats = np.asarray(np.linalg.inv(dense.K_inv + T2), np.float64)
    return (S @ T1)[None], S[None]


def _projected(dense: Dense, lambda1: Floats, Lambda2: Floats) -> Moments:
    """Return (K⁻¹λ̄₁, K⁻¹Λ̄₂K⁻¹)."""
    return dense.K_inv @ lambda1, dense.K_inv @ Lambda2 @ dense.K_inv


def _dual(q: OptimalQ, projection: Dense, sums: Dense) -> Moments:
    """Return (m, S) at the new θ from sums at one θ, projected at another."""
    return _moments(q.new, *_projected(projection, *q.sums(sums)))


def _whitened(q: OptimalQ) -> Moments:
    R = np.linalg.cholesky(q.new.K) @ np.linalg.inv(np.linalg.cholesky(q.old.K))
    return q.m @ R.T, R @ q.S @ R.T


@dataclass(frozen=True)
class Variant:
    """A method by its name in `svgpbench check`, and a function for its q at another θ."""

    name: str
    moments: Callable[[OptimalQ], Moments]


DUALS = {
    "t-SVGP untied": Variant("t-svgp untied", lambda q: _dual(q, q.new, q.new)),
    "t-SVGP tied-projected": Variant("t-svgp tied-projected", lambda q: _dual(q, q.old, q.old)),
    "t-SVGP tied": Variant("t-svgp tied", lambda q: _dual(q, q.new, q.old)),
}
STANDARD = {
    "whitened q-SVGP": Variant("q-svgp natgrad", _whitened),
    "q-SVGP": Variant("q-svgp natgrad unwhitened", lambda q: (q.m, q.S)),
}
METHODS = DUALS | STANDARD
"""Methods by their names in figures and claims."""


def dense_objective(method: str, b: Bench, state: Tree, theta: Theta) -> float:
    """Return a method's M-step objective at θ by dense algebra, from an optimal q(u) at the bench's θ."""
    m, S = b.posterior(state)[:2]
    q = OptimalQ(dense_of(b), dense_of(b, theta), m, S)
    return q.new.elbo(*METHODS[method].moments(q))


def iterations_until(margins: Floats) -> float:
    """Return the first iteration after which no margin is negative; the first margin is for iteration 0.

    Return one more than the last iteration if its margin is negative. Return NaN if a margin is NaN.
    """
    if np.isnan(margins).any():
        return float("nan")
    short = np.flatnonzero(margins < 0.0)
    return float(short[-1] + 1) if len(short) else 0.0
