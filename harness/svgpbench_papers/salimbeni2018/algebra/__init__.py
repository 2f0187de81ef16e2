"""Salimbeni et al. 2018, orthogonally decoupled bases: results of the exact and counted claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench_papers.salimbeni2018.algebra import counting, curvature, mean_apart, optima, rules

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "salimbeni2018-01": optima.larger_bases,
    "salimbeni2018-02": curvature.convexity,
    "salimbeni2018-03": curvature.inverse_covariance,
    "salimbeni2018-04": curvature.orthogonal_mean,
    "salimbeni2018-05": rules.parameters_and_rules,
    "salimbeni2018-06": optima.shared_optimum,
    "salimbeni2018-07": counting.costs,
    "salimbeni2018-20": mean_apart.mean_apart,
}
"""Functions that compute a frame, by claim and by `ARTEFACT/FIGURE`."""
