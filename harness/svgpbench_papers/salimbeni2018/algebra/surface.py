"""The negative bound as a function of a method's variational parameters, at many points at once.

The bound of a state with P latents is a sum of P bounds. So one reverse pass through the method's own code
gives the gradients at P points. Hessians are central differences of gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import MatrixCase, SmallProblem, build_model, small_problem
from svgpbench.checks.dense.decoupled import Union
from svgpbench.config import LikelihoodConfig
from svgpbench.kernels import constrain
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method
from svgpbench.ops import Array, Tree
from svgpbench.training.blocks import data_term
from svgpbench_papers.algebra.random_problems import Floats

KERNEL = "matern52"
FAR = 6.0
"""Shift of the points of a badly chosen basis away from the data, in units of X, which is within ±2."""
SQUASH = 1e-3
"""Margin that GPflow puts at both ends of Φ, which is then not log-concave."""
STEP = 1e-4
"""Step of central differences of gradients; the error is about 1e-8 of the largest entry of a Hessian."""
BASES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "COUPLED": ("q-svgp", {"whiten": False, "optimiser": "adam"}),
    "DECOUPLED": ("decoupled", {}),
    "HYBRID": ("hybrid", {"coupled": "q-svgp adam unwhitened"}),
    "ORTH": ("orth", {"coupled": "q-svgp adam unwhitened"}),
}
"""The paper's bases: COUPLED in (m, L), DECOUPLED in (a, L_B), the others in (a_γ, m_β, L)."""


def random_problem(seed: int) -> SmallProblem:
    """Return a random problem with forty data, four points β and four points γ."""
    problem = small_problem(n=40, M=4, seed=seed)
    return replace(problem, gamma=problem.gamma[:4])


def with_all_points(problem: SmallProblem) -> SmallProblem:
    """Return the problem with γ ∪ β as the basis of the mean, γ first."""
    return replace(problem, gamma=np.concatenate([problem.gamma, problem.Z]))


def union_of(bench: Bench) -> Union:
    """Return the dense Gaussians on γ ∪ β at the θ and the data of a bench."""
    case, problem = MatrixCase("orth adam", bench.model.likelihood.name, KERNEL), bench.problem
    return Union(case, problem.theta(bench.model, "decoupled"), problem.X, bench.y, 1.0)


class Surface(Bench):
    """A basis on a problem at θ; points are vectors x [P, d] of its parameters, with the rows of L last."""

    def __init__(
        self,
        basis: str,
        likelihood: str,
        problem: SmallProblem,
        *,
        weight: float = 1.0,
        jitter: float = 1e-6,
    ) -> None:
        name, options = BASES[basis]
        squashed = likelihood == "squashed probit"
        model = build_model("bernoulli-probit" if squashed else likelihood, KERNEL, jitter=jitter)
        if squashed:
            settings: dict[str, Any] = {"name": "bernoulli-probit", "squash": SQUASH}
            model = replace(model, likelihood=build_likelihood(LikelihoodConfig(**settings)))
        super().__init__(load_backend("numpy"), model, build_method(name, options), problem)
        self.basis = basis
        self.blocks = self.steps.factor(self.raw, self.prior, self.full)
        self.data = data_term(model, constrain(self.ops, self.raw), self.full, self.number(weight))
        *vectors, factor = self.parts(self.start)
        self.lengths = [part.shape[-1] for part in vectors]
        self.M = factor.shape[-1]
        self.triangle = np.tril_indices(self.M)

    def parts(self, state: Tree) -> tuple[Array, ...]:
        """Return the parameters in a state, L or L_B last."""
        if self.basis in ("COUPLED", "DECOUPLED"):
            return tuple(state.q)
        return (state.a, *state.coupled.q)

    def state(self, parts: tuple[Array, ...]) -> Tree:
        """Return the state with the given parameters."""
        if self.basis in ("COUPLED", "DECOUPLED"):
            return self.start._replace(q=type(self.start.q)(*parts))
        coupled = self.start.coupled
        q = type(coupled.q)(*parts[1:])
        return self.start._replace(a=parts[0], coupled=coupled._replace(q=q))

    def point(self, state: Tree) -> Floats:
        """Return the point x [d] of a state."""
        return np.asarray(self.packed(self.parts(state))[0])

    def packed(self, parts: tuple[Array, ...]) -> Floats:
        """Return the points x [P, d] of parameters."""
        return np.concatenate([*parts[:-1], parts[-1][..., *self.triangle]], axis=-1)

    def unpacked(self, x: Floats) -> tuple[Floats, ...]:
        """Return the parameters of points x [P, d]."""
        *vectors, rows = np.split(x, np.cumsum(self.lengths), axis=-1)
        factor = np.zeros((*x.shape[:-1], self.M, self.M))
        factor[..., *self.triangle] = rows
        return (*vectors, factor)

    def _negative_bound(self, parts: tuple[Array, ...]) -> Array:
        return -self.method.bound(self.ops, self.blocks, self.data, self.state(parts))

    def value(self, x: Floats) -> float:
        """Return the negative bound at one point x [d]."""
        return float(self._negative_bound(self.unpacked(x[None])))

    def gradient(self, x: Floats) -> tuple[float, Floats]:
        """Return the negative bound, summed over points, and its gradient [P, d] at each point."""
        value, parts = self.ops.value_and_grad(self._negative_bound)(self.unpacked(x))
        return float(value), self.packed(parts)

    def hessians(self, x: Floats) -> Floats:
        """Return the Hessians [P, d, d] at points x [P, d]."""
        P, d = x.shape
        shifts = STEP * np.concatenate([np.eye(d), -np.eye(d)])
        shifted = (x[:, None] + shifts).reshape(-1, d)
        slopes = self.gradient(shifted)[1].reshape(P, 2, d, d)
        H = (slopes[:, 0] - slopes[:, 1]) / (2 * STEP)
        # differences are symmetric up to their error only, and eigvalsh reads one triangle
        return 0.5 * (H + np.swapaxes(H, -1, -2))

    def in_weights(self, H: Floats) -> Floats:
        """Transform a Hessian [d, d] from m_β to a_β = K_β⁻¹m_β."""
        coupled = self.prior if self.basis == "COUPLED" else self.prior.coupled
        end = sum(self.lengths)
        block = slice(end - self.lengths[-1], end)
        turn = np.eye(len(H))
        turn[block, block] = coupled.Kuu[0]
        return np.asarray(turn.T @ H @ turn)

    def random_points(self, rng: np.random.Generator, count: int, spread: float = 1.0) -> Floats:
        """Draw points [count, d] with a positive diagonal of L; the means are multiplied by `spread`."""
        L = 0.5 * rng.standard_normal((count, self.M, self.M))
        diagonal = np.arange(self.M)
        L[:, diagonal, diagonal] = rng.uniform(0.2, 1.5, (count, self.M))
        means = [spread * rng.standard_normal((count, n)) for n in self.lengths]
        return self.packed((*means, L))

    def optimum(self, start: Floats) -> Floats:
        """Minimise the negative bound by a trust-region Newton iteration from x [d]."""

        def slope(x: Floats) -> Floats:
            return np.asarray(self.gradient(x[None])[1][0])

        def curvature(x: Floats) -> Floats:
            return np.asarray(self.hessians(x[None])[0])

        # a trust region takes indefinite Hessians too, as DECOUPLED has them
        result = minimize(
            self.value, start, jac=slope, hess=curvature, method="trust-exact", tol=1e-9
        )
        return np.asarray(result.x)

    def optimum_of_seed(self, seed: int) -> Floats:
        """Return the optimum that is reached from a small random point."""
        return self.optimum(0.3 * self.random_points(np.random.default_rng(seed), 1)[0])


@functools.cache
def at_optimum(basis: str, likelihood: str, seed: int) -> tuple[Surface, Floats]:
    """Return a basis on a problem and its optimum; the mean of DECOUPLED has the points of β too."""
    problem = random_problem(seed)
    if basis == "DECOUPLED":
        problem = with_all_points(problem)
    surface = Surface(basis, likelihood, problem)
    return surface, surface.optimum_of_seed(seed)
