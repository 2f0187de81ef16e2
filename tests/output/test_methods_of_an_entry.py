"""`methods` of a figure or table: labels, or rows of the print that methods stand for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_records import cell, collected, record

from svgpbench.errors import UserError
from svgpbench.output.figure_and_table_types import EntryKeys

ROWS = {"A (large)": "A", "B (large)": "B"}


def chosen(labels: tuple[str, ...], *methods: str) -> list[str]:
    """Return the labels of the records that an entry with these methods shows."""
    these = replace(collected(*(record(cell(method=x)) for x in labels)), rows=ROWS)
    return [r.config.method.title for r in EntryKeys(methods=methods).records_of(these)]


def test_a_name_is_a_label_or_the_row_of_a_label() -> None:
    assert chosen(("A", "C"), "A") == ["A"]
    assert chosen(("A (large)", "B (large)", "C"), "A", "C") == ["A (large)", "C"]
    assert chosen(("A (large)", "C")) == ["A (large)", "C"], "no methods: all"


def test_a_label_leaves_no_room_for_others_of_its_row() -> None:
    assert chosen(("A", "A (large)", "B"), "A") == ["A"]


def test_a_name_that_is_neither_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="method in these records 'D'"):
        chosen(("A", "B (large)"), "D")
