"""ARFF, idx, .mat and .xls become numbers, or one line that says what is wrong and where."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
import scipy.io

from svgpbench_datasets import DataError
from svgpbench_datasets.reading.arff import arff_rows
from svgpbench_datasets.reading.binary_tables import idx_table, mat_table, xls_rows
from svgpbench_datasets.reading.cells import Row

ARFF = """% a comment
@RELATION robots

@attribute 'joint one' numeric
@Attribute plain REAL  % trailing
@attribute class {a,b}
@DATA
% another
1,2.5,a

-3 , 4e1 ,b
"""


def arff(text: str) -> tuple[tuple[str, ...], list[Row]]:
    names, rows = arff_rows(io.StringIO(text), "t.arff")
    return names, list(rows)


def test_arff_names_its_columns_and_counts_lines_from_the_top() -> None:
    names, rows = arff(ARFF)
    assert names == ("joint one", "plain", "class")
    assert rows == [(9, ["1", "2.5", "a"]), (11, ["-3 ", " 4e1 ", "b"])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation r\n1,2\n", r"line 2 holds '1,2' where the ARFF header is expected"),
        ("@relation r\n@data\n1\n", r"line 2, @data before any @attribute"),
        ("@attribute a date\n@data\n", r"line 1: attributes of kind 'date' are not read"),
        ("@attribute a string\n@data\n", r"kind 'string' are not read"),
        ("@attribute 'a numeric\n@data\n", r"line 1 holds .* not an ARFF attribute"),
        ("@attribute a numeric\n", r"has no @data line"),
        ("", r"has no @data line"),
        ("@attribute a numeric\n@data\n{0 1}\n", r"line 3 is a sparse row"),
        ('@attribute a numeric\n@data\n1\n"2\n', r"line 4 is not well-formed CSV"),
    ],
)
def test_what_is_not_arff_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        arff(text)
    assert "\n" not in str(caught.value)


def idx(shape: tuple[int, ...], values: bytes, kind: int = 8) -> bytes:
    return struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape) + values


def test_idx_rows_are_the_first_axis() -> None:
    table = idx_table(idx((2, 2, 3), bytes(range(12))), "t")
    assert table.dtype == np.uint8
    assert table.tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert idx_table(idx((3,), b"\x07\x08\xff"), "t").tolist() == [[7], [8], [255]]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "does not start as an idx file"),
        (b"\x1f\x8b\x08\x00", "does not start as an idx file"),
        (idx((2,), b"12345678", kind=0x0D), "kind 13 with 1 axes"),
        (idx((), b""), "kind 8 with 0 axes"),
        (idx((2, 2), b"")[:9], "ends inside its header"),
        (idx((2, 2), b"123"), "has 15 bytes where its header announces 16"),
        (idx((2, 2), b"12345"), "has 17 bytes where its header announces 16"),
        (idx((0, 2**32 - 1, 2**32 - 1), b""), "announces no values"),
        (idx((2**32 - 1,) * 4, b""), "has 20 bytes where"),
    ],
)
def test_what_is_not_idx_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        idx_table(raw, "t")


def mat(**variables: Any) -> bytes:
    file = io.BytesIO()
    scipy.io.savemat(file, variables)
    return file.getvalue()


def test_a_matrix_is_read_by_name_or_as_the_only_one() -> None:
    matrix = np.array([[1.0, 2.5], [3.0, -4.0]])
    assert mat_table(mat(a=matrix), "t", None).tolist() == matrix.tolist()
    assert mat_table(mat(a=matrix, b=matrix + 1), "t", "b").tolist() == (matrix + 1).tolist()
    whole = mat_table(mat(a=np.array([[1, 2]], dtype=np.int16)), "t", "a")
    assert whole.dtype == np.float64


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"b": np.eye(2)}, r"no variable 'a' \(it holds 'b'\)"),
        ({"a": "text"}, "is a char, not a number matrix"),
        ({"a": np.array([{"x": 1}], dtype=object)}, "is a cell, not a number matrix"),
        ({"a": {"field": 1.0}}, "is a struct, not a number matrix"),
        ({"a": np.eye(2) * 1j}, "is not a real matrix"),
        ({"a": np.zeros((2, 2, 2))}, "is not a real matrix"),
        ({"a": np.array([[1.0, 2.0], [3.0, np.nan]])}, "row 2, column 2 of 'a' is not finite"),
    ],
)
def test_a_variable_that_is_no_matrix_is_refused(variables: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        mat_table(mat(**variables), "t", "a")


def test_bytes_that_are_no_mat_file_are_refused() -> None:
    whole = mat(a=np.eye(3))
    for raw in (b"", b"MATLAB 7.3", whole[:200], whole[:128]):
        with pytest.raises(DataError, match=r"^t (is|has)"):
            mat_table(raw, "t", "a")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_matrices_of_every_kind_are_those_that_were_saved(kind: str, compressed: bool) -> None:
    matrix = np.random.default_rng(0).uniform(0, 100, (7, 5)).astype(kind)
    file = io.BytesIO()
    scipy.io.savemat(file, {"other": np.eye(3), "a": matrix}, do_compression=compressed)
    read = mat_table(file.getvalue(), "t", "a")
    assert (read.dtype, read.shape) == (np.float64, (7, 5))
    np.testing.assert_array_equal(read, matrix)


def test_a_file_of_the_other_byte_order_is_read() -> None:
    def words(*values: int) -> bytes:
        return struct.pack(f">{len(values)}I", *values)

    body = words(6, 8, 6, 0, 5, 8, 2, 1) + words((1 << 16) | 1) + b"a\0\0\0"
    body += words(9, 16) + struct.pack(">2d", 1.5, -2.0)
    raw = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI" + words(14, len(body)) + body
    assert mat_table(raw, "t", "a").tolist() == [[1.5], [-2.0]]


@pytest.mark.parametrize(
    ("at", "byte", "message"),
    [
        (128, 13, "an element of type 13 where a variable is expected"),
        (132, 255, "an element of 255 bytes where 96 are left"),
        (136, 5, "a variable without flags"),
        (152, 6, "a variable without dimensions"),
        (163, 255, "a variable of the shape"),
        (160, 3, "48 bytes of float64 for the shape"),
        (170, 5, "a short element of 5 bytes"),
        (176, 8, "values of the unknown type 8"),
        (177, 1, "values of the unknown type 265"),
    ],
)
def test_a_damaged_matrix_is_refused_with_what_is_wrong(at: int, byte: int, message: str) -> None:
    whole = mat(m=np.arange(6.0).reshape(2, 3))
    raw = whole[:at] + bytes([byte]) + whole[at + 1 :]
    with pytest.raises(DataError, match=f"t is a MATLAB file that cannot be read: {message}"):
        mat_table(raw, "t", "m")


@pytest.mark.parametrize(
    "raw", [b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)]
)
def test_bytes_that_are_no_workbook_are_refused(raw: bytes) -> None:
    with pytest.raises(DataError, match=r"t\.xls is not an \.xls workbook") as caught:
        list(xls_rows(raw, "t.xls"))
    assert "\n" not in str(caught.value)
