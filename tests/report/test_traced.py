"""Areas and drifts of traces are of every point and every hyperparameter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hand_records import cell, record

from svgpbench.report.traced import traced_columns

Trace = dict[str, Sequence[float | None]]

ITERATIONS: Trace = {"iteration": [1, 2, 3, 4]}


@pytest.mark.parametrize("column", ["elbo", "nlpd"])
@pytest.mark.parametrize(
    ("values", "area"),
    [
        ([-8.0, -1.0, -2.0, -1.0], -3.0),  # neither the median nor an end nor an extremum
        ([-8.0, None, -3.0, -1.0], -4.0),
        ([None, None, None, None], math.nan),
    ],
)
def test_an_area_is_the_mean_of_the_points_that_there_are(
    column: str, values: list[float | None], area: float
) -> None:
    other = {"elbo": "nlpd", "nlpd": "elbo"}[column]
    trace: Trace = ITERATIONS | {column: values, other: [0.5, 0.25, 0.0, 0.0]}
    columns = traced_columns([record(cell(iterations=4), -1.0, trace=trace)])
    assert columns[f"{column}_area"] == [pytest.approx(area, nan_ok=True)]


@pytest.mark.parametrize("widest", ["variance", "lengthscale_mean", "noise_variance"])
def test_a_drift_is_that_of_the_hyperparameter_that_moves_most(widest: str) -> None:
    theta: Trace = {
        name: [9.0, 1.0, math.exp(3.0 if name == widest else 0.5), 2.0]
        for name in ("variance", "lengthscale_mean", "noise_variance")
    }
    trace: Trace = ITERATIONS | {"elbo": [-90.0, -1.0, -1.0, -1.0]} | theta
    columns = traced_columns([record(cell(iterations=4), -1.0, trace=trace)])
    assert columns["theta_drift"] == [pytest.approx(3.0)]
