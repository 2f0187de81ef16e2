"""Average ranks below a table of results: of whom, on how many data sets, and what they are too few for."""

from __future__ import annotations

import pytest
from hand_records import cell, collected, record

from svgpbench.output.built_table import BuiltTable
from svgpbench.output.result_table import Finals
from svgpbench.results.records import Record


def on_set(at: int) -> list[Record]:
    """A before B in NLPD on even sets, B before A in RMSE on all."""
    name, flip = f"set {at}", 0.2 * (-1) ** at
    scores = {"A": (0.5 - flip, 2.0), "B": (0.5, 1.0)}
    return [
        record(cell(name, method), -1.0, nlpd=nlpd, rmse=rmse)
        for method, (nlpd, rmse) in scores.items()
    ]


def table(sets: int, *more: Record) -> BuiltTable:
    records = [each for at in range(sets) for each in on_set(at)]
    return Finals.model_validate({"metrics": ("nlpd", "rmse", "seconds")}).build(
        collected(*records, *more)
    )


def test_below_a_table_stands_each_methods_average_rank_in_each_score() -> None:
    shown = table(5).tables[-1]
    assert shown.header == ["average rank", "NLPD, 5 sets", "RMSE, 5 sets"]  # of no times
    assert [(row[0], row[1][:4], row[2]) for row in shown.texts] == [
        ("A", "1.40", "2.00 [2.00, 2.00]"),
        ("B", "1.60", "1.00 [1.00, 1.00]"),
    ]


def test_ranks_are_of_the_backend_that_stands_for_all() -> None:
    other = [record(cell(f"set {at}", "A", "torch"), -1.0, nlpd=0.0, rmse=0.0) for at in range(5)]
    assert table(5, *other).facts["average_ranks"] == table(5).facts["average_ranks"]


def test_every_form_has_the_ranks() -> None:
    built = table(5)
    assert "| A | 1.40 [1.00, 1.80] | 2.00 [2.00, 2.00] |" in built.to_markdown()
    assert r"A & 1.40 [1.00, 1.80] & 2.00 [2.00, 2.00] \\" in built.to_latex()
    assert built.to_json()["average_ranks"]["rmse"] == {
        "data_sets": 5,
        "methods": [
            {"method": "A", "mean": 2.0, "low": 2.0, "high": 2.0},
            {"method": "B", "mean": 1.0, "low": 1.0, "high": 1.0},
        ],
    }


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (5, "no critical difference of ranks: it takes 10 data sets, and there are 5"),
        (9, "no critical difference of ranks: it takes 10 data sets, and there are 9"),
        (10, "critical difference of ranks in NLPD at 5 % (Nemenyi): 0.62"),
    ],
)
def test_a_critical_difference_is_refused_where_sets_are_few(sets: int, says: str) -> None:
    notes = table(sets).footnotes
    assert says in notes
    assert sum("critical difference" in note for note in notes) == (1 if sets < 10 else 2)


def test_few_data_sets_have_neither_ranks_nor_a_word_on_them() -> None:
    few = table(4)
    assert [shown.title for shown in few.tables] == ["by-hand, regression"]
    assert not [note for note in few.footnotes if "rank" in note]
    assert "rank" not in few.to_markdown() + few.to_latex()


def test_a_metric_sorts_the_methods_of_every_data_set_and_the_ranks() -> None:
    kind = Finals.model_validate({"metrics": ("rmse", "nlpd"), "sorted_by": "nlpd"})
    records = [each for at in range(5) for each in reversed(on_set(at))]
    results, ranks = kind.build(collected(*records)).tables
    assert [(row[0], row[1]) for row in results.texts] == [
        *(("set 0", "A"), ("set 0", "B"), ("set 1", "B"), ("set 1", "A"), ("set 2", "A")),
        *(("set 2", "B"), ("set 3", "B"), ("set 3", "A"), ("set 4", "A"), ("set 4", "B")),
    ]
    assert [row[0] for row in ranks.texts] == ["A", "B"]
    # C has the least mean of set 1, and a failed cell
    good = record(cell("set 1", "C", fold=1), -1.0, nlpd=0.0, rmse=0.0)
    failed = record(cell("set 1", "C"), -1.0, status="not_pd", nlpd=0.0, rmse=0.0)
    (results,) = kind.build(collected(*on_set(1), failed, good)).tables
    assert [row[1] for row in results.texts] == ["B", "A", "C"]


def test_a_metric_that_no_record_has_sorts_nothing_and_says_so() -> None:
    built = Finals(sorted_by="error_rate").build(collected(*on_set(0)))
    assert [row[1] for row in built.tables[0].texts] == ["A", "B"]
    assert "not sorted: no record has error rate" in built.notes
