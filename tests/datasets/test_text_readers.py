"""Text tables become float64 or one line that says where they do not."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svgpbench_datasets import DataError
from svgpbench_datasets.reading.cells import (
    Cells,
    csv_rows,
    decode_lines,
    finite_number,
    read_cells,
    whitespace_rows,
)
from svgpbench_datasets.reading.labels import canonical_label, class_labels


def read(raw: bytes, *, reader: str = "whitespace", names: str = "abc") -> Cells:
    lines = decode_lines(io.BytesIO(raw), "t.txt")
    rows = whitespace_rows(lines) if reader == "whitespace" else csv_rows(lines, "t.txt")
    return read_cells(rows, where="t.txt", names=list(names), numeric=list(names))


def test_ragged_spaces_tabs_and_blank_lines_are_read() -> None:
    cells = read(b"  1   2.5\t-3e2 \r\n\n.5 +6. 7 \n \n")
    np.testing.assert_array_equal(cells.numbers, [[1.0, 2.5, -300.0], [0.5, 6.0, 7.0]])
    assert cells.numbers.dtype == np.float64


def test_csv_numbers_may_be_quoted_and_padded() -> None:
    cells = read(b'1, 2 ,"3"\n\n4,5,6', reader="csv")
    np.testing.assert_array_equal(cells.numbers, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


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
    ],
)
def test_a_bad_cell_is_named_by_line_and_column(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(raw)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("raw", [b'1,2,"3', b'1,2,"3"x\n', b"1,2,3\r4,5,6"])
def test_malformed_csv_is_refused(raw: bytes) -> None:
    with pytest.raises(DataError, match=r"t\.txt: line 1 is not well-formed CSV"):
        read(raw, reader="csv")


def test_lines_are_counted_through_quoted_line_ends() -> None:
    with pytest.raises(DataError, match=r"line 4, column 1 \('a'\) holds 'z'"):
        read_cells(
            csv_rows(iter(['1,"p\n', 'q",3\n', "\n", "z,y,6\n"]), "t.txt"),
            where="t.txt",
            names=["a", "b", "c"],
            numeric=["a", "c"],
        )


def test_a_long_cell_is_cut_in_the_message() -> None:
    with pytest.raises(DataError) as caught:
        read(b"1 2 " + b"y" * 100_000)
    assert len(str(caught.value)) < 200


def test_a_long_run_of_digits_is_judged_in_linear_time() -> None:
    assert finite_number("1" * 1_000_000 + "x") is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_survives_the_text(value: float) -> None:
    assert finite_number(repr(value)) == value


@given(st.binary(max_size=200), st.sampled_from(["whitespace", "csv"]))
def test_any_bytes_give_numbers_or_a_data_error(raw: bytes, reader: str) -> None:
    try:
        cells = read(raw, reader=reader, names="ab")
    except DataError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert np.isfinite(cells.numbers).all()


def test_spellings_of_one_number_are_one_label() -> None:
    assert {canonical_label(text) for text in ("1", "1.0", "+1", "1.000e+00", " 1 ")} == {"1"}
    assert canonical_label("-0.0") == "0"
    assert canonical_label("0.5") == "0.5"
    assert canonical_label("9007199254740993") != canonical_label("9007199254740992")


def test_labels_sort_by_value_or_as_text() -> None:
    y, classes = class_labels(["10", "9", "10"], "t", task="classification")
    assert classes == ("9", "10")
    assert y.tolist() == [1.0, 0.0, 1.0]
    assert class_labels(["yes", "no"], "t", task="classification")[1] == ("no", "yes")
