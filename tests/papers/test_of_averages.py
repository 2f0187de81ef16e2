"""What is asked of all data sets at once comes out each way that its rule allows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from planted_frames import planted, together
from planted_verdicts import NO, OPEN, PARTLY, YES, judged
from pydantic import ValidationError

from svgpbench.papers.verdict import Outcome, Verdict, on_stand_in

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


AVERAGES = [
    (near(0.3), {"printed": 0.301, "gap": 0.1}, YES),
    (near(0.3), {"printed": 0.4, "gap": 0.1}, NO),
    (near(0.3, 1.0), {"printed": 0.3, "gap": 0.1}, OPEN),  # wider than the gap
    (near(0.3), {"printed": 0.35, "spread": 0.05, "gap": 0.1}, YES),  # as printed, widened
    ([None, *near(0.3)[1:]], {"printed": 0.3, "gap": 0.1}, OPEN),
    (near(0.3)[:4], {"printed": 0.3, "gap": 0.1}, OPEN),  # too few data sets
]


@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize(("values", "keys", "verdict"), AVERAGES)
def test_average(
    values: list[float | None], keys: dict[str, float], verdict: Verdict, statistic: str
) -> None:
    finding = judged(
        over_sets(A=values), "average", metric="nmae", statistic=statistic, method="A", **keys
    )
    assert finding.verdict == verdict


def test_a_mean_is_no_median() -> None:
    frame = over_sets(A=[0.1] * 7 + [0.9])
    found = [
        judged(frame, "average", metric="nmae", statistic=s, method="A", printed=0.1, gap=1.0)
        for s in ("mean", "median")
    ]
    values = [finding.effects[0].value for finding in found]
    np.testing.assert_allclose(values, [0.2, 0.1], rtol=1e-12)


@pytest.mark.parametrize(("printed", "verdict"), [(1.0, YES), (2.5, NO)])
def test_average_rank_is_that_in_its_field(printed: float, verdict: Verdict) -> None:
    frame = over_sets(A=near(0.1), B=near(0.2), C=near(0.3))
    keys = {"metric": "nmae", "statistic": "rank", "method": "A", "field": ["A", "B", "C"]}
    assert judged(frame, "average", **keys, printed=printed, gap=1.0).verdict == verdict


def test_a_failed_cell_has_the_last_rank() -> None:
    frame = over_sets(A=[None] * SETS, B=near(0.2))
    keys = {"metric": "nmae", "statistic": "rank", "method": "A", "field": ["A", "B"]}
    assert judged(frame, "average", **keys, printed=2.0, gap=1.0).verdict == YES


def test_rank_one_is_the_highest_of_what_is_better_higher() -> None:
    frame = over_sets("heldout_elbo", A=near(9.0), B=near(2.0))
    keys = {"metric": "heldout_elbo", "statistic": "rank", "method": "A", "field": ["A", "B"]}
    assert judged(frame, "average", **keys, printed=1.0, gap=1.0).verdict == YES


MIXED: list[float | None] = [0.1, 0.3] * (SETS // 2)
OTHER: list[float | None] = [0.3, 0.1] * (SETS // 2)


@pytest.mark.parametrize("statistic", ["mean", "median", "rank"])
@pytest.mark.parametrize(
    ("a", "b", "c", "verdict"),
    [
        (near(0.1), near(0.2), near(0.3), YES),
        (near(0.2), near(0.1), near(0.3), NO),
        (MIXED, OTHER, near(0.9), OPEN),
        (MIXED, OTHER, near(0.01), NO),
    ],
)
def test_leads(
    a: list[float | None],
    b: list[float | None],
    c: list[float | None],
    verdict: Verdict,
    statistic: str,
) -> None:
    keys = {"metric": "nmae", "statistic": statistic, "method": "A", "field": ["A", "B", "C"]}
    assert judged(over_sets(A=a, B=b, C=c), "leads", **keys).verdict == verdict


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
    assert judged(frame, "leads", statistic="mean", **keys).verdict == OPEN
    assert judged(frame, "leads", statistic="rank", **keys).verdict == YES


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
        (NARROW, WIDE, (0.05, 0.05, 0.05), PARTLY),
    ],
)
def test_spread(
    a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...], verdict: Verdict
) -> None:
    frame = together(outputs(*a), outputs(*b, of="B"), outputs(*c, of="C"))
    assert judged(frame, "spread", metric="nmse", methods=["A", "B", "C"]).verdict == verdict


def test_spreads_within_a_tenth_are_equal() -> None:
    frame = together(outputs(*NARROW), outputs(*NARROW, of="B"))
    frame.loc[frame["method"] == "B", "nmse"] *= 1.05
    (effect,) = judged(frame, "spread", metric="nmse", methods=["A", "B"]).effects
    assert effect.outcome == Outcome.equal


def test_a_spread_with_a_failed_cell_is_open() -> None:
    frame = together(outputs(*NARROW), outputs(*WIDE, of="B"))
    frame.loc[0, "status"] = "diverged"
    assert judged(frame, "spread", metric="nmse", methods=["A", "B"]).verdict == OPEN


def test_the_spread_is_the_ratio_of_deviations() -> None:
    frame = together(outputs(*NARROW), outputs(*NARROW[:2], 0.1, of="B"))
    frame.loc[frame["method"] == "B", "nmse"] *= 4.0
    (effect,) = judged(frame, "spread", metric="nmse", methods=["A", "B"]).effects
    np.testing.assert_allclose([effect.value or 0.0], [4.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("found", "said"), [(YES, PARTLY), (NO, OPEN), (PARTLY, PARTLY), (OPEN, OPEN)]
)
def test_a_stand_in_neither_reproduces_nor_refutes(found: Verdict, said: Verdict) -> None:
    assert on_stand_in(found) == said
