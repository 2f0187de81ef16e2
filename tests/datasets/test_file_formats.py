"""ARFF, idx, .mat, .npy and workbooks become tables, or one line that says what is wrong and where."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
from workbook import workbook, xlsx

from svgpbench_datasets import DataError
from svgpbench_datasets.reading.formats import open_table
from svgpbench_datasets.reading.table import Layout

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


def read(raw: bytes, reader: str, *arrays: str, **layout: Any) -> tuple[Any, pd.DataFrame]:
    table = open_table(io.BytesIO(raw), "t", Layout(reader, arrays=arrays, **layout))
    return table.names, pd.concat(list(table.frames(None)))


def refused(raw: bytes, reader: str, message: str, *arrays: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(raw, reader, *arrays)
    assert "\n" not in str(caught.value)


def test_arff_names_its_columns_and_counts_lines_from_the_top() -> None:
    names, frame = read(ARFF.encode(), "arff")
    assert names == ("joint one", "plain", "class")
    assert frame.index.tolist() == [9, 11]
    assert frame.to_numpy().tolist() == [["1", "2.5", "a"], ["-3 ", " 4e1 ", "b"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation r\n1,2\n", r"line 2 holds '1,2' where an @attribute"),
        ("@relation r\n@data\n1\n", r"line 2 holds '@data' where an @attribute"),
        ("@attribute 'a numeric\n@data\n", r"line 1 holds .* where an @attribute"),
        ("@attribute a numeric\n", r"has no @data line"),
        ("", r"has no @data line"),
        ("@attribute a numeric\n@data\n{0 1}\n", r"line 3 is a sparse row"),
        ("@attribute a numeric\n@data\n% x\n1\n2,3\n", r"line 5 has 2 cells where 1 columns"),
        ('@attribute a numeric\n@data\n1\n"2\n', r"line 4 is not well-formed CSV"),
    ],
)
def test_what_is_not_arff_is_refused_with_its_line(text: str, message: str) -> None:
    refused(text.encode(), "arff", message)


def idx(shape: tuple[int, ...], values: bytes, kind: int = 8) -> bytes:
    return struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape) + values


def test_idx_rows_are_the_first_axis() -> None:
    _, table = read(idx((2, 2, 3), bytes(range(12))), "idx")
    assert set(table.dtypes) == {np.dtype(np.uint8)}
    assert table.to_numpy().tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert read(idx((3,), b"\x07\x08\xff"), "idx")[1].to_numpy().tolist() == [[7], [8], [255]]


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
    refused(raw, "idx", message)


def written(write: Callable[..., object], *values: Any, **options: Any) -> bytes:
    """Return what a function writes into a file that is its first argument."""
    file = io.BytesIO()
    write(file, *values, **options)
    return file.getvalue()


def mat(**variables: Any) -> bytes:
    return written(scipy.io.savemat, variables)


def npz(**arrays: Any) -> bytes:
    return written(np.savez_compressed, **arrays)


def npy(array: Any) -> bytes:
    return written(np.save, array)


BOTH = pytest.mark.parametrize(("reader", "write"), [("mat", mat), ("numpy", npz)])
MATRIX = np.array([[1.0, 2.5], [3.0, -4.0], [5.0, 6.0]])


@BOTH
def test_an_array_is_read_by_name_or_as_the_only_one(reader: str, write: Any) -> None:
    names, table = read(write(a=MATRIX, note="text"), reader)
    assert (names, table.to_numpy().tolist()) == (None, MATRIX.tolist())
    assert table.index.tolist() == [1, 2, 3]
    names, table = read(write(a=MATRIX, b=MATRIX.T), reader, "b")
    assert (names, table.to_numpy().tolist()) == (None, MATRIX.T.tolist())
    assert read(write(a=np.arange(3.0)), reader, "a")[1].size == 3


@BOTH
@pytest.mark.parametrize("y", [[7, 8, 9], [[7], [8], [9]], [[7, 8, 9]]])
def test_arrays_of_as_many_rows_stand_side_by_side(reader: str, write: Any, y: Any) -> None:
    raw = write(X=MATRIX, scale=np.float64(3.0), y=np.array(y))
    for arrays in ((), ("X", "y")):
        names, table = read(raw, reader, *arrays)
        assert names == ("X1", "X2", "y")
        assert table.to_numpy().tolist() == [[1, 2.5, 7], [3, -4, 8], [5, 6, 9]]
    names, table = read(write(x=np.arange(3.0), y=np.array(y)), reader)
    assert (names, table.shape) == (("x", "y"), (3, 2))


@BOTH
def test_arrays_that_make_no_table_are_refused_with_all_there_are(reader: str, write: Any) -> None:
    raw = write(X=MATRIX, Xtest=MATRIX[:2], c=MATRIX * 1j, t=np.zeros((2, 2, 2)))
    refused(raw, reader, r"side by side: 'X': \[3, 2\] float64, 'Xtest': .*, 'c': .*`arrays`")
    refused(raw, reader, r"no array 'Y' \(it holds 'X': \[3, 2\]", "Y")
    refused(raw, reader, "'c' is .*complex.*, not a table of numbers", "c")
    refused(raw, reader, r"'t' is \[2, 2, 2\] float64, not a table of numbers", "t")
    refused(write(c=MATRIX * 1j), reader, "no array that is a table of numbers")


def test_truth_values_and_words_are_labels() -> None:
    names, table = read(npz(X=MATRIX, y=np.array(["a", "b", "a"]), b=MATRIX[:, 0] > 2), "numpy")
    assert names == ("X1", "X2", "y", "b")
    assert table[2].tolist() == ["a", "b", "a"]
    assert table[3].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "is a char, not a table of numbers"),
        (np.array([{"x": 1}], dtype=object), "is a cell, not a table of numbers"),
        ({"field": 1.0}, "is a struct, not a table of numbers"),
    ],
)
def test_a_variable_that_is_no_matrix_is_refused(value: Any, message: str) -> None:
    refused(mat(a=value), "mat", message, "a")


def test_bytes_that_are_no_mat_file_are_refused() -> None:
    whole = mat(a=np.eye(3))
    for raw in (b"", b"MATLAB 7.3", whole[:200], whole[:128]):
        refused(raw, "mat", r"^t (is|has)", "a")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_matrices_of_every_kind_are_those_that_were_saved(kind: str, compressed: bool) -> None:
    matrix = np.random.default_rng(0).uniform(0, 100, (7, 5)).astype(kind)
    variables = {"other": np.eye(3), "a": matrix}
    raw = written(scipy.io.savemat, variables, do_compression=compressed)
    table = read(raw, "mat", "a")[1].to_numpy()
    assert (table.dtype, table.shape) == (np.float64, (7, 5))
    np.testing.assert_array_equal(table, matrix)
    for order in ("C", "F"):
        for byte_order in "<>":
            matrix = matrix.astype(matrix.dtype.newbyteorder(byte_order))
            saved = read(npy(np.array(matrix, order=order)), "numpy")[1]
            np.testing.assert_array_equal(saved.to_numpy(), matrix)
            assert all(kind.isnative for kind in saved.dtypes)  # pandas groups no others


def test_a_file_of_the_other_byte_order_is_read() -> None:
    def words(*values: int) -> bytes:
        return struct.pack(f">{len(values)}I", *values)

    body = words(6, 8, 6, 0, 5, 8, 2, 1) + words((1 << 16) | 1) + b"a\0\0\0"
    body += words(9, 16) + struct.pack(">2d", 1.5, -2.0)
    raw = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI" + words(14, len(body)) + body
    assert read(raw, "mat", "a")[1].to_numpy().tolist() == [[1.5], [-2.0]]


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
    refused(raw, "mat", f"t is a MATLAB file that cannot be read: {message}", "m")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x93NUMPY",
        npy(MATRIX)[:-1],
        npy(MATRIX) + b"\0",
        npy(MATRIX).replace(b"(3, 2)", b"(3,99)"),
        npy(np.array([{}, 1], dtype=object)),
        npy(MATRIX).replace(b"'<f8'", b"'|O' "),
    ],
)
def test_bytes_that_are_no_array_are_refused(raw: bytes) -> None:
    refused(raw, "numpy", "t is not a NumPy file that can be read")


@pytest.mark.parametrize("kind", ["<U0", "|S0"])
@pytest.mark.parametrize("packed", [False, True])
def test_texts_of_no_width_are_refused_before_there_is_room_made_for_them(
    kind: str, packed: bool
) -> None:
    texts = np.ndarray(20_000_000, kind)
    announced = "it announces 20,000,000 values in 128 bytes"
    tracemalloc.start()
    try:
        refused(npz(a=texts) if packed else npy(texts), "numpy", announced)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("code", [0xD800, 0xDFFF, 0x110000])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("packed", [False, True])
def test_a_text_that_is_not_unicode_is_refused(code: int, order: str, packed: bool) -> None:
    texts = np.array([65, code], f"{order}u4").view(f"{order}U1")
    raw = npz(a=texts) if packed else npy(texts)
    refused(raw, "numpy", "a text in it has a character that is not Unicode")


def test_what_unpacks_to_far_more_than_it_is_is_refused() -> None:
    bomb = npz(a=np.zeros((1 << 23, 5)))  # 320 MiB in 320 KiB
    refused(bomb, "numpy", "it unpacks to 335,544,4")


@pytest.mark.parametrize("write", [workbook, xlsx])
def test_a_workbook_without_its_empty_cells_and_rows(write: Any) -> None:
    raw = write([["a", "b", ""], ["", "", ""], [1.5, "2", ""], [3.0, "", ""]])
    names, frame = read(raw, "xls", header=None)
    assert names == ("a", "b")
    assert frame.index.tolist() == [3, 4]
    assert frame.to_numpy().tolist() == [[1.5, "2"], [3.0, None]]
    names, frame = read(write([[1.0, 2.0], [3.0, 4.0]]), "xls", header=None)
    assert (names, frame.to_numpy().tolist()) == (None, [[1, 2], [3, 4]])
    refused(write([[1.0, 2.0], [3.0, 4.0, 5.0]]), "xls", "row 2 has 3 cells where 2 columns")


@pytest.mark.parametrize("value", [True, date(2020, 1, 1)])
def test_a_date_or_a_truth_value_is_no_number(value: object) -> None:
    refused(
        xlsx([[1.0, 2.0], [3.0, value]]), "xls", "t: row 2, column 2 holds a date, a truth value"
    )


@pytest.mark.parametrize(
    "raw", [b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), npz(a=MATRIX)]
)
def test_bytes_that_are_no_workbook_are_refused(raw: bytes) -> None:
    refused(raw, "xls", "t is not a workbook that can be read")
