"""Methods are compared after the same number of steps, and a grade says whether it would last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted_frames import around, planted, reversed_around, together
from planted_grades import AB, DIRECTION, MIXED, NO, OPEN, YES, judged
from planted_traces import NOT_REACHED, converging
from pydantic import ValidationError
from scipy import stats
from test_evidence import traced

from svgpbench.config import TrainingConfig
from svgpbench.papers.grades import Grade
from svgpbench.results.last_quarter import columns_of_ends, ends_of
from svgpbench.results.trace_measures import bound_traces, frame_of
from svgpbench.stats.differences import signed_rank_interval
from svgpbench.stats.rules import DRIFT, Rules

LASTING = Rules(drift=DRIFT)
BATCHES = TrainingConfig(batch_size=10)


def ends(*bound: float, **changes: Any) -> dict[str, float]:
    """The columns of the last quarter of one record on 100 rows with that trace of the bound."""
    one = traced(*bound, **changes)
    return {key: x for key, (x,) in columns_of_ends([one], frame_of([one])).items()}


def test_the_number_of_a_run_is_its_last_evaluation() -> None:
    found = ends(-9.0, -8.0, -5.0, -7.0, -1.0, -3.0, -2.0, -4.0)  # every ten of 80 iterations
    assert (found["elbo, end"], found["elbo, before"]) == (-4.0, -3.0)  # at 80 and at 60
    assert found["elbo, median"] == -3.0  # of those at 60, 70 and 80
    assert found["fall"] == 2.0


def test_on_minibatches_it_is_the_mean_of_the_last_quarter() -> None:
    found = ends(-9.0, -8.0, -5.0, -7.0, -1.0, -3.0, -2.0, -4.0, training=BATCHES)
    assert found["elbo, end"] == -3.0  # at 60, 70 and 80
    assert found["elbo, before"] == -4.0  # at 40 and 50
    assert found["fall"] == 0.0
    assert ends(-1.0, -1.0, -1.0, -1.0, -1.0, -9.0, -9.0, -9.0, training=BATCHES)["fall"] == 8.0


def test_a_hyperparameter_has_quarters_and_a_mean_of_the_trace_has_none() -> None:
    one = traced(*[0.0] * 8)  # the variance is 2 exp(-k)
    before = ends_of(one, "log_variance", math.log(2.0) - 7, minibatches=False).before
    assert before == pytest.approx(math.log(2.0) - 5)
    found = ends(*[0.0] * 8)
    assert found["elbo_area, before"] == found["elbo_area, end"] == 0.0
    assert math.isnan(found["nlpd, before"])  # not recorded, and so not known
    assert math.isnan(ends(-1.0)["elbo, before"])


def ended(
    before: float = 0.1, fall: float = 0.0, of: str = "B", middle: float = 0.1
) -> pd.DataFrame:
    """A better than B by 0.1 in NLPD at the end and by `before` a quarter earlier, on 80 rows.

    The medians over the last quarter differ by `middle`, and the bound of method `of` falls by `fall`.
    """
    frame = planted({"A": reversed_around(0.5), "B": around(0.6)})
    is_b = frame["method"] == "B"
    falls = np.where(frame["method"] == of, fall, 0.0)
    return frame.assign(
        **{
            "nlpd, end": frame["nlpd"],
            "nlpd, before": frame["nlpd"] - np.where(is_b, 0.1 - before, 0.0),
            "nlpd, median": frame["nlpd"] - np.where(is_b, 0.1 - middle, 0.0),
            "fall": falls,
        }
    )


@pytest.mark.parametrize(
    ("before", "lasts"),
    [(0.1, YES), (0.125, YES), (0.075, YES), (0.14, OPEN), (0.06, OPEN), (math.nan, OPEN)],
)
def test_a_grade_lasts_if_three_times_the_change_of_its_difference_leaves_it(
    before: float, lasts: Grade
) -> None:
    frame = ended(before)
    assert judged(frame, "ordering", **AB).grade == YES
    assert judged(frame, "ordering", LASTING, **AB).grade == lasts
    every = judged(frame, "every-run", LASTING, **AB)
    assert every.grade == lasts


def test_whether_a_printed_number_lasts_is_open_where_no_trace_tells() -> None:
    keys = {"metric": "nlpd", "method": "A", "printed": 0.5, "gap": 0.1}
    for before, lasts in ((0.1, YES), (math.nan, OPEN)):
        frame = ended(before, of="A")
        frame["nlpd, before"] += before - 0.1  # NaN for both methods
        assert judged(frame, "number", **keys).grade == YES
        found = judged(frame, "number", LASTING, **keys)
        assert found.grade == lasts
        assert ("is not recorded" in found.effects[0].note) == (lasts == OPEN)


def test_what_keeps_a_grade_that_lasts_open_is_named() -> None:
    (carried,) = judged(ended(0.14), "ordering", LASTING, **AB).effects
    assert carried.note == "its change over the last quarter could carry it over"
    noisy = ended(0.14)
    for column in ("nlpd", "nlpd, end", "nlpd, before", "nlpd, median"):
        noisy[column] += np.array([0.0] * 5 + [0.4, -0.4, 0.4, -0.4, 0.0])
    (noise,) = judged(noisy, "ordering", LASTING, **AB).effects
    assert noise.note.endswith("would decide")


def test_an_interval_is_widened_on_both_sides() -> None:
    (plain,) = judged(ended(0.11), "ordering", **AB).effects
    (wide,) = judged(ended(0.11), "ordering", LASTING, **AB).effects
    assert plain.low is not None and plain.high is not None
    assert (wide.low, wide.high) == (
        pytest.approx(plain.low - 0.03),
        pytest.approx(plain.high + 0.03),
    )


def test_an_unstable_method_has_its_median_over_the_last_quarter() -> None:
    # the region of the bound of 80 rows is 0.08
    for fall, grade in ((0.07, YES), (0.09, NO)):
        frame = ended(middle=-0.1, fall=fall)
        assert judged(frame, "ordering", **AB).grade == grade
    frame = ended(middle=-0.1, fall=9.0)
    frame.loc[frame["fold"] < 3, "fall"] = 0.0  # not in the median run
    assert judged(frame, "ordering", **AB).grade == YES


def test_a_decision_for_an_unstable_method_does_not_last() -> None:
    for of, lasts in (("A", OPEN), ("B", YES)):
        frame = ended(fall=9.0, of=of)
        assert judged(frame, "ordering", **AB).grade == YES
        (effect,) = judged(frame, "ordering", LASTING, **AB).effects
        assert judged(frame, "ordering", LASTING, **AB).grade == lasts
        assert ("A is unstable at its rate" in effect.note) == (of == "A")


def test_that_a_method_is_no_better_does_not_last_where_the_other_is_unstable() -> None:
    for of, lasts in (("A", NO), ("B", OPEN)):
        frame = ended(fall=9.0, of=of)
        frame["nlpd, median"] = np.where(frame["method"] == "A", 0.5, 0.46 + 0.01 * frame["fold"])
        frame["nlpd, before"] = frame["nlpd"]
        assert judged(frame, "ordering", **AB).effects[0].outcome == "no better"
        assert judged(frame, "ordering", LASTING, **AB).grade == lasts


@pytest.mark.parametrize(
    ("mean", "spread", "outcome", "grade"),
    [
        (-0.02, 0.01, "no better", NO),  # below +0.01 as a whole, and reaches beyond -0.01
        (0.0, 1e-4, "equal", NO),
        (0.005, 0.01, "undecided", OPEN),
        (-0.1, 1e-4, "worse", NO),
    ],
)
def test_better_fails_where_the_interval_excludes_every_gain_that_matters(
    mean: float, spread: float, outcome: str, grade: Grade
) -> None:
    frame = planted({"A": reversed_around(0.5, spread / 3), "B": around(0.5 + mean, spread / 3)})
    found = judged(frame, "ordering", **AB)
    assert ([effect.outcome for effect in found.effects], found.grade) == ([outcome], grade)


def test_an_equality_is_not_refuted_by_it() -> None:
    frame = planted({"A": reversed_around(0.5, 0.01 / 3), "B": around(0.48, 0.01 / 3)})
    assert judged(frame, "equality", **AB).grade == OPEN


def test_a_set_on_which_nothing_can_differ_does_not_count() -> None:
    keys = {"metric": "elbo_drop", "methods": ("A", "B")}
    better = planted({"A": reversed_around(1.0), "B": around(2.0)}, "elbo_drop", units="seed")
    none = [
        planted({"A": [0.0] * 5, "B": [0.0] * 5}, "elbo_drop", units="seed", data=f"none {at}")
        for at in range(2)
    ]
    found = judged(together(better, *none), "ordering", **keys)
    assert found.grade == YES
    assert [x.outcome for x in found.effects][1:] == ["the same number in every run"] * 2
    assert judged(together(better, *none), "equality", **keys).grade == MIXED  # there it is equal
    every = judged(together(better, *none), "every-run", **keys)
    assert (every.grade, every.effects) == (YES, (every.effects[0], *found.effects[1:]))
    equal = judged(together(better, *none), "every-run", **keys, wanted="equal")
    assert [x.outcome for x in equal.effects] == ["better", "equal", "equal"]


@pytest.mark.parametrize(("error", "grade"), [(0.18, NO), (0.1905, YES)])
def test_a_set_at_the_error_of_the_most_frequent_class_is_not_learned(
    error: float, grade: Grade
) -> None:
    keys = {"metric": "error_rate", "methods": ("A", "B")}
    learned = planted({"A": reversed_around(0.1), "B": around(0.2)}, "error_rate")
    stuck = [
        planted({"A": reversed_around(error), "B": around(error)}, "error_rate", data=f"set {at}")
        for at in range(2)
    ]
    frame = together(
        learned.assign(constant_error=0.5), *(x.assign(constant_error=0.2) for x in stuck)
    )
    assert judged(frame, "ordering", **keys).grade == grade


def test_a_method_that_did_not_train_is_named_and_its_set_counts() -> None:
    keys = {"metric": "error_rate", "methods": ("A", "B")}
    frame = planted({"A": reversed_around(0.1), "B": around(0.2)}, "error_rate", constant_error=0.2)
    found = judged(frame, "ordering", **keys)
    assert found.grade == YES
    assert found.effects[0].note == "B did not train"


def single(*gains: float, metric: str = "mae", **columns: Any) -> pd.DataFrame:
    """One run a set in which A's error is below B's, which is 2, by these shares."""
    return together(
        *(
            planted({"A": [2.0 * (1.0 - gain)], "B": [2.0]}, metric, data=f"set {at}", **columns)
            for at, gain in enumerate(gains)
        )
    )


GAINS = (0.01, 0.004, 0.006, 0.03, 0.011, 0.002, 0.005)
MAE = {"metric": "mae", "methods": ("A", "B")}


def test_data_sets_are_the_units_where_none_has_an_interval() -> None:
    found = judged(single(*GAINS), "ordering", **MAE)
    first, *others = found.effects
    middle, low, high = signed_rank_interval(np.array(GAINS))
    assert (first.of, first.outcome) == ("7 data sets", "better")
    assert (first.value, first.low, first.high) == pytest.approx((middle, low, high))
    assert [x.value for x in others] == pytest.approx(GAINS)
    assert {x.held for x in others} == {None}
    assert found.grade == YES
    few = judged(single(*GAINS[:5]), "ordering", **MAE)  # five are too few
    assert (few.grade, len(few.effects)) == (OPEN, 5)
    starts = together(*(single(*GAINS).assign(seed=seed) for seed in range(5)))
    assert len(judged(starts, "ordering", **MAE).effects) == 7  # five starts make an interval
    one = planted({"A": reversed_around(1.0), "B": around(2.0)}, "mae", units="seed", data="one")
    assert len(judged(together(single(*GAINS), one), "ordering", **MAE).effects) == 8


def test_over_data_sets_a_tendency_is_against_zero_and_the_rest_against_the_region() -> None:
    small = [0.001, 0.002, 0.0015, 0.0012, 0.0018, 0.0011, 0.0021]  # within the region of 1 %
    assert judged(single(*small), "ordering", **MAE).effects[0].outcome == "equal"
    assert judged(single(*small), "ordering", **MAE, at_least=True).grade == YES
    keys = MAE | {"printed_effect": 0.0034, "smallest_effect": 0.0005}
    assert judged(single(*small), "ordering", **keys).grade == YES
    losses = [-gain for gain in GAINS]
    assert judged(single(*losses), "ordering", **MAE).effects[0].outcome == "worse"
    mixed = [-0.02, 0.002, -0.01, 0.004, -0.03, 0.001, 0.003]
    assert judged(single(*mixed), "ordering", **MAE).effects[0].outcome == "no better"
    wide = [-0.2, 0.2, -0.1, 0.4, -0.3, 0.1, 0.3]
    assert judged(single(*wide), "ordering", **MAE).grade == OPEN


def test_a_set_where_one_method_did_not_train_is_named_and_left_out_of_the_units() -> None:
    frame = single(*GAINS, metric="error_rate", constant_error=3.0)
    odd = planted({"A": [0.1], "B": [2.9]}, "error_rate", data="odd", constant_error=3.0)
    keys = {"metric": "error_rate", "methods": ("A", "B")}
    first = judged(together(frame, odd), "ordering", **keys).effects[0]
    assert first.of == "7 data sets"
    assert first.note == "B did not train on odd"


def test_over_data_sets_a_decision_lasts_unless_its_method_is_unstable_on_most() -> None:
    frame = single(*GAINS)
    frame = frame.assign(**{"mae, before": frame["mae"]})
    names = sorted(frame["data"].unique())
    for of, sets, lasts in (("A", 3, YES), ("A", 4, OPEN), ("B", 7, YES)):
        falls = frame["data"].isin(names[:sets]) & (frame["method"] == of)
        unstable = frame.assign(fall=np.where(falls, 9.0, 0.0))
        assert judged(unstable, "ordering", **MAE).grade == YES
        found = judged(unstable, "ordering", LASTING, **MAE)
        assert found.grade == lasts
        told = "A is unstable at its rate on 4 of 7 data sets" in found.effects[0].note
        assert told == (lasts == OPEN)


def test_a_failed_cell_counts_beside_the_units() -> None:
    broken = planted({"A": [None], "B": [2.0]}, "mae", data="broken")
    assert judged(together(single(*GAINS), broken), "ordering", **MAE).grade == MIXED


@pytest.mark.parametrize("values", [GAINS, (-0.3, 0.1, 0.2, 0.4, 0.7, 0.9, 1.2, 1.3)])
def test_the_interval_by_signed_ranks_excludes_what_the_test_refuses(
    values: tuple[float, ...],
) -> None:
    x = np.array(values)
    _, low, high = signed_rank_interval(x)
    span = high - low
    for shift, refused in (
        (low - 1e-9 * span, True),
        (low + 1e-9 * span, False),
        (high - 1e-9 * span, False),
        (high + 1e-9 * span, True),
    ):
        p = stats.wilcoxon(x - shift, method="exact").pvalue
        assert (p <= 0.05) == refused
    assert signed_rank_interval(x[:5])[1:] == (-math.inf, math.inf)


def test_a_smallest_effect_lies_below_the_printed_one() -> None:
    with pytest.raises(ValidationError, match="a smallest effect lies below the printed one"):
        judged(single(*GAINS), "ordering", **MAE, smallest_effect=0.01, printed_effect=0.01)
    with pytest.raises(ValidationError, match="give printed_effect"):
        judged(single(*GAINS), "ordering", **MAE, smallest_effect=0.01)


# the exact model has an RMSE of .3, so that its gain over a constant is .7, and 5 % of it .035
@pytest.mark.parametrize(
    ("rmse", "near", "far"),
    [(0.31, YES, NO), (0.33, YES, NO), (0.34, NO, YES), (0.335, OPEN, OPEN)],
)
def test_a_region_is_a_share_of_what_a_method_gains_over_a_constant(
    rmse: float, near: Grade, far: Grade
) -> None:
    frame = planted({"exact": reversed_around(0.3), "sparse": around(rmse)}, "rmse")
    keys: dict[str, Any] = {"metric": "rmse", "gain_share": 0.05, "gain_of": "exact"}
    sparse = {"methods": ("sparse", "exact"), "at_least": True}
    assert judged(frame, "ordering", **keys, **sparse).grade == near
    assert judged(frame, "ordering", **keys, methods=("exact", "sparse")).grade == far


def test_over_data_sets_each_difference_is_a_share_of_the_gain_on_its_own_set() -> None:
    # the exact model gains .1 on the first set and .7 on the others
    exact, losses = [0.9, *[0.3] * 6], [0.003, *(0.02 + at / 1e4 for at in range(6))]
    sets = [
        planted({"exact": [x], "sparse": [x + loss]}, "rmse", data=f"set {at}")
        for at, (x, loss) in enumerate(zip(exact, losses, strict=True))
    ]
    keys = {"metric": "rmse", "methods": ("sparse", "exact"), "gain_of": "exact", "at_least": True}
    for order in (sets, sets[::-1]):
        for share, grade in ((0.05, YES), (0.025, NO)):
            found = judged(together(*order), "ordering", **keys, gain_share=share)
            assert found.grade == grade
        values = {x.of: x.value for x in found.effects}
        assert values["set 0"] == pytest.approx(-0.03)
        assert values["set 1"] == pytest.approx(-0.02 / 0.7)


def test_the_constant_of_a_density_is_the_standard_normal() -> None:
    exact = 0.5 * math.log(2.0 * math.pi) + 0.5 - 1.0  # a gain of one nat
    keys = {"metric": "nlpd", "gain_share": 0.1, "gain_of": "exact", "at_least": True}
    for loss, grade in ((0.09, YES), (0.11, NO)):
        values = {"exact": reversed_around(exact), "sparse": around(exact + loss)}
        found = judged(planted(values), "ordering", **keys, methods=("sparse", "exact"))
        assert found.grade == grade


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"gain_of": "C"}, "one of the methods that are compared"),
        ({"gain_of": "A", "metric": "mae"}, "for the metrics rmse, nlpd"),
        ({"gain_of": "A", "smallest_effect": 0.1, "printed_effect": 1.0}, "give one of them"),
    ],
)
def test_a_share_of_a_gain_is_refused_where_there_is_none(keys: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        judged(single(*GAINS), "ordering", **{**AB, "gain_share": 0.1, **keys})


def test_a_bound_on_minibatches_starts_where_it_was_first_evaluated() -> None:
    bound = [-1000.0, -5.0, -4.0, -3.0, -2.0, *[-1.0] * 35]
    (found,) = bound_traces([traced(*bound, training=BATCHES)])
    assert found.start == -1000.0
    assert found.bound[0] == -4.0  # the median of the first five
    assert found.converges(found.start, 0.05) == 10
    (found,) = bound_traces([traced(math.nan, -7.0, -1.0)])
    assert found.start == -7.0


def seeds(a: list[float], b: list[float]) -> pd.DataFrame:
    """T of A and of B with some starts."""
    frame = converging({"A": a, "B": b})
    return frame.assign(seed=frame["fold"], fold=0)


def test_who_is_sooner_is_the_mean_log_ratio_over_starts() -> None:
    a, b = [10.0, 11, 9, 10, 12], [20.0, 23, 17, 19, 25]
    found = judged(seeds(a, b), "sooner", methods=["A", "B"])
    logs = np.log(np.array(b) / np.array(a))
    half = stats.t.ppf(0.975, 4) * logs.std(ddof=1) / math.sqrt(5)
    (effect,) = found.effects
    assert found.grade == YES
    assert (effect.value, effect.low, effect.high) == pytest.approx(
        tuple(np.exp([logs.mean(), logs.mean() - half, logs.mean() + half]))
    )
    assert effect.note == "sooner in 5 of 5 runs, later in 0"
    # one run of five has no veto, and asks for every run if it is told to
    veto = seeds([10.0, 10, 10, 10, 20], [20.0, 21, 22, 20, 20])
    assert judged(veto, "sooner", methods=["A", "B"], every_run=True).grade == OPEN
    mean = judged(seeds([10.0] * 5, [20.0, 21, 22, 20, 13]), "sooner", methods=["A", "B"])
    assert mean.grade == YES


def test_a_run_that_has_not_converged_counts_with_its_budget() -> None:
    found = judged(seeds([10.0] * 5, [NOT_REACHED] * 4 + [20.0]), "sooner", methods=["A", "B"])
    logs = np.log([1e4] * 4 + [2.0])
    assert found.effects[0].value == pytest.approx(math.exp(logs.mean()))


@pytest.mark.parametrize(
    ("won", "lost", "grade"), [(20, 5, DIRECTION), (5, 20, NO), (13, 12, OPEN), (0, 0, OPEN)]
)
def test_a_direction_without_a_size_is_a_share_of_the_runs(
    won: int, lost: int, grade: Grade
) -> None:
    a, b = [0.0] * won + [1.0] * lost + [0.5] * 3, [1.0] * won + [0.0] * lost + [0.5] * 3
    found = judged(planted({"A": a, "B": b}), "more-often", **AB)
    assert found.grade == grade
    if won + lost:
        interval = stats.binomtest(won, won + lost).proportion_ci(method="exact")
        (effect,) = found.effects
        assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))
        assert effect.note == f"better in {won} runs, worse in {lost}, the same in 3"


def test_a_direction_is_of_the_data_sets_that_a_method_learns() -> None:
    some = planted({"A": [0.5] * 6, "B": [0.6] * 6}).assign(nmae=0.5)
    none = planted({"A": [0.6] * 9, "B": [0.5] * 9}, data="none").assign(nmae=1.0)
    found = judged(together(some, none), "more-often", **AB)
    assert found.grade == DIRECTION
    assert found.effects[0].note == "better in 6 runs, worse in 0, the same in 0"


@pytest.mark.parametrize("failed", ["A", "B", "AB"])
def test_a_direction_is_open_where_all_runs_of_a_method_failed(failed: str) -> None:
    values = {name: [None if name in failed else 0.5] * 6 for name in "AB"}
    found = judged(planted(values), "more-often", **AB)
    assert (found.grade, found.effects[0].note) == (OPEN, "no two runs differ")


def rated(values: dict[str, dict[float, list[float]]], metric: str, **columns: Any) -> pd.DataFrame:
    """Runs of methods at rates, one a seed."""
    return together(
        *(
            planted({f"{name} {rate:g}": of}, metric, units="seed", e_rate=rate, **columns)
            for name, by_rate in values.items()
            for rate, of in by_rate.items()
        )
    )


SENSITIVE = {"metric": "nlpd", "more": ("A 1", "A 10"), "less": ("B 1", "B 10")}


@pytest.mark.parametrize(
    ("a", "grade"),
    [
        ([3.0, 3.1, 3.2], YES),
        ([1.1, 1.2, 1.15], NO),
        ([1.8, 1.8, 1.8], NO),
        ([1.2, 3.0, 3.0], OPEN),
    ],
)
def test_the_more_sensitive_method_has_the_wider_range_over_the_rates(
    a: list[float], grade: Grade
) -> None:
    frame = rated({"A": {1: [1.0] * 3, 10: a}, "B": {1: [0.5] * 3, 10: [1.5] * 3}}, "nlpd")
    assert judged(frame, "sensitive", **SENSITIVE).grade == grade
    two = frame[frame["seed"] < 2]
    assert judged(two, "sensitive", **SENSITIVE).grade == OPEN


def test_a_rate_that_failed_makes_a_range_infinite() -> None:
    frame = rated({"A": {1: [1.0] * 3, 10: [None] * 3}, "B": {1: [1.0] * 3, 10: [9.0] * 3}}, "nlpd")  # type: ignore[list-item]
    assert judged(frame, "sensitive", **SENSITIVE).grade == YES
    turned = SENSITIVE | {"more": SENSITIVE["less"], "less": SENSITIVE["more"]}
    for metric in ("nlpd", "rmse"):  # with a region of its own, and with a share
        renamed = frame.rename(columns={"nlpd": metric})
        assert judged(renamed, "sensitive", **(turned | {"metric": metric})).grade == NO


def test_a_range_of_coverage_is_one_of_distances_from_its_target() -> None:
    a, b = {1: [0.90] * 3, 10: [1.0] * 3}, {1: [0.95] * 3, 10: [0.90] * 3}
    keys = SENSITIVE | {"metric": "coverage", "more": ("B 1", "B 10"), "less": ("A 1", "A 10")}
    assert judged(rated({"A": a, "B": b}, "coverage"), "sensitive", **keys).grade == YES


def test_a_run_in_which_a_rate_of_both_failed_decides_nothing() -> None:
    a, b = [9.0, 9.0, 9.0], [2.0, 2.0, 2.0]
    frame = rated({"A": {1: [1.0] * 3, 10: a}, "B": {1: [1.0] * 3, 10: b}}, "nlpd")
    assert judged(frame, "sensitive", **SENSITIVE).grade == YES
    failed = (frame["seed"] == 0) & frame["method"].isin(["A 10", "B 10"])
    frame.loc[failed, ["nlpd", "status"]] = [math.nan, "diverged"]
    assert judged(frame, "sensitive", **SENSITIVE).grade == OPEN


TOLERATES = {
    "metric": "elbo",
    "rate": "e_rate",
    "first": ("A 1", "A 10"),
    "second": ("B 1", "B 10"),
}


@pytest.mark.parametrize(
    ("a", "b", "grade"),
    [
        ([-1.0] * 3, [-50.0] * 3, YES),
        ([-1.0] * 3, [-1.0] * 3, NO),
        ([-50.0] * 3, [-1.0] * 3, NO),
        ([-1.0, -1.0, -12.0], [-50.0] * 3, NO),  # more than a tenth of the way from -100 is left
        ([-1.0, -1.0, -10.0], [-50.0] * 3, YES),
    ],
)
def test_the_largest_rate_that_works_is_within_a_tenth_of_the_way(
    a: list[float], b: list[float], grade: Grade
) -> None:
    frame = rated({"A": {1: [-1.0] * 3, 10: a}, "B": {1: [-1.0] * 3, 10: b}}, "elbo")
    (start,) = bound_traces([traced(-100.0, -1.0)])
    frame["bound_trace"] = [start] * len(frame)
    assert judged(frame, "tolerates", **TOLERATES).grade == grade
