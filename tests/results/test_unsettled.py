"""Runs whose bound still moved at their end are named, those that had settled are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hand_records import cell, record

from svgpbench.results.records import Record
from svgpbench.results.unsettled import LONGER, LOWER, advice, unsettled, unsettled_note

ROWS = 90  # of a record by hand: the region of its bound is 0.09


def run(method: str, bound: Sequence[float], *, data: str = "airfoil", **changes: Any) -> Record:
    status = changes.pop("status", "ok")
    trace = {"iteration": list(range(1, len(bound) + 1)), "elbo": list(bound)}
    return record(cell(data, method, **changes), bound[-1], trace=trace, status=status)


FLAT = [0.0, 50.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.08]
RISES = [*FLAT[:-1], 60.1]
FALLS = [*FLAT[:-2], 65.0, 61.0]


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (FLAT, ""),
        (RISES, "the bound rose by 0.1 in the last quarter of the run"),
        (FALLS, "the bound rose by 1 in the last quarter of the run"),
        ([*FLAT[:-2], 65.0, 60.0], "the bound fell by 5 in the last quarter of the run"),
        ([5.0, 7.0, 6.0], "the bound fell by 1 in the last quarter of the run"),
        ([5.0, 6.0, 6.0], ""),
        ([*FLAT[:-2], 60.05, 60.0], ""),  # a fall within the region
        ([5.0], ""),
    ],
)
def test_a_run_has_settled_or_says_how_it_moved(bound: Sequence[float], text: str) -> None:
    assert unsettled(run("A", bound)) == text
    assert unsettled(run("A", bound, status="not_pd")) == ""


def test_the_advice_is_that_of_rises_of_falls_or_of_both() -> None:
    said = [advice([], guarded=True), *(advice([x], guarded=True) for x in (0.0, 2.0, -2.0))]
    assert said == ["", "", LONGER, LOWER]
    assert advice([-1.0, 3.0], guarded=True) == f"where it rose, {LONGER}; where it fell, {LOWER}"
    assert advice([-1.0], guarded=False) == f'{LOWER}, or set steps = "guarded"'


def test_a_note_names_the_worst_first_and_counts_runs() -> None:
    records = [
        *(run("A", bound, fold=fold) for fold, bound in enumerate([FLAT, RISES, RISES])),
        *(run("B", bound, fold=fold) for fold, bound in enumerate([FALLS, FLAT, FLAT])),
        *(run("C", FLAT, fold=fold) for fold in range(3)),
        run("C", FALLS, perturbation=1e-15),
        run("C", FALLS, fold=3, status="timeout"),
    ]
    assert unsettled_note(records) == (
        "NOT SETTLED, the bound still moved in the last quarter of the run: "
        f"B on airfoil (rose by 1; 1 of 3 runs), A on airfoil (rose by 0.1; 2 of 3 runs); {LONGER}"
    )
    assert unsettled_note(records[:1]) == ""


def test_the_worst_is_that_of_a_method_s_runs_in_regions_of_their_own_rows() -> None:
    """A rise of 20 on 9000 rows is less than one of 1 on 90."""
    many = {"iteration": list(range(1, 9)), "elbo": [*FLAT[:-1], 80.0]}
    large = record(cell("boston", "B"), 80.0, trace=many, data={"n_train": 9000})
    small = [run("A", bound, fold=fold) for fold, bound in enumerate([RISES, FALLS])]
    note = unsettled_note([large, *small])
    assert "run: A on airfoil (rose by 1; 2 of 2 runs), B on boston (rose by 20; 1 of 1" in note


def test_a_note_names_five_and_counts_the_others() -> None:
    note = unsettled_note([run(str(number), RISES) for number in range(7)])
    assert note.count(" on airfoil") == 5
    assert ", and 2 more; " in note
