"""Kobe 2021, diagonal precision: results of the exact and counted claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench_papers.kobe2021.algebra import (
    concavity,
    coordinates,
    costs,
    family,
    predictions,
    steps,
)

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "kobe2021-01": family.best_q,
    "kobe2021-02": family.one_cholesky,
    "kobe2021-03": steps.natural_parameters_of_a_subfamily,
    "kobe2021-04": steps.positive_without_constraint,
    "kobe2021-05": steps.one_step_of_rate_one,
    "kobe2021-06": coordinates.coordinates_of_a_path,
    "kobe2021-07": costs.numbers_and_costs,
    "kobe2021-15": predictions.mean_and_hyperparameters,
    "kobe2021-17": predictions.bias_and_mechanism,
    "kobe2021-18": concavity.concavity,
    "kobe2021-21": costs.twice_the_points,
    "fig2.1-4.8/predictions": predictions.predictions,
    "fig4.8-trained/predictions": predictions.after_training,
    "counting/printed": costs.beside_print,
}
"""Functions that compute a frame, by claim and by `ARTEFACT/FIGURE`."""
