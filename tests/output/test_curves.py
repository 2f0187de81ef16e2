"""A curve is the mean and standard error over replicates of every iteration, and ends where one fails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hand_records import cell, record

from svgpbench.config import SplitConfig, TrainingConfig
from svgpbench.output.curves import Curve, curves, leaves, limits
from svgpbench.results.frames import trace_frame
from svgpbench.results.records import Record


def traced(
    elbo: Sequence[float | None], status: str = "ok", *, iteration: Sequence[int] = (), **of: Any
) -> Record:
    """A record with this trace; `of` says of which cell."""
    at = list(iteration) or list(range(1, len(elbo) + 1))
    negated = [None if value is None else -value for value in elbo]
    columns = {"iteration": at, "elbo": elbo, "nlpd": negated, "seconds": [0.0] * len(elbo)}
    return record(cell(**of), status=status, trace=columns)  # type: ignore[arg-type]


def curve(*records: Record, metric: str = "elbo") -> Curve:
    (found,) = curves(trace_frame(records), metric)
    return found


THREE = [
    traced(values, fold=fold)
    for fold, values in enumerate(([1, 10, 100], [2, 20, 200], [6, 60, 600]))
]


def test_mean_and_band_of_every_iteration_by_hand() -> None:
    found = curve(*THREE)
    assert found.mean.tolist() == [3.0, 30.0, 300.0]
    assert found.error.tolist() == [0.0] * 3  # of the bound, which one start a fold says nothing of
    # 1 2 6: mean 3, deviations −2 −1 3, variance 14/2, of which a third and n_test/n_train
    density = curve(*THREE, metric="nlpd")
    by_hand = np.sqrt(7 * (1 / 3 + 1 / 2)) * np.array([1, 10, 100])
    np.testing.assert_allclose(density.error, by_hand, rtol=1e-14)
    assert found.x.tolist() == [1, 2, 3]
    assert (found.replicates, found.broke_at, found.last) == (3, None, 300.0)
    # neither the median (2) nor the best (6); of the other metric, its own
    assert curve(*THREE, metric="nlpd").mean.tolist() == [-3.0, -30.0, -300.0]


def test_the_band_of_the_bound_is_that_of_five_starts() -> None:
    starts = [
        traced([seed + 10.0 * fold], fold=fold, seed=seed, iterations=1)
        for fold in range(2)
        for seed in (0, 1, 2, 3, 4)
    ]
    assert curve(*starts).error == pytest.approx(math.sqrt(2.5 / 5))  # folds do not count
    assert curve(*starts[:4]).error.tolist() == [0.0]


def test_each_method_has_its_own_curve_in_order_of_appearance() -> None:
    records = [traced([5.0, 7.0], method="B", iterations=2), traced([1.0, 2.0], iterations=2)]
    found = curves(trace_frame(records), "elbo")
    assert [(line.method, line.mean.tolist()) for line in found] == [("B", [5, 7]), ("A", [1, 2])]


def test_one_replicate_has_a_curve_and_a_band_of_no_width() -> None:
    found = curve(THREE[1])
    assert (found.mean.tolist(), found.error.tolist(), found.replicates) == (
        [2, 20, 200],
        [0] * 3,
        1,
    )


@pytest.mark.parametrize("status", ["not_pd", "diverged"])
def test_a_curve_ends_with_the_last_iteration_that_all_reached(status: str) -> None:
    found = curve(*THREE[:2], traced([6.0], status, fold=2))
    # at 2 and 3 the mean of those left would be 15 and 150
    assert (found.x.tolist(), found.mean.tolist()) == ([1.0], [3.0])
    assert (found.broke_at, found.replicates) == (2, 3)


def test_all_that_fail_at_one_iteration_break_the_curve_there_too() -> None:
    found = curve(*(traced([1.0, 2.0], "not_pd", fold=fold) for fold in (0, 1)))
    assert (found.broke_at, found.mean.tolist()) == (3, [1.0, 2.0])


def test_a_value_that_is_missing_ends_the_curve_and_is_not_bridged() -> None:
    found = curve(traced([1.0, None, 3.0]), traced([1.0, 2.0, 3.0], fold=1))
    assert (found.x.tolist(), found.broke_at) == ([1.0], 2)


def test_a_method_with_a_replicate_that_failed_at_once_has_no_points() -> None:
    (found,) = curves(trace_frame(THREE), "elbo", ["A"])
    assert (len(found.mean), found.broke_at, math.isnan(found.last)) == (0, 1, True)
    # and one of which no replicate has a point has an empty curve
    other, gone = curves(trace_frame(THREE), "elbo", ["B"])
    assert (len(other.mean), gone.method, len(gone.mean), gone.broke_at) == (3, "B", 0, 1)


def test_a_sparse_trace_that_reaches_the_end_is_not_broken() -> None:
    training = TrainingConfig(em_iterations=8, trace_every=3)
    whole = [
        traced([1.0, 2.0, 3.0, 4.0], iteration=[1, 3, 6, 8], fold=f, training=training)
        for f in (0, 1)
    ]
    assert (curve(*whole).broke_at, curve(*whole).x.tolist()) == (None, [1, 3, 6, 8])
    failed = traced([1.0, 2.0], "not_pd", iteration=[1, 3], fold=2, training=training)
    assert (curve(*whole, failed).broke_at, curve(*whole, failed).x.tolist()) == (4, [1, 3])


def test_replicates_need_be_no_full_grid_of_splits_folds_and_seeds() -> None:
    """A run stopped halfway has some seeds of some folds; a cell that is not there is no failure."""
    some = [traced([1.0], seed=0, iterations=1), traced([2.0], seed=1, iterations=1)]
    some.append(traced([6.0], fold=1, seed=0, iterations=1))
    found = curve(*some)
    assert (found.mean.tolist(), found.replicates, found.broke_at) == ([3.0], 3, None)
    random = [
        traced([x], split=SplitConfig(kind="random", seed=seed), seed=seed, iterations=1)
        for seed, x in enumerate((1.0, 2.0, 6.0))
    ]
    assert (curve(*random).mean.tolist(), curve(*random).replicates) == ([3.0], 3)


def line(*values: float, error: float = 0.0, broke_at: int | None = None) -> Curve:
    mean = np.asarray(values, dtype=np.float64)
    return Curve("A", np.arange(1.0, 1 + len(mean)), mean, np.full_like(mean, error), 2, broke_at)


def test_limits_of_one_curve_are_its_band_and_a_margin_of_six_hundredths() -> None:
    assert limits([line(2.0, 12.0)], "higher") == pytest.approx((2.0 - 0.6, 12.0 + 0.6))
    assert limits([line(2.0, 12.0, error=1.0)], "higher") == pytest.approx(
        (1.0 - 0.72, 13.0 + 0.72)
    )
    assert limits([line(5.0)], "higher") == pytest.approx((5.0 - 0.3, 5.0 + 0.3))
    assert limits([line(), line(math.nan)], "higher") == (0.0, 1.0)


def test_limits_follow_the_better_half_by_its_last_value() -> None:
    high, low = line(0.0, 10.0), line(-1000.0, -990.0)
    assert limits([low, high], "higher") == pytest.approx((-0.6, 10.6))
    assert limits([low, high], "lower") == pytest.approx((-1000.6, -989.4))
    assert limits([high, low], "lower") == pytest.approx((-1000.6, -989.4))
    # of three the better half is two, and a curve that broke is worse than any that did not
    third = line(-1000.0, 50.0, broke_at=3)
    low_, high_ = limits([third, high, line(0.0, 8.0)], "higher")
    assert (low_, high_) == pytest.approx((-0.6, 10.6))


def test_of_three_curves_two_are_the_better_half() -> None:
    lines = [line(-1000.0, 5.0), line(0.0, 10.0), line(-40.0, 8.0)]
    assert limits(lines, "higher") == pytest.approx((-40 - 0.06 * 50, 10 + 0.06 * 50))


def test_of_the_worse_half_what_lies_within_one_height_is_shown() -> None:
    good, near, far = line(0.0, 10.0), line(-9.0, -8.0), line(-11.0, -10.5)
    assert limits([good, near], "higher") == pytest.approx((-9 - 0.06 * 19, 10 + 0.06 * 19))
    assert limits([good, far], "higher")[0] > -12.0
    partly = line(-300.0, 0.0, -4.0, 19.0, 3.0)
    assert limits([good, partly], "higher") == pytest.approx((-4 - 0.06 * 23, 19 + 0.06 * 23))


def test_leaves_tells_the_value_farthest_outside_and_none_inside() -> None:
    assert leaves(line(0.0, 5.0, 10.0), 0.0, 10.0) is None
    assert leaves(line(-3.0, 5.0, 12.0), 0.0, 10.0) == -3.0
    assert leaves(line(-3.0, 5.0, 14.0, 11.0), 0.0, 10.0) == 14.0
    assert leaves(line(-3.0, 5.0), 0.0, 10.0) == -3.0
