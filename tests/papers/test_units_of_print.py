"""What a printed `metric` means, and the numbers of ours that stand beside it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hand_records import cell, record

from svgpbench.papers import PrintedFigure
from svgpbench.papers.grades import Grade
from svgpbench.papers.printed_units import STEPS, Quantity, read_quantity
from svgpbench.papers.published_values import PrintedComparison, compare_with_records, with_missing
from svgpbench.results.records import Record

SIZES = {"n_train": 90, "n_test": 10}
ERRORS = {
    "a": {"A": 0.1, "B": 0.3, "C": 0.2},
    "b": {"A": 0.2, "B": 0.4, "C": 0.6},
    "c": {"A": 0.6, "B": 0.2, "C": 0.7},
    "d": {"A": 0.1, "B": 0.2, "C": 0.3},
    "e": {"A": 0.3, "B": 0.2, "C": 0.1},
}


@pytest.mark.parametrize(
    ("printed", "quantity"),
    [
        ("nlpd", Quantity("nlpd")),
        ("held-out elbo / 1e5", Quantity("heldout_elbo", 1e-5)),
        ("accuracy %", Quantity("error_rate", -100.0, 100.0)),
        ("test log-likelihood", Quantity("nlpd_original", -1.0)),
        ("median mae", Quantity("mae", statistic="median")),
        ("mean rank in mae", Quantity("mae", statistic="rank")),
        (STEPS, Quantity(STEPS)),
        ("mean rank", None),
        ("time ratio", None),
    ],
)
def test_a_printed_metric_is_one_of_ours_in_its_units(
    printed: str, quantity: Quantity | None
) -> None:
    assert read_quantity(printed) == quantity


def test_accuracy_is_printed_the_other_way_round() -> None:
    quantity = read_quantity("accuracy %")
    assert quantity is not None
    assert list(quantity.of_cells(pd.DataFrame({"error_rate": [0.25]}))) == [75.0]


def of(setting: str, metric: str, value: str = "90") -> PrintedFigure:
    return PrintedFigure("table2", setting, metric, value, "")


def over_sets(*printed: PrintedFigure) -> list[PrintedComparison]:
    records = [
        record(cell(method=method, data=data), data=SIZES, error_rate=error)
        for data, errors in ERRORS.items()
        for method, error in errors.items()
    ]
    return compare_with_records(printed, records, [])


def test_mean_median_and_rank_are_of_the_data_sets_and_never_graded() -> None:
    mean, median = over_sets(of("A", "mean accuracy %"), of("A", "median accuracy %"))
    assert (mean.ours.mean, median.ours.mean) == pytest.approx((74.0, 80.0))
    assert mean.difference == pytest.approx(-16.0)
    assert (mean.ours.n, mean.ours.unit, mean.grades) == (5, "data sets", Grade.not_testable)
    assert mean.ours.other_data == tuple("abcde")


def test_half_an_interval_is_in_the_units_of_the_print() -> None:
    """Positive though accuracy falls as the error rises; ranks have none."""
    raw, accuracy, rank, other = over_sets(
        of("A", "mean error_rate"),
        of("A", "mean accuracy %"),
        of("A", "mean rank in accuracy %"),
        of("B", "mean rank in accuracy %"),
    )
    rows = np.random.default_rng(0).integers(5, size=(10_000, 5))
    errors = np.array([errors["A"] for errors in ERRORS.values()])
    low, high = np.quantile(errors[rows].mean(axis=1), [0.025, 0.975])
    assert raw.ours.half == pytest.approx((high - low) / 2)
    assert accuracy.ours.half == pytest.approx(50 * (high - low))
    assert 0.1 < rank.ours.half < 1.0
    assert rank.ours.half == pytest.approx(other.ours.half, abs=0.2)


def test_a_rank_is_among_the_printed_methods_that_ran() -> None:
    metric = "mean rank in accuracy %"
    first, second = over_sets(of("A", metric), of("B", metric), of("a network", metric))
    assert (first.ours.mean, second.ours.mean) == pytest.approx((7 / 5, 8 / 5))
    assert first.ours.note == "of 2 methods"


def test_a_data_set_without_a_method_of_the_field_is_not_counted() -> None:
    records = [
        record(cell(method=method, data=data), data=SIZES, error_rate=0.1)
        for data in "abcdef"
        for method in ("A" if data == "f" else "AB")
    ]
    metric = "mean rank in accuracy %"
    row, _ = compare_with_records([of("A", metric), of("B", metric)], records, [])
    assert (row.ours.n, row.ours.mean) == (5, 1.5)


def test_a_stand_in_is_averaged_over_its_outputs_as_the_print_is() -> None:
    records = [
        record(cell(method="A", data=f"arm@{at}"), data=SIZES, nmse=value)
        for at, value in enumerate((0.1, 0.3))
    ]
    printed = [of("A, KUKA", "nmse", "0.5")]
    assert compare_with_records(printed, records, []) == []
    (row,) = compare_with_records(printed, records, [], stand_in=True)
    assert (row.ours.mean, row.ours.n) == (pytest.approx(0.2), 2)
    assert (row.ours.note, row.grades) == ("s.d. 0.141", Grade.not_testable)


def traced(method: str, seed: int, bound: list[float]) -> Record:
    trace = {"iteration": [1.0, 2.0, 3.0, 4.0][: len(bound)], "elbo": bound}
    return record(cell(method=method, seed=seed), data=SIZES, trace=trace, elbo=bound[-1])


def test_steps_to_the_optimum_are_the_median_t_at_one_percent() -> None:
    records = [
        *(traced("NGD", seed, [-100.0, 0.0, 0.0, 0.0]) for seed in (0, 1)),
        traced("NGD", 2, [-100.0, -50.0, 0.0, 0.0]),
        *(traced("Adam", seed, [-100.0, -80.0, -60.0, -40.0]) for seed in (0, 1, 2)),
    ]
    ngd, adam = compare_with_records([of("NGD", STEPS), of("Adam", STEPS, ">1000")], records, [])
    assert (ngd.ours.mean, ngd.ours.note) == (2.0, "T at 1 %, 2 to 3")
    assert math.isnan(adam.ours.mean)
    assert adam.ours.note == "T at 1 % beyond the last in 3 of 3 runs"


def test_steps_may_be_printed_with_their_data_set() -> None:
    records = [traced("NGD", 0, [-100.0, 0.0]), traced("Adam", 0, [-100.0, -50.0, 0.0])]
    printed = [of(f"{method}, airfoil", STEPS) for method in ("NGD", "Adam")]
    rows = compare_with_records(printed, records, [])
    assert [row.ours.mean for row in rows] == [2.0, 3.0]


def test_a_run_that_failed_leaves_no_number_of_steps() -> None:
    failed = record(cell(method="NGD", seed=1), status="not_pd", data=SIZES)
    (row,) = compare_with_records([of("NGD", STEPS)], [traced("NGD", 0, [-100.0, 0.0]), failed], [])
    assert math.isnan(row.ours.mean)
    assert row.ours.note == "1 of 2 cells failed"


def test_what_has_nothing_of_ours_beside_it_is_listed_too() -> None:
    printed = [of("network", "mean accuracy %"), of("A", "mean accuracy %")]
    rows = with_missing(printed, over_sets(*printed), [])
    assert [row.printed.setting for row in rows] == ["network", "A"]
    assert math.isnan(rows[0].difference)
