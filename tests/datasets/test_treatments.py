"""Missing values and words are treated as declared, never silently."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from declared import declared, read_entry

from svgpbench_datasets import DataError, DatasetEntry
from svgpbench_datasets.reading.tables import Missing, count_missing

TWO = [{"path": "one", "sha256": "0" * 64}, {"path": "two", "sha256": "1" * 64}]
ROWS = b"5, red, 1.5, no\n6, ?, 2.5, yes\n7, blue, ?, no\n8, green, 4.5, yes\n"


def entry(rows: int, **changes: Any) -> DatasetEntry:
    own = {
        "task": "classification",
        "rows": rows,
        "columns": ["age", "colour", "size", "class"],
        "target": "class",
        "labels": {"no": 0, "yes": 1},
        "categories": {"colour": ["red", "green", "blue"]},
    }
    return declared(**{**own, **changes})


def read(described: DatasetEntry, raw: bytes = ROWS) -> tuple[Any, Any]:
    X, y = read_entry(described, lambda _: raw)
    return X.tolist(), y.tolist()


def test_rows_with_missing_values_are_left_out_where_that_is_declared() -> None:
    X, y = read(entry(2, missing="drop-row"))
    assert X == [[5, 0, 1.5], [8, 1, 4.5]]
    assert y == [0, 1]


def test_a_missing_value_in_a_column_that_is_not_used_keeps_the_row() -> None:
    X, _ = read(entry(3, missing="drop-row", features=["age", "colour"]))
    assert X == [[5, 0], [7, 2], [8, 1]]


def test_missing_values_are_counted_before_anything_is_done_to_them() -> None:
    def counted(described: DatasetEntry, raw: bytes = ROWS) -> Missing:
        return count_missing(described, lambda _: io.BytesIO(raw))

    both = Missing(2, {"colour": 1, "size": 1})
    assert counted(entry(2, missing="drop-row")) == both
    assert counted(entry(4, missing="middle-code")) == both
    used = entry(3, missing="drop-row", features=["age", "colour"])
    assert counted(used) == Missing(1, {"colour": 1})
    in_one_row = b"5, ?, ?, no\n6, red, 1, yes\n"
    assert counted(entry(1, missing="drop-row"), in_one_row) == Missing(1, both.cells)
    two_files = entry(
        4,
        missing="drop-row",
        files=[{"path": "a", "sha256": "0" * 64}, {"path": "b", "sha256": "1" * 64}],
        parts=[2, 2],
    )
    assert counted(two_files) == Missing(4, {"colour": 2, "size": 2})
    with pytest.raises(DataError, match="line 2 has 1 cells where 4 columns are expected"):
        counted(entry(2, missing="drop-row"), b"5, red, 1, no\n6\n")


def test_a_missing_word_becomes_the_middle_code_where_that_is_declared() -> None:
    X, _ = read(entry(4, missing="middle-code", features=["age", "colour"]))
    assert X == [[5, 0], [6, 1.0], [7, 2], [8, 1]]
    X, _ = read(
        entry(
            4,
            missing="middle-code",
            features=["colour"],
            categories={"colour": ["red", "green", "blue", "x"]},
        )
    )
    assert X == [[0], [1.5], [2], [1]]


def test_without_a_declared_treatment_a_missing_value_is_refused() -> None:
    with pytest.raises(DataError, match=r"line 2, column 2 \('colour'\) holds '\?', which is no"):
        read(entry(4))
    with pytest.raises(DataError, match=r"line 3, column 3 \('size'\) holds '\?', a missing value"):
        read(entry(4, missing="middle-code"))


def test_a_word_that_is_not_declared_is_refused() -> None:
    with pytest.raises(DataError, match=r"line 1, column 2 \('colour'\) holds 'red', which is no"):
        read(entry(4, categories={"colour": ["green"]}))


def test_a_label_that_is_not_declared_is_refused_with_its_row() -> None:
    with pytest.raises(
        DataError, match=r"line 4, column 4 \('class'\) holds 'yes', .* labels no, maybe"
    ):
        read(entry(2, missing="drop-row", labels={"no": 0, "maybe": 1}))
    numbers = entry(
        2, categories={}, columns=["a", "class"], features=["a"], labels={"0": 0, "1": 1}
    )
    with pytest.raises(
        DataError, match=r"line 2, column 2 \('class'\) holds '7.0', .* labels 0, 1"
    ):
        read(numbers, b"1,0\n2,7.0\n")


def test_two_spellings_may_be_one_class() -> None:
    described = entry(2, missing="drop-row", labels={"no": 0, "yes": 1, "yes.": 1})
    assert described.class_labels == ("no", "yes")
    assert read(described, ROWS.replace(b"4.5, yes", b"4.5, yes."))[1] == [0, 1]


def test_rows_are_numbered_in_each_file_where_that_is_declared() -> None:
    numbers = entry(
        4,
        categories={},
        files=TWO,
        parts=[2, 2],
        number_rows=True,
        columns=["row", "a", "class"],
        labels={"0": 0, "1": 1},
    )
    assert read(numbers, b"9,0\n8,1\n")[0] == [[1, 9], [2, 8], [1, 9], [2, 8]]
    slow = numbers.model_copy(update={"labels": {"no": 0, "yes": 1}})
    assert read(slow, b"9,no\n8,yes\n")[0] == [[1, 9], [2, 8], [1, 9], [2, 8]]


def test_a_part_of_another_length_is_refused_by_name() -> None:
    numbers = entry(
        4, categories={}, files=TWO, parts=[1, 3],
        columns=["a", "class"], labels={"0": 0, "1": 1},
    )  # fmt: skip
    with pytest.raises(DataError, match="one has 2 rows where 1 are declared"):
        read(numbers, b"9,0\n8,1\n")


def test_inputs_stand_in_the_order_of_the_features() -> None:
    numbers = entry(
        2, categories={}, columns=["a", "b", "class"], features=["b", "a"], labels={"0": 0, "1": 1}
    )
    np.testing.assert_array_equal(read(numbers, b"1,2,0\n3,4,1\n")[0], [[2, 1], [4, 3]])
