"""A mean says over how many splits it is, whether folds or seeds of random splits tell them apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hand_records import cell, collected, record

from svgpbench.config import SplitConfig
from svgpbench.output.pareto_table import ParetoTable
from svgpbench.output.result_table import Finals
from svgpbench.results.collect import Collected

Counts = dict[tuple[str, str], int]

ENDED: Counts = {("airfoil", "A"): 2, ("airfoil", "B"): 4, ("sonar", "A"): 3, ("sonar", "B"): 5}
"""Splits with a good cell, by data set and method; there is one more whose cells failed."""

SPLITS: dict[str, Callable[[int], SplitConfig]] = {
    "random splits": lambda k: SplitConfig(kind="random", seed=k),
    "folds": lambda k: SplitConfig(fold=k),
    "folds of two partitions": lambda k: SplitConfig(fold=k // 2, seed=k % 2),
}


@pytest.fixture(params=SPLITS)
def records(request: pytest.FixtureRequest) -> Collected:
    """Two starts on every split."""
    split = SPLITS[request.param]
    return collected(
        *(
            record(
                cell(data, method, split=split(k), seed=seed),
                -1.0 - k,
                status="ok" if k < count else "not_pd",
                nlpd=0.1 * k,
            )
            for (data, method), count in ENDED.items()
            for k in range(count + 1)
            for seed in (0, 1)
        )
    )


def test_in_the_table_of_an_experiment(records: Collected) -> None:
    rows = Finals().build(records).to_json()["rows"]
    assert {(row["data"], row["method"]): row["splits"] for row in rows} == ENDED
    assert {row["seeds"] for row in rows} == {2}


def test_starts_are_those_of_cells_that_ended_well() -> None:
    """Three starts on two splits, of which one start failed throughout and one on one split."""
    cells = [
        record(
            cell("airfoil", "A", fold=fold, seed=seed),
            -1.0,
            status="ok" if seed == 0 or (seed == 1 and fold == 0) else "not_pd",
            nlpd=0.1,
        )
        for fold in (0, 1)
        for seed in (0, 1, 2)
    ]
    (row,) = Finals().build(collected(*cells)).to_json()["rows"]
    assert (row["seeds"], row["splits"], row["ok"], row["cells"]) == (2, 2, 3, 6)
    assert row["failed"] == {"not_pd": 3}


def test_in_the_table_of_accuracy_against_compute(records: Collected) -> None:
    built = ParetoTable().build(records)
    (text,) = built.tables
    rows = [dict(zip(text.header, row, strict=True)) for row in text.texts]
    assert {(row["data set"], row["method"]): int(row["n"]) for row in rows} == ENDED
