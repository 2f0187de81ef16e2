"""Kobe 2021, diagonal precision: results of the exact and counted claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench.papers.kobe2021.algebra.concavity import concavity
from svgpbench.papers.kobe2021.algebra.coordinates import coordinates_of_a_path
from svgpbench.papers.kobe2021.algebra.costs import (
    beside_print,
    numbers_and_costs,
    twice_the_points,
)
from svgpbench.papers.kobe2021.algebra.family import best_q, one_cholesky
from svgpbench.papers.kobe2021.algebra.predictions import (
    bias_and_mechanism,
    mean_and_hyperparameters,
    predictions,
)
from svgpbench.papers.kobe2021.algebra.steps import (
    natural_parameters_of_a_subfamily,
    one_step_of_rate_one,
    positive_without_constraint,
)

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "kobe2021-01": best_q,
    "kobe2021-02": one_cholesky,
    "kobe2021-03": natural_parameters_of_a_subfamily,
    "kobe2021-04": positive_without_constraint,
    "kobe2021-05": one_step_of_rate_one,
    "kobe2021-06": coordinates_of_a_path,
    "kobe2021-07": numbers_and_costs,
    "kobe2021-15": mean_and_hyperparameters,
    "kobe2021-17": bias_and_mechanism,
    "kobe2021-18": concavity,
    "kobe2021-21": twice_the_points,
    "fig2.1-4.8/predictions": predictions,
    "counting/printed": beside_print,
}
"""By claim: a frame with one row per case, its `check`, and its `residual` or its cost and sizes.

By `ARTEFACT/FIGURE`: the points of the curves. By `ARTEFACT/printed`: our values for the printed numbers.
"""
