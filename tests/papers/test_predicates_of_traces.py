"""What is read off a trace decides each way that its rule allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from planted_frames import planted, together
from planted_grades import DIRECTION, MIXED, NO, OPEN, YES, judged
from planted_traces import NOT_REACHED, When, converging, on_sets

from svgpbench.papers.grades import Grade
from svgpbench.stats.rules import Rules


@pytest.mark.parametrize(
    ("values", "grade"),
    [
        ([0.9, 0.95, 1.0], YES),
        ([0.95, 0.8], MIXED),
        ([0.8, 0.7], NO),
        ([1.5], NO),
        ([0.95, None], OPEN),
    ],
)
def test_within(values: list[float | None], grade: Grade) -> None:
    keys = {"metric": "coverage", "method": "A", "at_least": 0.9, "at_most": 1.0}
    assert judged(planted({"A": values}, "coverage"), "within", **keys).grade == grade


def test_within_is_open_where_a_run_failed_whatever_its_trace_says() -> None:
    frame = planted({"A": [0.1, 0.2, 0.3]}, "noise_variance")
    keys = {"metric": "noise_variance", "method": "A", "at_most": 1.0}
    assert judged(frame, "within", **keys).grade == YES
    frame.loc[1, "status"] = "diverged"
    assert judged(frame, "within", **keys).grade == OPEN


def test_within_on_one_data_set_and_not_on_another_is_mixed() -> None:
    """Data sets stand in the order of the records."""
    frame = together(
        planted({"A": [1.0]}, "coverage", data="y"), planted({"A": [0.1]}, "coverage", data="x")
    )
    found = judged(frame, "within", metric="coverage", method="A", at_least=0.9)
    assert found.grade == MIXED
    assert [effect.outcome for effect in found.effects] == ["inside", "outside"]


@pytest.mark.parametrize(
    ("times", "grade"),
    [
        ([1, 1000], YES),
        ([1, 1001], MIXED),
        ([2000, NOT_REACHED], NO),
        ([1, None], OPEN),
        ([(1, 10, 1000)], YES),
        ([(1, 10, 2000)], MIXED),  # holds at 5 % and 1 %, fails at 0.1 %
    ],
)
def test_converges_within(times: list[When], grade: Grade) -> None:
    found = judged(converging({"A": times}), "converges", method="A", at_most=1000)
    assert found.grade == grade


def test_a_claim_that_turns_with_the_tolerance_says_where() -> None:
    found = judged(converging({"A": [(1, 10, 2000)]}), "converges", method="A", at_most=1000)
    assert found.note == "holds at 5 % and 1 %, fails at 0.1 %"
    (effect,) = found.effects
    assert effect.outcome == "turns with the tolerance"
    assert (effect.value, effect.held) == (10, None)


def test_a_run_that_never_converges_is_at_least_as_long_as_any_budget() -> None:
    frame = converging({"A": [NOT_REACHED, NOT_REACHED]})
    assert judged(frame, "converges", method="A", at_least=1000).grade == YES


def test_the_way_starts_at_the_larger_first_bound_of_those_compared() -> None:
    frame = converging({"A": [10], "B": [10]})
    frame["bound_trace"] = [
        x._replace(bound=np.array(bound), start=bound[0])
        for x, bound in zip(frame["bound_trace"], ([0.0, 0.96, 0.96], [0.9, 1.0, 1.0]), strict=True)
    ]
    alone = judged(frame, "converges", method="A", at_most=10).note
    beside = judged(frame, "converges", method="A", beside=["B"], at_most=10).note
    assert alone == "holds at 5 %, fails at 1 % and 0.1 %"
    assert beside == ""  # 0.96 is not within 5 % of the way from 0.9 to 1
    lower = judged(
        frame, "converges", Rules(lower_start=True), method="A", beside=["B"], at_most=10
    )
    assert lower.note == alone


SOONER, LATER = ([10, 20], [12, 30]), ([12, 30], [10, 20])
TIE, BOTH_WAYS = ([10, 20], [10.5, 20]), ([10, 20], [20, 10])
CENSORED = ([NOT_REACHED, NOT_REACHED], [NOT_REACHED, NOT_REACHED])
Sets = tuple[tuple[Sequence[When], Sequence[When]], ...]


@pytest.mark.parametrize(
    ("sets", "faster", "as_fast"),
    [
        ((SOONER,), YES, NO),
        ((LATER,), NO, NO),
        ((TIE,), NO, YES),
        ((BOTH_WAYS,), OPEN, OPEN),
        ((([10, 10], [NOT_REACHED, NOT_REACHED]),), YES, NO),
        ((([NOT_REACHED, NOT_REACHED], [10, 10]),), NO, NO),
        ((CENSORED,), OPEN, OPEN),  # what is censored twice is no tie
        ((CENSORED, CENSORED, SOONER), YES, NO),  # and does not vote
        ((([NOT_REACHED, 10], [NOT_REACHED, 20]),), YES, NO),
        ((([None, 10], [20, 20]),), OPEN, OPEN),
        ((SOONER, SOONER, TIE), YES, NO),
        ((SOONER, SOONER, LATER), MIXED, NO),
        ((SOONER, TIE), MIXED, MIXED),
    ],
)
def test_sooner_and_as_soon(sets: Sets, faster: Grade, as_fast: Grade) -> None:
    for wanted, grade in ((True, faster), (False, as_fast)):
        found = judged(on_sets(*sets), "sooner", methods=["A", "B"], faster=wanted)
        assert found.grade == grade


@pytest.mark.parametrize(
    ("a", "b", "grade", "note"),
    [
        ((1, 2, 3), (10, 20, 30), YES, ""),
        ((1, 2, 300), (10, 20, 30), MIXED, "holds at 5 % and 1 %, fails at 0.1 %"),
        (
            (1, 2, NOT_REACHED),
            (10, 20, NOT_REACHED),
            YES,
            "holds at 5 % and 1 %, censored at 0.1 %",
        ),
        ((1, 2, NOT_REACHED), (10, 20, 30), MIXED, "holds at 5 % and 1 %, fails at 0.1 %"),
        ((10, 20, 30), (1, 2, 3), NO, ""),
        ((NOT_REACHED,) * 3, (NOT_REACHED,) * 3, OPEN, "censored at 5 % and 1 % and 0.1 %"),
    ],
)
def test_three_tolerances_agree_or_the_claim_is_mixed(
    a: When, b: When, grade: Grade, note: str
) -> None:
    found = judged(on_sets(([a], [b])), "sooner", methods=["A", "B"])
    assert (found.grade, found.note) == (grade, note)


def test_one_tolerance_alone_shows_what_the_grade_hangs_on() -> None:
    frame = on_sets(([(1, 2, 300)], [(10, 20, 30)]))
    alone = [
        judged(frame, "sooner", Rules(tolerances=(each,)), methods=["A", "B"]).grade
        for each in (0.05, 0.01, 0.001)
    ]
    assert alone == [YES, YES, NO]


@pytest.mark.parametrize(
    ("sets", "grade"),
    [
        ((([10], [30]),), YES),
        ((([10], [15]),), DIRECTION),  # sooner, and not by the claimed half
        ((([10], [15]), ([10], [30])), DIRECTION),
        ((([10], [10.5]),), NO),
        ((([30], [10]),), NO),
        ((([10], [30]), ([30], [10])), MIXED),
    ],
)
def test_sooner_by_a_claimed_ratio(sets: Sets, grade: Grade) -> None:
    assert judged(on_sets(*sets), "sooner", methods=["A", "B"], ratio=2.0).grade == grade


def test_a_ratio_of_the_region_is_a_tie() -> None:
    frame = on_sets(([100, 100], [110, 110]))
    assert judged(frame, "sooner", methods=["A", "B"]).effects[0].outcome == "equal"


def test_a_pair_is_of_one_split_fold_and_seed() -> None:
    frame = converging({"A": [10, 20], "B": [12, 30]})
    frame["split_seed"], frame["fold"] = frame["fold"], 0
    assert judged(frame, "sooner", methods=["A", "B"]).grade == YES


def drifting(*ranges: float, when: When = 10) -> pd.DataFrame:
    frame = converging({"A": [when] * len(ranges)})
    return frame.assign(
        theta=[
            pd.DataFrame({"variance": [9.0, 0.0, 0.0, x], "noise_variance": 0.0}, [1, 10, 11, 20])
            for x in ranges
        ]
    )


@pytest.mark.parametrize(
    ("ranges", "grade"), [((0.06, 0.2), YES), ((0.06, 0.01), MIXED), ((0.01,), NO)]
)
def test_hyperparameters_drift_after_the_bound_has_converged(
    ranges: tuple[float, ...], grade: Grade
) -> None:
    assert judged(drifting(*ranges), "drifts", method="A", at_least=0.05).grade == grade


def test_drifts_stand_in_the_order_of_the_records() -> None:
    frame = together(drifting(0.2).assign(data="y"), drifting(0.01).assign(data="x"))
    found = judged(frame, "drifts", method="A", at_least=0.05)
    assert [effect.outcome for effect in found.effects] == ["inside", "outside"]


def test_where_the_bound_never_converges_nothing_is_said_of_a_drift() -> None:
    frame = drifting(1.0, when=NOT_REACHED)
    assert judged(frame, "drifts", method="A", at_least=0.05).grade == OPEN
