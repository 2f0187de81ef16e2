"""What of a record's trace counts in the ledger."""

from __future__ import annotations

import pytest
from hand_records import cell, record

from svgpbench.report.evidence import frame_of

SETTLING = [-90.0, -60.0, -70.0, -50.0, -40.0, -30.0, -20.0, -15.0, -12.0, -11.0]
"""Ten EM iterations of which one falls by ten."""


def only(trace: list[float]) -> dict[str, float]:
    """The row of one record with that trace of the bound."""
    iterations = {"iteration": list(range(1, len(trace) + 1))}
    one = record(cell(iterations=len(trace)), trace[-1], trace={**iterations, "elbo": trace})
    (row,) = frame_of([one]).to_dict(orient="records")
    return row


@pytest.mark.parametrize(
    ("after", "drop"),
    [([-10.0, -9.0], 0.0), ([-10.0, -12.5, -9.0, -9.5], 2.5), ([-13.0, -9.0], 2.0)],
)
def test_the_largest_drop_is_of_what_follows_iteration_10(after: list[float], drop: float) -> None:
    assert only(SETTLING + after)["elbo_drop"] == pytest.approx(drop)


def test_the_area_is_the_mean_of_the_trace() -> None:
    assert only([-4.0, -2.0, -3.0])["elbo_area"] == pytest.approx(-3.0)
