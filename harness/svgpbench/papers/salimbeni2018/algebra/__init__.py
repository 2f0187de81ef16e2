"""Salimbeni et al. 2018, orthogonally decoupled bases: results of the exact and counted claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench.papers.salimbeni2018.algebra.counting import costs
from svgpbench.papers.salimbeni2018.algebra.curvature import (
    convexity,
    inverse_covariance,
    orthogonal_mean,
)
from svgpbench.papers.salimbeni2018.algebra.mean_apart import mean_apart
from svgpbench.papers.salimbeni2018.algebra.optima import larger_bases, shared_optimum
from svgpbench.papers.salimbeni2018.algebra.rules import parameters_and_rules

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "salimbeni2018-01": larger_bases,
    "salimbeni2018-02": convexity,
    "salimbeni2018-03": inverse_covariance,
    "salimbeni2018-04": orthogonal_mean,
    "salimbeni2018-05": parameters_and_rules,
    "salimbeni2018-06": shared_optimum,
    "salimbeni2018-07": costs,
    "salimbeni2018-20": mean_apart,
}
"""By claim: a frame with one row per case, its `check`, and its `residual` or its cost and sizes."""
