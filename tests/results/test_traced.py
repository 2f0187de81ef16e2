"""Areas of traces are of every point, logarithms of hyperparameters of every iteration."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hand_records import cell, record

from svgpbench.results.trace_measures import traced_columns

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


def test_hyperparameters_of_a_trace_are_logarithms_by_iteration() -> None:
    theta: Trace = {
        "variance": [1.0, 2.0, 4.0, 8.0],
        "lengthscale_mean": [3.0, 1.0, 0.5, 0.5],
        "noise_variance": [0.9, 0.1, 0.2, 0.3],
    }
    iterations: Trace = {"iteration": [1, 5, 10, 12], "elbo": [-4.0, -3.0, -2.0, -1.0]}
    trace = iterations | theta
    (found,) = traced_columns([record(cell(iterations=12), -1.0, trace=trace)])["theta"]
    assert list(found.index) == [1, 5, 10, 12]
    assert {name: list(np.exp(found[name])) for name in found} == {
        name: pytest.approx(values) for name, values in theta.items()
    }
