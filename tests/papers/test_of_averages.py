"""What is asked of all data sets at once comes out each way that its rule allows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from planted_frames import planted, together
from planted_grades import MIXED, NO, OPEN, YES, judged, part
from pydantic import ValidationError
from scipy import stats

from svgpbench.papers.grades import Grade
from svgpbench.stats.effects import Outcome
from svgpbench.stats.rules import Rules

SETS = 8


def over_sets(metric: str = "nmae", **methods: list[float | None]) -> pd.DataFrame:
    """A number a method and data set, the same in two folds."""
    return together(
        *(
            planted({m: [x[at], x[at]] for m, x in methods.items()}, metric, data=f"set {at}")
            for at in range(len(next(iter(methods.values()))))
        )
    )


def near(mean: float, spread: float = 0.01) -> list[float | None]:
    """A number a data set, of that mean and median."""
    return [mean + spread * (at - (SETS - 1) / 2) / SETS for at in range(SETS)]


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_a_number_printed_of_other_data_is_shown_and_not_graded(statistic: str) -> None:
    keys = {"metric": "nmae", "statistic": statistic, "method": "A", "printed": 0.301}
    found = judged(over_sets(A=near(0.3)), "average", **keys)
    (effect,) = found.effects
    assert found.grade == Grade.not_testable
    assert effect.value == pytest.approx(0.3)
    assert effect.note.startswith("printed 0.301 of other sets")
    assert effect.held is None
    with pytest.raises(ValidationError, match="never core"):
        part("average", core=True, **keys)


@pytest.mark.parametrize("values", [[None, *near(0.3)[1:]], near(0.3)[:4]], ids=["failed", "few"])
def test_an_average_that_there_is_not_says_why(values: list[float | None]) -> None:
    keys = {"metric": "nmae", "statistic": "mean", "method": "A", "printed": 0.3}
    (effect,) = judged(over_sets(A=values), "average", **keys).effects
    assert effect.value is None
    assert "failed cells" in effect.note or "make an interval" in effect.note


def test_a_data_set_that_no_method_learns_takes_no_part_in_an_average() -> None:
    assert rank_of(A=[*near(0.1)[:7], 0.99], B=[*near(0.2)[:7], 0.98]) == 1.0


def test_data_sets_that_no_method_learns_are_not_counted_either() -> None:
    frame = over_sets(A=[*near(0.1)[:6], 0.99, 1.0])
    keys = {"metric": "nmae", "statistic": "mean", "method": "A", "printed": 0.3}
    (effect,) = judged(frame, "average", **keys).effects
    assert effect.note == "printed 0.3 of other sets; bootstrap over 6 data sets"


def test_a_mean_is_no_median() -> None:
    frame = over_sets(A=[0.1] * 7 + [0.9])
    found = [
        judged(frame, "average", metric="nmae", statistic=s, method="A", printed=0.1)
        for s in ("mean", "median")
    ]
    values = [finding.effects[0].value for finding in found]
    np.testing.assert_allclose(values, [0.2, 0.1], rtol=1e-12)


def rank_of(metric: str = "nmae", **methods: list[float | None]) -> float | None:
    """The average rank of A in the field of all."""
    keys = {"metric": metric, "statistic": "rank", "method": "A", "field": list(methods)}
    (effect,) = judged(over_sets(metric, **methods), "average", **keys, printed=1.0).effects
    return effect.value


def test_an_average_rank_is_that_in_its_field() -> None:
    assert rank_of(A=near(0.1), B=near(0.2), C=near(0.3)) == 1.0
    assert rank_of(A=near(0.2), B=near(0.1), C=near(0.3)) == 2.0


def test_a_failed_cell_has_the_last_rank() -> None:
    assert rank_of(A=[None] * SETS, B=near(0.2)) == 2.0


def test_rank_one_is_the_highest_of_what_is_better_higher() -> None:
    assert rank_of("heldout_elbo", A=near(9.0), B=near(2.0)) == 1.0


def test_the_interval_of_an_average_holds_95_percent_of_resamples() -> None:
    values = [0.1, 0.2, 0.35, 0.3, 0.5, 0.4, 0.7, 0.9]
    keys = {"metric": "nmae", "statistic": "mean", "method": "A", "printed": 0.3}
    (effect,) = judged(over_sets(A=values), "average", **keys).effects
    rows = np.random.default_rng(0).integers(SETS, size=(10_000, SETS))
    means = np.array(values)[rows].mean(axis=1)
    np.testing.assert_allclose([effect.low, effect.high], np.quantile(means, [0.025, 0.975]))


EITHER: list[float | None] = [0.1, 0.3] * (SETS // 2)
OTHER: list[float | None] = [0.3, 0.1] * (SETS // 2)


@pytest.mark.parametrize("statistic", ["mean", "median", "rank"])
@pytest.mark.parametrize(
    ("a", "b", "c", "verdict"),
    [
        (near(0.1), near(0.2), near(0.3), YES),
        (near(0.2), near(0.1), near(0.3), NO),
        (EITHER, OTHER, near(0.9), OPEN),
        (EITHER, OTHER, near(0.01), NO),
    ],
)
def test_leads(
    a: list[float | None],
    b: list[float | None],
    c: list[float | None],
    verdict: Grade,
    statistic: str,
) -> None:
    keys = {"metric": "nmae", "statistic": statistic, "method": "A", "field": ["A", "B", "C"]}
    assert judged(over_sets(A=a, B=b, C=c), "leads", **keys).grade == verdict


@pytest.mark.parametrize(("metric", "gain"), [("nmae", 0.13), ("heldout_elbo", -0.13)])
def test_a_lead_is_that_of_the_data_sets_not_of_their_resamples(metric: str, gain: float) -> None:
    first = [0.0] * SETS
    frame = over_sets(metric, A=first, B=[0.0] * (SETS - 1) + [0.13 * SETS])
    keys = {"metric": metric, "statistic": "mean", "method": "A", "field": ["A", "B"]}
    (effect,) = judged(frame, "leads", **keys).effects
    assert effect.value == pytest.approx(gain, rel=1e-12)


def test_leads_with_a_failed_cell_is_open_but_for_ranks() -> None:
    frame = over_sets(A=near(0.1), B=[None, *near(0.2)[1:]])
    keys = {"metric": "nmae", "method": "A", "field": ["A", "B"]}
    assert judged(frame, "leads", statistic="mean", **keys).grade == OPEN
    assert judged(frame, "leads", statistic="rank", **keys).grade == YES


@pytest.mark.parametrize("statistic", ["mean", "median", "rank"])
def test_who_leads_in_coverage_is_near_its_target_in_every_run(statistic: str) -> None:
    frame = over_sets("coverage", A=near(0.94, 0.001), B=[0.85] * SETS)
    # two runs of B on each set: their mean hits the target of 95 %, and neither does
    frame.loc[(frame["method"] == "B") & (frame["fold"] == 1), "coverage"] = 1.05
    keys = {"metric": "coverage", "statistic": statistic, "field": ["A", "B"]}
    assert judged(frame, "leads", **keys, method="A").grade == YES
    assert judged(frame, "leads", **keys, method="B").grade == NO


@pytest.mark.parametrize("statistic", ["mean", "rank"])
def test_whether_a_lead_lasts_is_open_where_no_trace_tells(statistic: str) -> None:
    frame = over_sets(A=near(0.1), B=near(0.2)).assign(**{"nmae, before": math.nan})
    keys = {"metric": "nmae", "statistic": statistic, "method": "A", "field": ["A", "B"]}
    assert judged(frame, "leads", **keys).grade == YES
    found = judged(frame, "leads", Rules(drift=3.0), **keys)
    assert found.grade == OPEN
    assert found.effects[0].note == "its change over the last quarter is not recorded"


def test_who_leads_is_of_the_field() -> None:
    keys = {"metric": "nmae", "statistic": "mean", "method": "A", "field": ["B", "C"]}
    with pytest.raises(ValidationError, match="not in its field"):
        judged(over_sets(A=near(1.0)), "leads", **keys)


def outputs(*scale: float, of: str = "A") -> pd.DataFrame:
    """Three outputs whose numbers lie so far apart, on as many splits."""
    return together(
        *(
            planted({of: [output * x for x in scale]}, "nmse", data=f"y{output}")
            for output in (1, 2, 3)
        )
    )  # fmt: skip


NARROW, WIDE = (0.1, 0.1, 0.1), (0.3, 0.31, 0.3)


@pytest.mark.parametrize(
    ("a", "b", "c", "verdict"),
    [
        (NARROW, WIDE, WIDE, YES),
        (WIDE, NARROW, NARROW, NO),
        (NARROW, NARROW, NARROW, NO),  # equal
        (NARROW, (0.01, 1.0, 0.1), (0.01, 1.0, 0.1), OPEN),
        (NARROW, WIDE, (0.05, 0.05, 0.05), MIXED),
    ],
)
def test_spread(
    a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...], verdict: Grade
) -> None:
    frame = together(outputs(*a), outputs(*b, of="B"), outputs(*c, of="C"))
    assert judged(frame, "spread", metric="nmse", methods=["A", "B", "C"]).grade == verdict


@pytest.mark.parametrize("flat", ["A", "B", "AB"])
def test_a_method_without_a_spread_leaves_it_open(flat: str) -> None:
    frame = together(outputs(*WIDE), outputs(*WIDE, of="B"))
    frame.loc[frame["method"].isin([*flat]) & (frame["fold"] == 1), "nmse"] = 0.5
    found = judged(frame, "spread", metric="nmse", methods=["A", "B"])
    assert found.grade == OPEN
    assert found.effects[0].note == "no spread over data sets in 1 of 3 runs"


def test_spreads_within_a_tenth_are_equal() -> None:
    frame = together(outputs(*NARROW), outputs(*NARROW, of="B"))
    frame.loc[frame["method"] == "B", "nmse"] *= 1.05
    (effect,) = judged(frame, "spread", metric="nmse", methods=["A", "B"]).effects
    assert effect.outcome == Outcome.equal


def test_a_spread_with_a_failed_cell_is_open() -> None:
    frame = together(outputs(*NARROW), outputs(*WIDE, of="B"))
    frame.loc[0, "status"] = "diverged"
    assert judged(frame, "spread", metric="nmse", methods=["A", "B"]).grade == OPEN


def test_a_spread_is_a_ratio_of_deviations_with_the_error_of_overlapping_splits() -> None:
    b = (0.30, 0.37, 0.33)
    frame = together(outputs(*NARROW), outputs(*b, of="B"))
    (effect,) = judged(frame, "spread", metric="nmse", methods=["A", "B"]).effects
    logs = np.log(np.array(b) / np.array(NARROW))
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) * math.sqrt(1 / 3 + 20 / 80)
    found = [effect.value, effect.low, effect.high]
    expected = np.exp([logs.mean(), logs.mean() - half, logs.mean() + half])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("before", "lasts"), [(0.2, YES), (0.22, YES), (0.25, OPEN)])
def test_a_lead_lasts_if_three_times_its_change_leaves_it(before: float, lasts: Grade) -> None:
    frame = over_sets(A=near(0.1), B=near(0.2))
    earlier = frame["nmae"].where(frame["method"] == "A", before)
    frame = frame.assign(**{"nmae, end": frame["nmae"], "nmae, before": earlier})
    keys = {"metric": "nmae", "statistic": "mean", "method": "A", "field": ["A", "B"]}
    assert judged(frame, "leads", **keys).grade == YES
    assert judged(frame, "leads", Rules(drift=3.0), **keys).grade == lasts
