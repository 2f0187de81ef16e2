"""When a bound has converged, how much it rises at the end of a run, and how far it falls back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from svgpbench.stats.convergence import BoundTrace, bound_trace

RISING = [0.0, 50.0, 90.0, 96.0, 99.5, 100.0]
LOOKS = [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("tolerance", "when"), [(0.05, 4), (0.01, 5), (0.001, 6)])
def test_a_bound_converges_where_it_comes_so_near_to_the_best(tolerance: float, when: int) -> None:
    found = bound_trace(LOOKS, RISING, minibatches=False)._replace(best=100.0)
    assert found.converges(found.start, tolerance) == when


def test_the_way_is_that_from_the_start_that_is_given() -> None:
    found = bound_trace(LOOKS, RISING, minibatches=False)._replace(best=100.0)
    assert found.converges(-100.0, 0.05) == 3  # within 10 of 100
    assert found.converges(90.0, 0.05) == 5  # within 0.5


def test_a_way_shorter_than_the_region_counts_as_the_region() -> None:
    bound = [99.9999, 99.99, 100.0]
    found = BoundTrace(np.array([1.0, 2.0, 3.0]), np.array(bound), 100.0, start=bound[0])
    assert found.converges(found.start, 0.05) == 3  # rounding alone decides
    assert found._replace(region=1.0).converges(found.start, 0.05) == 1
    assert found._replace(region=0.1).converges(found.start, 0.05) == 3
    assert found._replace(region=1.0).converges(0.0, 0.001) == 1  # of a longer way it is a part


def test_a_bound_that_falls_back_has_not_converged_before() -> None:
    bound = [0.0, 100.0, 50.0, 100.0]
    found = BoundTrace(np.array([1.0, 2.0, 3.0, 4.0]), np.array(bound), 100.0)
    assert found.converges(0.0, 0.05) == 4
    ends_low = BoundTrace(np.array([1.0, 2.0]), np.array([100.0, 0.0]), 100.0)
    assert ends_low.converges(0.0, 0.05) == math.inf


def test_what_is_no_number_is_below_every_bound() -> None:
    found = bound_trace([1, 2, 3], [None, math.nan, 5.0], minibatches=False)
    assert list(found.bound) == [-math.inf, -math.inf, 5.0]
    assert found._replace(best=5.0).converges(0.0, 0.05) == 3


def test_the_last_quarter_is_that_of_the_iterations_not_of_the_looks() -> None:
    looks, bound = [1, 2, 3, 75, 100], [0.0, 1.0, 2.0, 10.0, 13.0]
    found = bound_trace(looks, bound, minibatches=False)
    assert list(found.last_quarter) == [10.0, 13.0]
    assert (found.rise, found.fall) == (3.0, 0.0)


def test_a_fall_is_the_largest_below_an_earlier_bound() -> None:
    looks = list(range(1, 17))
    bound = [0.0] * 11 + [5.0, 1.0, 4.0, 3.0, 6.0]
    found = bound_trace(looks, bound, minibatches=False)
    assert (found.rise, found.fall) == (1.0, 4.0)  # 5 to 1, though it ends at 6
    assert bound_trace([1], [1.0], minibatches=False).fall == 0.0


def test_minibatches_are_smoothed_by_a_median_over_nine_looks() -> None:
    bound = [float(at % 2) * 100.0 + at for at in range(36)]
    found = bound_trace(range(1, 37), bound, minibatches=True)
    assert found.bound[20] == np.median(bound[16:25])
    assert found.bound[0] == np.median(bound[:5])  # as much of the window as there is
    assert found.bound[-1] == np.median(bound[-5:])
    assert list(bound_trace(range(1, 37), bound, minibatches=False).bound) == bound


@pytest.mark.parametrize(
    ("looks", "window"), [(8, 1), (12, 3), (20, 5), (35, 7), (36, 9), (100, 9)]
)
def test_a_window_covers_no_more_than_a_quarter_of_a_trace(looks: int, window: int) -> None:
    bound = [0.0] * looks
    middle = looks // 2
    bound[middle - window // 2 : middle + window // 2 + 1] = [1.0] * window  # as wide as the window
    found = bound_trace(range(1, looks + 1), bound, minibatches=True).bound
    assert found[middle] == 1.0
    spike = [float(at == middle) for at in range(looks)]
    smooth = bound_trace(range(1, looks + 1), spike, minibatches=True).bound
    assert smooth[middle] == (1.0 if window == 1 else 0.0)
    uneven = [float(at * at % 7) + 0.01 * at for at in range(looks)]
    smooth = bound_trace(range(1, looks + 1), uneven, minibatches=True).bound
    reach = window // 2
    assert smooth[middle] == np.median(uneven[middle - reach : middle + reach + 1])


def test_a_median_over_looks_without_a_number_is_none_itself() -> None:
    bound = [None] * 20 + [1.0] * 20
    found = bound_trace(range(1, 41), bound, minibatches=True).bound
    assert found[10] == -math.inf
    assert found[30] == 1.0


def test_a_bound_that_is_evaluated_once_at_the_end_has_no_rise() -> None:
    assert math.isnan(bound_trace([1, 10], [0.0, 5.0], minibatches=False).rise)
    assert bound_trace([1, 9, 10], [0.0, 5.0, 5.0], minibatches=False).rise == 0.0


def test_a_bound_without_a_number_at_the_ends_has_no_rise() -> None:
    assert math.isnan(bound_trace([1, 2], [None, None], minibatches=False).rise)
    assert bound_trace([1, 2], [None, None], minibatches=False).fall == 0.0
    assert bound_trace(range(1, 9), [0.0] * 6 + [5.0, None], minibatches=False).fall == 0.0


@pytest.mark.parametrize(
    ("bound", "rows", "discrete", "region"),
    [
        (-9.0, 300, False, 0.3),
        (-9.0, 300, True, 0.009),  # three positive labels of 300
        (-200.0, 300, True, 0.2),
        (-500.0, 300, True, 0.3),
        (0.0, 300, False, 0.3),  # another unit of y adds n log c: 0 is a bound as any other
        (-0.2, 300, True, 0.001),
        (-0.2, 300, False, 0.3),
        (-math.inf, 300, True, 0.3),
    ],
)
def test_the_bound_of_few_labels_settles_to_a_share_of_itself(
    bound: float, rows: int, discrete: bool, region: float
) -> None:
    found = bound_trace([1, 2, 3], [-2000.0, -1.0, bound], minibatches=False)
    assert found.with_fit_region(rows, discrete).region == pytest.approx(region)


def test_a_run_without_a_trace_has_a_region_too() -> None:
    assert bound_trace([], [], minibatches=False).with_fit_region(50, discrete=True).region == 0.05
