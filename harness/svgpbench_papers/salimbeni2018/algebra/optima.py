"""Salimbeni et al. 2018b, §3.1–3.2 and Figure 2: the optima of each basis, and comparisons of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from svgpbench_papers.algebra.random_problems import (
    LOG_CONCAVE,
    SEEDS,
    Check,
    Floats,
    Row,
    frame_over,
    positive_part,
)
from svgpbench_papers.salimbeni2018.algebra.mean_apart import MeanApart
from svgpbench_papers.salimbeni2018.algebra.surface import (
    FAR,
    Surface,
    at_optimum,
    random_problem,
    with_all_points,
)

OUTLIER = 8.0
"""Absolute value of Student-t's outliers, five standard deviations of the prior."""


@frame_over(seed=SEEDS)
def larger_bases(seed: int) -> Iterator[Row | Check]:
    """Return the relative differences of the other bases' final bounds from COUPLED's (salimbeni2018-01)."""
    problem = random_problem(seed)
    for likelihood in (*LOG_CONCAVE, "student-t"):
        row = {"likelihood": likelihood}
        coupled, x = at_optimum("COUPLED", likelihood, seed)
        best = coupled.value(x)
        for basis in ("ORTH", "HYBRID"):
            if likelihood in LOG_CONCAVE:
                surface, optimum = at_optimum(basis, likelihood, seed)
            else:  # there may be several optima: start at COUPLED's
                surface = Surface(basis, likelihood, problem)
                optimum = surface.optimum(np.concatenate([np.zeros(surface.lengths[0]), x]))
            gain = _gain(surface, optimum, best)
            yield row | {"check": f"{basis} never below", "residual": positive_part(-gain)}
            yield row | {"check": f"{basis} above", "residual": positive_part(gain)}
        if likelihood in LOG_CONCAVE:  # for others, B ⪰ 0 may lose more than α gains: claim 06
            gain = _gain(*at_optimum("DECOUPLED", likelihood, seed), best)
            yield row | {"check": "DECOUPLED, β in α", "residual": positive_part(-gain)}
            bad = replace(problem, gamma=problem.gamma[:2] + FAR)
            decoupled = Surface("DECOUPLED", likelihood, bad)
            gain = _gain(decoupled, decoupled.optimum_of_seed(seed), best)
            yield row | {"check": "DECOUPLED, a bad α", "residual": positive_part(-gain)}
    # no jitter, which would make γ and β different
    orth = Surface("ORTH", "gaussian", replace(problem, gamma=problem.Z[:2]), jitter=0.0)
    (x,) = orth.random_points(np.random.default_rng(seed), 1)
    without = np.concatenate([np.zeros(orth.lengths[0]), x[orth.lengths[0] :]])
    yield "γ in β", abs(orth.value(x) / orth.value(without) - 1.0)


def _gain(surface: Surface, x: Floats, best: float) -> float:
    return (best - surface.value(x)) / abs(best)


@frame_over(seed=SEEDS)
def shared_optimum(seed: int) -> Iterator[Row | Check]:
    """Compare final bounds of the decoupled bases with each other and a closed form (salimbeni2018-06)."""
    for likelihood in LOG_CONCAVE:
        row = {"likelihood": likelihood}
        orth, x = at_optimum("ORTH", likelihood, seed)
        best = orth.value(x)
        if likelihood == "gaussian":
            # the mean of SGPR on γ ∪ β and the covariance of SGPR on β
            apart = MeanApart(orth)
            u, precision = apart.union, apart.precision
            mean = np.linalg.solve(u.K_inv + precision * u.A @ u.A.T, precision * u.A @ u.y)
            covariance = apart.covariance_of_union(apart.best_covariance)
            residual = best / -u.elbo(np.asarray(mean), covariance) - 1.0
            yield row | {"check": "closed form", "residual": residual}
        for basis in ("HYBRID", "DECOUPLED"):
            surface, x = at_optimum(basis, likelihood, seed)
            residual = surface.value(x) / best - 1
            yield row | {"check": "one optimum", "basis": basis, "residual": residual}
        without = Surface("DECOUPLED", likelihood, random_problem(seed))
        deficit = without.value(without.optimum_of_seed(seed)) / best - 1.0
        yield row | {"check": "α without β", "residual": positive_part(deficit)}
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    y = OUTLIER * rng.choice([-1.0, 1.0], len(problem.Z))  # one outlier at each point of β
    outliers = replace(problem, X=problem.Z + 0.05, y=y)
    orth = Surface("ORTH", "student-t", outliers)
    decoupled = Surface("DECOUPLED", "student-t", with_all_points(outliers))
    best, bound = (x.value(x.optimum_of_seed(seed)) for x in (orth, decoupled))
    yield "B ⪰ 0, Student-t", bound / best - 1.0
