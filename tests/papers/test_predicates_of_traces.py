"""What is read off a trace decides each way that its rule allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import pytest
from planted_frames import planted, together
from planted_verdicts import NO, OPEN, PARTLY, YES, judged

from svgpbench.papers.verdict import Verdict

NEVER = math.inf


def settling(*sets: tuple[Sequence[float | None], Sequence[float | None]]) -> pd.DataFrame:
    """T of A and of B on some data sets."""
    return together(
        *(
            planted({"A": a, "B": b}, "settled_at", data=f"set {at}")
            for at, (a, b) in enumerate(sets)
        )
    )


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1, 1, 1000], YES),
        ([1, 1001], PARTLY),
        ([2000, NEVER], NO),
        ([0, 0], NO),  # below the lower end
        ([1, None], OPEN),
    ],
)
def test_within(values: list[float | None], verdict: Verdict) -> None:
    keys = {"metric": "settled_at", "method": "A", "at_least": 1, "at_most": 1000}
    assert judged(settling((values, values)), "within", **keys).verdict == verdict


def test_within_on_one_data_set_and_not_on_another_is_partly() -> None:
    frame = settling(([1, 1], [1, 1]), ([5, 5], [1, 1]))
    finding = judged(frame, "within", metric="settled_at", method="A", at_most=1)
    assert finding.verdict == PARTLY
    assert [effect.outcome for effect in finding.effects] == ["inside", "outside"]


def test_a_run_that_never_settles_is_at_least_as_long_as_any_budget() -> None:
    frame = settling(([NEVER, NEVER], [1, 1]))
    keys = {"metric": "settled_at", "method": "A", "at_least": 1000}
    assert judged(frame, "within", **keys).verdict == YES


SOONER, LATER = ([10, 20], [12, 30]), ([12, 30], [10, 20])
TIE, MIXED = ([10, NEVER], [10.5, NEVER]), ([10, 20], [20, 10])


@pytest.mark.parametrize(
    ("sets", "faster", "as_fast"),
    [
        ((SOONER,), YES, NO),
        ((LATER,), NO, NO),
        ((TIE,), NO, YES),
        ((MIXED,), OPEN, OPEN),
        ((([10, 10], [NEVER, NEVER]),), YES, NO),
        ((([NEVER, NEVER], [10, 10]),), NO, NO),
        ((([NEVER, NEVER], [NEVER, NEVER]),), NO, YES),
        ((([None, 10], [20, 20]),), OPEN, OPEN),
        ((SOONER, SOONER, TIE), YES, NO),
        ((SOONER, SOONER, LATER), PARTLY, NO),
        ((SOONER, TIE), PARTLY, PARTLY),
    ],
)
def test_sooner_and_as_soon(
    sets: tuple[tuple[list[float], list[float]], ...], faster: Verdict, as_fast: Verdict
) -> None:
    for wanted, verdict in ((True, faster), (False, as_fast)):
        found = judged(settling(*sets), "sooner", methods=["A", "B"], faster=wanted)
        assert found.verdict == verdict


def test_a_ratio_of_the_region_is_a_tie() -> None:
    frame = settling(([100, 100], [110, 110]))
    assert judged(frame, "sooner", methods=["A", "B"]).effects[0].outcome == "equal"
