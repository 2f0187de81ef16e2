"""A user's file becomes a data set, or one line says what to correct and where."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from broken_tables import zipped

from svgpbench_datasets import DataError, load_user_table

GOOD = "x1,x2,y\n1,2,3\n4,5.5,6\n-7,8e-1,9\n"


def csv(folder: Path, text: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parquet(folder: Path, columns: dict[str, Any], name: str = "data.parquet") -> Path:
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path


def refused(path: Path, message: str, **options: Any) -> None:
    asked: dict[str, Any] = {"target": "y", "task": "regression", **options}
    with pytest.raises(DataError, match=message) as caught:
        load_user_table(path, **asked)
    assert len(str(caught.value).splitlines()) == 1
    assert path.name in str(caught.value)


def test_csv_with_every_other_column_as_feature(tmp_path: Path) -> None:
    path = csv(tmp_path, GOOD)
    dataset = load_user_table(path, target="y", task="regression")
    np.testing.assert_array_equal(dataset.X, [[1, 2], [4, 5.5], [-7, 0.8]])
    np.testing.assert_array_equal(dataset.y, [3, 6, 9])
    assert (dataset.name, dataset.source) == ("data", str(path))
    assert (dataset.feature_names, dataset.target_name) == (("x1", "x2"), "y")
    assert dataset.class_labels is None


def test_features_are_taken_in_the_order_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "y,note,b,a\n1,hello,2,3\n4,world,5,6\n")
    dataset = load_user_table(path, target="y", task="regression", features=["a", "b"], name="mine")
    np.testing.assert_array_equal(dataset.X, [[3, 2], [6, 5]])
    assert (dataset.name, dataset.feature_names) == ("mine", ("a", "b"))


def test_byte_order_mark_windows_line_ends_and_padding_are_read(tmp_path: Path) -> None:
    plain = load_user_table(csv(tmp_path, GOOD), target="y", task="regression")
    text = b"\xef\xbb\xbf" + GOOD.replace(",", " , ").replace("\n", "\r\n").encode()
    padded = load_user_table(csv(tmp_path, text, "w.CSV"), target="y", task="regression")
    assert padded.fingerprint == plain.fingerprint


def test_parquet_gives_the_same_numbers_as_csv(tmp_path: Path) -> None:
    columns = {"x1": [1, 4, -7], "x2": [2.0, 5.5, 0.8], "y": [Decimal(3), Decimal(6), Decimal(9)]}
    from_parquet = load_user_table(parquet(tmp_path, columns), target="y", task="regression")
    from_csv = load_user_table(csv(tmp_path, GOOD), target="y", task="regression")
    assert from_parquet.fingerprint == from_csv.fingerprint
    assert from_parquet.feature_names == from_csv.feature_names


def test_parquet_column_names_may_hold_dots(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"x.1": [1.0, 2.0], "y": [3.0, 4.0], "x": [5.0, 6.0]})
    dataset = load_user_table(path, target="y", task="regression", features=["x.1"])
    assert dataset.X.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("labels", "classes", "y"),
    [
        (["yes", "no", "yes"], ("no", "yes"), [1, 0, 1]),
        (["10", "9", "9.0"], ("9", "10"), [1, 0, 0]),
        (["-1", "1", "-1"], ("-1", "1"), [0, 1, 0]),
        (["True", "False", "False"], ("False", "True"), [1, 0, 0]),
    ],
)
def test_two_labels_become_zero_and_one_in_sorted_order(
    tmp_path: Path, labels: list[str], classes: tuple[str, str], y: list[int]
) -> None:
    text = "x,y\n" + "".join(f"{row},{label}\n" for row, label in enumerate(labels))
    dataset = load_user_table(csv(tmp_path, text), target="y", task="classification")
    assert dataset.class_labels == classes
    assert dataset.y.tolist() == y
    assert dataset.X.tolist() == [[0], [1], [2]]


def test_several_labels_become_class_numbers_in_sorted_order(tmp_path: Path) -> None:
    text = "x,y\n" + "".join(f"{row},{label}\n" for row, label in enumerate((10, 9, 8, 9.0)))
    dataset = load_user_table(csv(tmp_path, text), target="y", task="multiclass")
    assert (dataset.task, dataset.class_labels) == ("multiclass", ("8", "9", "10"))
    assert dataset.y.tolist() == [2, 1, 0, 1]
    refused(csv(tmp_path, "x,y\n1,a\n2,a\n"), "multiclass needs at least two", task="multiclass")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([True, False], ("False", "True")),
        ([1.0, -1.0], ("-1", "1")),
        ([2, 10], ("2", "10")),
        (["b", "a"], ("a", "b")),
        (pa.array(["b", "a"]).dictionary_encode(), ("a", "b")),
    ],
)
def test_parquet_labels_of_any_plain_type(
    tmp_path: Path, labels: Any, classes: tuple[str, str]
) -> None:
    path = parquet(tmp_path, {"x": [1, 2], "y": labels})
    dataset = load_user_table(path, target="y", task="classification")
    assert dataset.class_labels == classes
    assert sorted(dataset.y.tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"data\.csv is empty; give a header line"),
        ("\n \n\n", r"holds only blank lines"),
        ("x1,x2,y\n", r"no data rows; give at least two"),
        ("x1,x2,y\n1,2,3\n", r"1 data row; give at least two"),
        ("x1,x2,y\n1,2,3\n4,abc,6\n", r"line 3, column 2 \('x2'\) holds 'abc', not a number"),
        ("x1,x2,y\n1,2,3\n4,5,abc\n", r"line 3, column 3 \('y'\) holds 'abc', not a number"),
        ("x1,x2,y\n1,,3\n4,5,6\n", r"line 2, column 2 \('x2'\) is empty; fill it in or remove"),
        ("x1,x2,y\n1,nan,3\n4,5,6\n", r"line 2, column 2 \('x2'\) holds 'nan', a missing value"),
        ("x1,x2,y\n1,NA,3\n4,5,6\n", r"line 2, column 2 \('x2'\) holds 'NA', a missing value"),
        ("x1,x2,y\n1,2,3\n4,5,inf\n", r"line 3, column 3 \('y'\) holds 'inf'; give a finite"),
        ("x1,x2,y\n1,2\n4,5,6\n", r"line 2 has 2 cells where 3 columns are expected"),
        ("x,x,y\n1,2,3\n4,5,6\n", r"2 columns are named 'x' \(columns 1 and 2\)"),
        (",x,y\n0,2,3\n1,5,6\n", r"column 1 has no name \(a saved row index\?\)"),
        ("y\n1\n2\n", r"no feature columns beside the target 'y'"),
        ("x1,x2,Y\n1,2,3\n4,5,6\n", r"no column 'y' for the target; did you mean 'Y'\?"),
        ("1.5,2,3\n4,5,6\n", r"no column 'y' .*; a table without names has columns x1 to x3"),
        ("x1;y\n1;2\n4;5,5\n", r"line 3, column 2 \('y'\) holds '5,5', .* with decimal points"),
        ('x,y\n1,"2\n3,4\n', r"line 2 is not well-formed CSV"),
    ],
)
def test_a_bad_csv_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    refused(csv(tmp_path, text), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "x22"}, r"no column 'x22' for the target; did you mean 'x2'\?"),
        ({"features": ["x1", "z"]}, r"no feature column 'z' \(columns: 'x1', 'x2', 'y'\)"),
        ({"features": ["x11"]}, r"no feature column 'x11'; did you mean 'x1'\?"),
        ({"features": ["x1", "y"]}, r"target 'y' is among the features"),
        ({"features": ["x1", "x1"]}, r"feature 'x1' is named 2 times"),
        ({"features": []}, r"no feature columns"),
        ({"features": "x1"}, r"give a list of names"),
        ({"task": "regresion"}, r"unknown task 'regresion'.*did you mean 'regression'\?"),
        ({"task": "binary"}, r"unknown task 'binary'"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_wrong_request_is_refused(
    tmp_path: Path, kind: str, options: dict[str, Any], message: str
) -> None:
    columns = {"x1": [1.0, 2.0], "x2": [3.0, 4.0], "y": [5.0, 6.0]}
    path = csv(tmp_path, GOOD) if kind == "csv" else parquet(tmp_path, columns)
    refused(path, message, **options)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("aaa", r"target 'y' has 1 distinct value \('a'\); classification needs exactly two"),
        ("abc", r"target 'y' has 3 distinct values \('a', 'b', 'c'\)"),
        ("abcdefg", r"7 distinct values \('a', 'b', 'c', 'd', 'e' and 2 more\)"),
        ("a b", r"line 3, column 2 \('y'\) is empty"),
        ("a?b", r"line 3, column 2 \('y'\) holds '\?', a missing value"),
    ],
)
def test_a_target_without_two_labels_is_refused(tmp_path: Path, labels: str, message: str) -> None:
    text = "x,y\n" + "".join(f"1,{label}\n" for label in labels)
    refused(csv(tmp_path, text), message, task="classification")


def test_a_word_in_the_target_of_a_regression_may_be_a_label(tmp_path: Path) -> None:
    why = r"line 2, column 2 \('y'\) holds 'no', not a number; .* labels, choose task 'classif"
    refused(csv(tmp_path, "x,y\n1,no\n2,yes\n"), why, task="regression")


@pytest.mark.parametrize("kinds", [3, 4])
def test_numbers_that_differ_from_row_to_row_are_no_labels(tmp_path: Path, kinds: int) -> None:
    path = csv(tmp_path, "x,y\n" + "".join(f"1,{at % kinds + 0.5}\n" for at in range(6)))
    if kinds == 3:
        assert load_user_table(path, target="y", task="multiclass").y.tolist() == [0, 1, 2] * 2
    else:
        refused(
            path, r"target 'y' has 4 distinct numbers in 6 rows, such as 0\.5", task="multiclass"
        )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": ["a", "b"], "y": [1, 2]}, r"row 1, column 1 \('x'\) holds 'a', not a number"),
        ({"x": [True, False], "y": [1, 2]}, r"row 1, column 1 \('x'\) holds 'True', not a number"),
        ({"x": [True, None], "y": [1, 2]}, r"row 1, column 1 \('x'\) holds 'True', not a number"),
        ({"x": [1, None], "y": [1, 2]}, r"row 2, column 1 \('x'\) is empty"),
        ({"x": [None, None], "y": [1, 2]}, r"row 1, column 1 \('x'\) is empty"),
        ({"x": [1.0, 2.0], "y": [float("nan"), 1]}, r"row 1, column 2 \('y'\) holds 'nan'"),
        ({"x": [1.0, float("-inf")], "y": [1, 2]}, r"row 2, column 1 \('x'\) holds '-inf'"),
        (
            {"x": [1.0, float("inf")], "y": [1, 2]},
            r"row 2, column 1 \('x'\) holds 'inf'; give a fin",
        ),
        ({"x": pa.array([1, 2**63 + 1], pa.uint64()), "y": [1, 2]}, r"row 2, column 1 .* exactly"),
        ({"x": [1], "y": [1]}, r"1 data row; give at least two"),
        ({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}, r"no data rows"),
        ({"x": [[1], [2]], "y": [1, 2]}, r"column 1 \('x'\) holds list.*, neither text nor numb"),
        (
            {"x": pa.array([1, 2], pa.timestamp("s")), "y": [1, 2]},
            r"column 1 \('x'\) holds timestamp.*; convert it",
        ),
        ({"x": pa.array([1, 2], pa.date32()), "y": [1, 2]}, r"holds date32"),
        ({"x": pa.array([1, 2], pa.duration("s")), "y": [1, 2]}, r"holds duration"),
    ],
)
def test_a_bad_parquet_is_refused_with_its_place(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    refused(parquet(tmp_path, columns), message)


def test_parquet_labels_that_are_missing_or_strange_are_refused(tmp_path: Path) -> None:
    missing = parquet(tmp_path, {"x": [1, 2], "y": ["a", None]}, "missing.parquet")
    refused(missing, r"row 2, column 2 \('y'\) is empty", task="classification")
    strange = parquet(tmp_path, {"x": [1, 2], "y": [b"a", b"b"]}, "strange.parquet")
    refused(strange, r"holds binary, neither text nor numbers", task="classification")


def test_duplicate_parquet_columns_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["x", "x", "y"])
    pq.write_table(table, tmp_path / "data.parquet")
    refused(tmp_path / "data.parquet", r"2 columns are named 'x'")


@pytest.mark.parametrize("keep", [4, 100, -20])
def test_a_file_that_only_claims_to_be_parquet_is_refused(tmp_path: Path, keep: int) -> None:
    whole = parquet(tmp_path, {"x": [1.0, 2.0], "y": [3.0, 4.0]}, "whole.parquet").read_bytes()
    refused(csv(tmp_path, whole[:keep], "cut.parquet"), "is not a Parquet file that can be read")
    refused(csv(tmp_path, GOOD, "text.parquet"), "is not a Parquet file that can be read")


def test_a_class_beyond_the_columns_of_a_file_without_names_is_refused(tmp_path: Path) -> None:
    refused(
        csv(tmp_path, "10\n20\n"),
        "no column 'x2' for the target",
        target="x2",
        task="classification",
    )


def test_a_path_that_is_no_table_is_refused(tmp_path: Path) -> None:
    csv(tmp_path, GOOD)
    refused(tmp_path / "dat.csv", r"no file .*dat\.csv; did you mean 'data\.csv'\?")
    refused(tmp_path / "nowhere" / "data.csv", r"^no file .*data\.csv$")
    refused(tmp_path, r"is a folder; name a file in it")
    refused(
        csv(tmp_path, GOOD, "data.doc"), r"files ending in '\.doc' are not read; use \.csv, .*\.npz"
    )
    refused(csv(tmp_path, b"", "empty.parquet"), r"empty\.parquet is empty")


def test_a_zip_whose_one_file_lost_its_name_is_refused(tmp_path: Path) -> None:
    nameless = b"\0.csv".join(
        zipped(GOOD.encode(), "t.csv").rsplit(b"t.csv", 1)
    )  # in the central directory
    refused(csv(tmp_path, nameless, "nameless.zip"), "'' in the archive is not a plain file")


def test_a_zip_whose_names_are_no_text_is_refused(tmp_path: Path) -> None:
    whole = zipped(GOOD.encode(), "t.csv")
    central = whole.index(b"PK\1\2")
    for name in (30, central + 46):  # before the member itself, and in the central directory
        raw = bytearray(whole)
        for flags in (6, central + 8):
            raw[flags + 1] |= 8  # names are UTF-8
        raw[name] = 0xAB
        refused(csv(tmp_path, bytes(raw), "odd.zip"), "can.* be read.*invalid start byte")
