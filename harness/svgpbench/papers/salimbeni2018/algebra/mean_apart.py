"""Salimbeni et al. 2018b, Eqs. 9 and 10: the mean on points α, the covariance on points β with a free S.

No method of the benchmark has this basis. Here it is a dense Gaussian on γ ∪ β, and α is all or a part of
γ ∪ β. The mean is K_·α a, the covariance K_·· + K_·β K_β⁻¹(S − K_β)K_β⁻¹ K_β·.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.checks.bench import worst_of
from svgpbench.checks.cases import Case, Problem
from svgpbench.checks.dense.decoupled import Union
from svgpbench.checks.dense.two_part import TwoPart
from svgpbench.papers.algebra.random_problems import LIKELIHOODS, SEEDS, Floats
from svgpbench.papers.salimbeni2018.algebra.optima import FAR
from svgpbench.papers.salimbeni2018.algebra.surface import Surface, at_optimum, problem

Row = dict[str, Any]


class MeanApart:
    """Basis of Eq. 9 on a problem; a has one weight per point of γ, then of β, and is 0 outside α."""

    def __init__(self, likelihood: str, on: Problem) -> None:
        case = Case("orth adam", likelihood, "matern52")
        model, method = case.build()
        y = on.targets(model.likelihood.support)
        self.union = Union(case, on.theta(model, method.basis), on.X, y, 1.0)
        self.size = len(on.gamma)
        self._parts = TwoPart(self.union, orthogonal=True)
        self.K_beta = self._parts.K_beta

    def shown(self, a: Floats, S: Floats) -> list[Floats]:
        """Return the negative bound, and the mean and variance at the data."""
        m, covariance = self.union.K @ a, self._covariance(S)
        bound = np.asarray(-self.union.elbo(m, covariance))
        return [bound, *self.union.marginals(m, covariance)]

    def printed_variance(self, S: Floats) -> Floats:
        """Return κ − k_xβ K_β⁻¹(S − K_β)K_β⁻¹ k_βx at the data, with Eq. 10's sign."""
        at_beta = np.linalg.solve(self.K_beta, self.union.Kuf[self.size :])
        shrink = np.sum(at_beta * ((S - self.K_beta) @ at_beta), axis=0)
        return np.asarray(self.union.kff - shrink)

    def best(self, alpha: slice) -> float:
        """Return the lowest negative bound for α a part of γ ∪ β, with a Gaussian likelihood."""
        u, weight = self.union, 1.0 / float(self.union.theta.likelihood.noise_variance)
        K_ax, a = u.Kuf[alpha], np.zeros(len(u.K))
        a[alpha] = np.linalg.solve(u.K[alpha, alpha] + weight * K_ax @ K_ax.T, weight * K_ax @ u.y)
        at_beta = np.linalg.solve(self.K_beta, u.Kuf[self.size :])
        precision = np.linalg.inv(self.K_beta) + weight * at_beta @ at_beta.T
        S: Floats = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        return float(self.shown(a, S)[0])

    def _covariance(self, S: Floats) -> Floats:
        none = np.zeros(self.size), np.zeros(len(S))
        return self._parts.q(*none, S)[1]


def mean_apart() -> pd.DataFrame:
    """Compare Eq. 9's basis with COUPLED's and ORTH's q, also for a bad α (salimbeni2018-20)."""
    return pd.DataFrame({**row, "seed": seed} for seed in SEEDS for row in _rows(seed))


def _rows(seed: int) -> Iterator[Row]:
    on = problem(seed)
    for likelihood in LIKELIHOODS:
        row, of = {"likelihood": likelihood}, MeanApart(likelihood, on)
        rng, none = np.random.default_rng(seed), np.zeros(of.size)
        coupled = Surface("COUPLED", likelihood, on)
        x = coupled.random_points(rng, 1)
        (m,), (L,) = coupled.unpacked(x)
        a = np.concatenate([none, np.linalg.solve(of.K_beta, m)])
        yield row | {"check": "α = β", "residual": _apart(of.shown(a, L @ L.T), coupled, x)}
        orth = Surface("ORTH", likelihood, on)
        x = orth.random_points(rng, 1)
        (a_gamma,), (m,), (L,) = orth.unpacked(x)
        at_beta = m - of.union.K[of.size :, : of.size] @ a_gamma
        a = np.concatenate([a_gamma, np.linalg.solve(of.K_beta, at_beta)])
        shown = of.shown(a, L @ L.T)
        yield row | {"check": "α = γ ∪ β", "residual": _apart(shown, orth, x)}
        printed = float(np.max(np.abs(of.printed_variance(L @ L.T) / shown[2] - 1.0)))
        yield row | {"check": "Eq. 10's sign", "residual": printed}
    coupled, end = at_optimum("COUPLED", "gaussian", seed)
    best = coupled.value(end)
    far = MeanApart("gaussian", replace(on, gamma=on.gamma[:2] + FAR))
    yield {"check": "a bad α", "residual": max(0.0, (far.best(slice(0, 2)) - best) / abs(best))}
    near = MeanApart("gaussian", on).best(slice(0, None))
    yield {"check": "β in α", "residual": max(0.0, (near - best) / abs(best))}


def _apart(shown: list[Floats], of: Surface, x: Floats) -> float:
    """Return the largest difference of bound and marginals from a method's at a point x [1, d]."""
    mean, variance = of.marginals(of.state(of.unpacked(x)))
    return worst_of(shown, [np.asarray(of.value(x)), np.asarray(mean)[0], np.asarray(variance)[0]])
