"""Salimbeni et al. 2018b, Eqs. 9 and 10: the mean on points α, the covariance on points β with a free S.

No method of the benchmark has this basis. Here it is a dense Gaussian on γ ∪ β, and α is all or a part of
γ ∪ β. The mean is K_·α a, the covariance K_·· + K_·β K_β⁻¹(S − K_β)K_β⁻¹ K_β·.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.dense.two_part import TwoPart
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    SEEDS,
    Check,
    Floats,
    Row,
    frame_over,
    positive_part,
)
from svgpbench_papers.salimbeni2018.algebra.surface import (
    FAR,
    Surface,
    at_optimum,
    random_problem,
    union_of,
)


class MeanApart:
    """Basis of Eq. 9 at a bench; a has one weight per point of γ, then of β, and is 0 outside α."""

    def __init__(self, bench: Bench) -> None:
        self.union = union_of(bench)
        self.size = self.union.size
        self._parts = TwoPart(self.union, orthogonal=True)
        self.K_beta = self._parts.K_beta
        self.weights_at_beta = np.linalg.solve(self.K_beta, self.union.Kuf[self.size :])

    def bound_and_marginals(self, a: Floats, S: Floats) -> list[Floats]:
        """Return the negative bound, and the mean and variance at the data."""
        m, covariance = self.union.K @ a, self.covariance_of_union(S)
        bound = np.asarray(-self.union.elbo(m, covariance))
        return [bound, *self.union.marginals(m, covariance)]

    def covariance_of_union(self, S: Floats) -> Floats:
        """Return the covariance on γ ∪ β."""
        return self._parts.q(np.zeros(self.size), np.zeros(len(S)), S)[1]

    def printed_variance(self, S: Floats) -> Floats:
        """Return κ − k_xβ K_β⁻¹(S − K_β)K_β⁻¹ k_βx at the data, with Eq. 10's sign."""
        A = self.weights_at_beta
        return np.asarray(self.union.kff - np.sum(A * ((S - self.K_beta) @ A), axis=0))

    @property
    def precision(self) -> float:
        """Reciprocal of the noise variance of a Gaussian likelihood."""
        return 1.0 / float(self.union.theta.likelihood.noise_variance)

    @property
    def best_covariance(self) -> Floats:
        """The S of SGPR on β, which is the best with a Gaussian likelihood."""
        A = self.weights_at_beta
        return np.asarray(np.linalg.inv(np.linalg.inv(self.K_beta) + self.precision * A @ A.T))

    def best(self, alpha: slice) -> float:
        """Return the lowest negative bound for α a part of γ ∪ β, with a Gaussian likelihood."""
        u, weight = self.union, self.precision
        K_ax, a = u.Kuf[alpha], np.zeros(len(u.K))
        # with Gaussian noise the bound is a term in a plus one in S: each has its optimum alone
        a[alpha] = np.linalg.solve(u.K[alpha, alpha] + weight * K_ax @ K_ax.T, weight * K_ax @ u.y)
        return float(self.bound_and_marginals(a, self.best_covariance)[0])


@frame_over(seed=SEEDS)
def mean_apart(seed: int) -> Iterator[Row | Check]:
    """Compare Eq. 9's basis with COUPLED's and ORTH's q, also for a bad α (salimbeni2018-20)."""
    problem = random_problem(seed)
    for likelihood in LIKELIHOODS:
        row, rng = {"likelihood": likelihood}, np.random.default_rng(seed)
        coupled = Surface("COUPLED", likelihood, problem)
        basis = MeanApart(coupled)
        x = coupled.random_points(rng, 1)
        (m,), (L,) = coupled.unpacked(x)
        a = np.concatenate([np.zeros(basis.size), np.linalg.solve(basis.K_beta, m)])
        computed = basis.bound_and_marginals(a, L @ L.T)
        yield row | {"check": "α = β", "residual": _difference(computed, coupled, x)}
        orth = Surface("ORTH", likelihood, problem)
        x = orth.random_points(rng, 1)
        (a_gamma,), (m,), (L,) = orth.unpacked(x)
        m_beta = m - basis.union.K[basis.size :, : basis.size] @ a_gamma
        a = np.concatenate([a_gamma, np.linalg.solve(basis.K_beta, m_beta)])
        computed = basis.bound_and_marginals(a, L @ L.T)
        yield row | {"check": "α = γ ∪ β", "residual": _difference(computed, orth, x)}
        printed = float(np.max(np.abs(basis.printed_variance(L @ L.T) / computed[2] - 1.0)))
        yield row | {"check": "Eq. 10's sign", "residual": printed}
    coupled, x = at_optimum("COUPLED", "gaussian", seed)
    best = coupled.value(x)
    bad = Surface("ORTH", "gaussian", replace(problem, gamma=problem.gamma[:2] + FAR))
    for check, orth, alpha in (
        ("a bad α", bad, slice(0, 2)),
        ("β in α", Surface("ORTH", "gaussian", problem), slice(0, None)),
    ):
        loss = (MeanApart(orth).best(alpha) - best) / abs(best)
        yield check, positive_part(loss)


def _difference(computed: list[Floats], surface: Surface, x: Floats) -> float:
    """Return the largest difference of bound and marginals from a method's at a point x [1, d]."""
    mean, variance = surface.marginals(surface.state(surface.unpacked(x)))
    return worst_of(computed, [np.asarray(surface.value(x)), mean[0], variance[0]])
