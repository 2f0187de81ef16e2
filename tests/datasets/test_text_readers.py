"""Text tables become float64 or one line that says where they do not."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svgpbench_datasets import DataError
from svgpbench_datasets.reading.cells import canonical_label, finite_number
from svgpbench_datasets.reading.formats import open_table
from svgpbench_datasets.reading.numbers import (
    Positions,
    class_numbers,
    numbers,
    sorted_classes,
    stack,
)
from svgpbench_datasets.reading.table import Layout
from svgpbench_datasets.reading.text import detect_layout


def read(raw: bytes, *, reader: str = "whitespace", names: str = "abc", all_of: str = "") -> Any:
    layout = Layout(reader, width=len(all_of or names))
    frame = pd.concat(list(open_table(io.BytesIO(raw), "t.txt", layout).frames(None)))
    columns = {name: at for at, name in enumerate(all_of or names, start=1)}
    return numbers(frame.set_axis(list(columns), axis=1), list(names), Positions("t.txt", columns))


def test_ragged_spaces_tabs_and_blank_lines_are_read() -> None:
    found = read(b"  1   2.5\t-3e2 \r\n\n.5 +6. 7 \n \n")
    np.testing.assert_array_equal(found, [[1.0, 2.5, -300.0], [0.5, 6.0, 7.0]])
    assert found.dtype == np.float64


def test_csv_numbers_may_be_quoted_and_padded() -> None:
    found = read(b'1, 2 ,"3"\n\n4,5,6', reader="csv")
    np.testing.assert_array_equal(found, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"1 2 3\n4 x 6", r"t\.txt: line 2, column 2 \('b'\) holds 'x', not a number"),
        (b"1 2 3\n\n4 5 NaN", r"t\.txt: line 3, column 3 \('c'\) holds 'NaN', a missing value"),
        (b"1 2 3\n-inf 5 6", r"t\.txt: line 2, column 1 \('a'\) holds '-inf'; give a finite"),
        (b"1 2 3\n4 5", r"t\.txt: line 2 has 2 cells where 3 columns are expected"),
        (b"1 2 3\n4 5 \xff", r"t\.txt: line 2, byte 5 is not UTF-8"),
        (b"1 2 1e999", r"holds '1e999', too large for float64"),
        (b"1 2 1_000", r"holds '1_000', not a number"),
        (b"1 2 0x10", r"holds '0x10', not a number"),
        ("1 2 \u0663".encode(), r"not a number"),
        (b'"1\n2",1,1\n"",1,1', r"t\.txt: line 1, column 1 \('a'\) holds '1\\n2', not a number"),
    ],
)
def test_a_bad_cell_is_named_by_line_and_column(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(raw, reader="csv" if b"," in raw else "whitespace")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("raw", [b'1,2,"3', b'1,2,"3"x\n', b"1,2,3\r4,5,6"])
def test_malformed_csv_is_refused(raw: bytes) -> None:
    with pytest.raises(DataError, match=r"t\.txt: line 1 is not well-formed CSV"):
        read(raw, reader="csv")


def test_lines_are_counted_through_quoted_line_ends() -> None:
    raw = b'1,"p\nq",3\n\nz,y,6\n'
    with pytest.raises(DataError, match=r"line 4, column 1 \('a'\) holds 'z'"):
        read(raw, reader="csv", names="ac", all_of="abc")


def test_a_long_cell_is_cut_in_the_message() -> None:
    with pytest.raises(DataError) as caught:
        read(b"1 2 " + b"y" * 100_000)
    assert len(str(caught.value)) < 200


def test_a_long_run_of_digits_is_judged_in_linear_time() -> None:
    assert finite_number("1" * 1_000_000 + "x") is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_survives_the_text(value: float) -> None:
    assert finite_number(repr(value)) == value


def test_spellings_of_one_number_are_one_label() -> None:
    assert {canonical_label(text) for text in ("1", "1.0", "+1", "1.000e+00", " 1 ")} == {"1"}
    assert canonical_label("-0.0") == "0"
    assert canonical_label("0.5") == "0.5"
    assert canonical_label("9007199254740993") != canonical_label("9007199254740992")


def classes_of(labels: list[str]) -> tuple[list[float], tuple[str, ...]]:
    known: dict[str, int] = {}
    frame = pd.DataFrame({"y": labels}, dtype=object)
    y = class_numbers(frame, "y", Positions("t", {"y": 1}), known, more=True)
    found, classes = sorted_classes(y, known, "t", task="classification")
    return found.tolist(), classes


def test_labels_sort_by_value_or_as_text() -> None:
    assert classes_of(["10", "9", "10"]) == ([1, 0, 1], ("9", "10"))
    assert classes_of(["yes", "no"]) == ([1, 0], ("no", "yes"))


@pytest.mark.parametrize(
    ("text", "reader", "skip", "header"),
    [
        ("a,b\n1,2\n", "csv", 0, True),
        ("\n \na;b\n1,5;2\n", "semicolon", 2, True),
        ("a\tb,c\n", "tab", 0, True),
        ("1,5;2,5\n", "semicolon", 0, True),
        ("1.5  2 nan\n", "whitespace", 0, False),
        (" 1 2\n", "whitespace", 0, False),
        ('"1","2"\n', "csv", 0, False),
        ('"a;b",c\n', "csv", 0, True),
        ("1;2;x\n", "semicolon", 0, True),
        (",0,1\n", "csv", 0, True),
        ("nan,nan\n", "csv", 0, True),
        ("\ufeff1,2\n", "csv", 0, False),
    ],
)
def test_the_first_line_tells_separator_and_header(
    text: str, reader: str, skip: int, header: bool
) -> None:
    found = detect_layout(io.BytesIO(text.encode()), "t")
    assert found == Layout(reader, skip, header)


def test_numbers_after_a_part_of_bytes_are_not_cut_to_bytes() -> None:
    parts = [np.array([[200]], np.uint8), np.array([[2.5], [300.0]]), np.array([[7]], np.uint8)]
    X, _ = stack([(part, np.zeros(len(part))) for part in parts], 1)
    assert X[:, 0].tolist() == [200, 2.5, 300, 7]
