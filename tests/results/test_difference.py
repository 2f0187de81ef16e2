"""The difference of two runs of one cell: a test row at a threshold is rounding, two rows are not."""

from __future__ import annotations

import pytest
from hand_records import cell, record

from svgpbench.results.difference import difference
from svgpbench.results.records import Record


def traced(**columns: list[float]) -> Record:
    made = record(cell(), -1.0)
    return made.model_copy(update={"trace": columns, "data": {**made.data, "n_test": 300}})


@pytest.mark.parametrize("name", ["coverage", "pit_0.5", "error_rate"])
def test_one_row_of_a_share_is_rounding_and_two_are_not(name: str) -> None:
    first = traced(**{name: [139 / 300, 0.5], "elbo": [-1.0, -2.0]})
    for rows, expected in ((0, 0.0), (1, 1e-15), (-1, 1e-15), (2, 2 / 150)):
        other = traced(**{name: [139 / 300, 0.5 + rows / 300], "elbo": [-1.0, -2.0]})
        assert difference(first, other) == pytest.approx(expected, rel=1e-9, abs=1e-15)
        assert (difference(first, other) > 0.0) == (rows != 0)
    assert difference(first, traced(**{name: [139 / 300, 0.5], "elbo": [-1.0, -2.2]})) > 0.09


def test_a_first_wrong_row_is_rounding_too() -> None:
    assert 0.0 < difference(traced(error_rate=[0.0]), traced(error_rate=[1 / 300])) < 1e-15


def test_one_row_more_of_what_is_no_share_counts() -> None:
    assert difference(traced(rmse=[1.0]), traced(rmse=[1.0 + 1 / 300])) == pytest.approx(1 / 300)
