"""Saved row indices, labels as they are spelled, missing values, and those that float64 does not hold."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from test_user_table import csv, parquet, refused
from workbook import xlsx

from svgpbench_datasets import DataError, Dataset, load_user_table
from svgpbench_datasets.audit.report import audit_dataset
from svgpbench_datasets.reading import table

FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [5.0, 7.0, 6.0, 9.0]})


def saved(folder: Path, frame: pd.DataFrame, name: str) -> Path:
    path = folder / name
    if name.endswith(".feather"):
        pyarrow.feather.write_feather(pa.Table.from_pandas(frame), path)
    else:
        frame.to_parquet(path)
    return path


INDICES: dict[str, tuple[pd.DataFrame, tuple[str, ...]]] = {
    "none": (FRAME, ()),
    "shuffled": (FRAME.sample(frac=1, random_state=1), ("__index_level_0__",)),
    "named": (FRAME.set_index(pd.Index([9, 4, 7, 6], name="id")), ("id",)),
    "text": (FRAME.set_index(pd.Index(list("abcd"), name="id")), ("id",)),
    "dates": (FRAME.set_index(pd.date_range("2020", periods=4)), ("__index_level_0__",)),
    "two": (
        FRAME.set_index(pd.MultiIndex.from_product([[1, 2], [3, 4]], names=["a", None])),
        ("a", "__index_level_1__"),
    ),
}


@pytest.mark.parametrize("kind", INDICES)
@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_the_index_that_a_file_names_is_no_input(tmp_path: Path, kind: str, name: str) -> None:
    frame, left_out = INDICES[kind]
    dataset = load_user_table(saved(tmp_path, frame, name), target="y", task="regression")
    assert dataset.feature_names == ("x",)
    np.testing.assert_array_equal(dataset.X[:, 0], frame["x"])
    assert len(dataset.notes) == bool(left_out)
    assert all(repr(one) in dataset.notes[0] for one in left_out)


def test_an_audit_tells_what_was_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path, INDICES["shuffled"][0], "t.parquet")
    (flag,) = audit_dataset(load_user_table(path, target="y", task="regression")).as_read
    assert "'__index_level_0__' left out: the file says that it is the saved index" in flag.text
    assert not flag.leak


@pytest.mark.parametrize("unit", [1e-13, 1.0, 1e140])
def test_an_audit_finds_the_constant_columns_of_standardisation(unit: float) -> None:
    X = unit * np.column_stack([np.arange(6.0), np.full(6, 0.3), 1.0 + 1e-14 * np.arange(6.0)])
    found = audit_dataset(dataset(X=X, y=unit * np.arange(6.0), feature_names=("a", "b", "c")))
    assert found.facts.constant_columns == ("b", "c")
    assert [flag.kind for flag in found.hard_target] == ["few-digits"]  # c varies in its last ones


@pytest.mark.parametrize("unit", [1e-160, 1e160])
def test_an_audit_of_what_has_no_squares_is_refused(unit: float) -> None:
    y = unit * np.arange(4.0)
    with pytest.raises(
        DataError, match=r"column 'y' is too (small|large) to standardise by squares"
    ):
        audit_dataset(dataset(y=y))
    with pytest.raises(DataError, match="column 'x' is too"):
        audit_dataset(dataset(X=y[:, None]))


def test_an_audit_of_what_has_no_squares_in_its_last_digits_is_refused() -> None:
    X = 1e-170 * np.array([1.0, 1.0, 1.0 + 2e-16, 1.0])[:, None]
    with pytest.raises(DataError, match="column 'x' is too small to standardise by squares"):
        audit_dataset(dataset(X=X))
    equal = audit_dataset(dataset(X=np.full((4, 1), 1e-170)))
    assert equal.facts.constant_columns == ("x",)


def test_an_index_that_is_asked_for_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path, INDICES["named"][0], "t.parquet")
    as_input = load_user_table(path, target="y", task="regression", features=["id", "x"])
    assert (as_input.X[:, 0].tolist(), as_input.notes) == ([9, 4, 7, 6], ())
    assert load_user_table(path, target="id", task="regression").feature_names == ("x", "y")
    grouped = load_user_table(path, target="y", task="regression", groups="id")
    assert (grouped.feature_names, grouped.group_labels) == (("x",), ("4", "6", "7", "9"))


@pytest.mark.parametrize(
    "metadata",
    [
        *(b"no JSON", b"[]", b"[" * 100_000),
        *(b'{"index_columns": ["absent", 3]}', b'{"index_columns": 3}', b'{"index_columns": "x"}'),
    ],
    ids=["text", "list", "deep", "absent", "number", "name"],
)
def test_metadata_that_is_odd_leaves_nothing_out(tmp_path: Path, metadata: bytes) -> None:
    made = pa.table({"x": [1, 2], "y": [3, 4]}).replace_schema_metadata({b"pandas": metadata})
    pq.write_table(made, tmp_path / "t.parquet")
    dataset = load_user_table(tmp_path / "t.parquet", target="y", task="regression")
    assert dataset.feature_names == ("x",)


@pytest.mark.parametrize("name", ["Unnamed: 0", "Unnamed: 0.1", "__index_level_0__"])
def test_an_index_that_went_through_pandas_is_no_input(tmp_path: Path, name: str) -> None:
    path = csv(tmp_path, f"{name},x,y\n2,1,2\n0,3,4\n1,5,6\n")
    dataset = load_user_table(path, target="y", task="regression")
    assert dataset.feature_names == ("x",)
    assert f"{name!r} left out: pandas calls so the saved index" in dataset.notes[0]
    named = load_user_table(path, target="y", task="regression", features=[name, "x"])
    assert (named.X[:, 0].tolist(), named.notes) == ([2, 0, 1], ())
    grouped = load_user_table(path, target="y", task="regression", groups=name)
    assert grouped.group_labels == ("0", "1", "2")


@pytest.mark.parametrize("name", ["", " ", "Unnamed: 3"])
@pytest.mark.parametrize("form", ["t.csv", "t.tsv", "t.xlsx", "t.parquet"])
def test_a_column_without_a_name_of_its_own_is_refused(
    tmp_path: Path, name: str, form: str
) -> None:
    names, rows = [name, "x", "y"], [[0, 1.0, 2.0], [1, 2.0, 5.0], [2, 3.0, 4.0]]
    if form == "t.parquet":
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        path = parquet(tmp_path, {key: list(column) for key, column in columns.items()}, form)
    elif form == "t.xlsx":
        path = csv(tmp_path, xlsx([names, *rows]), form)
    else:
        mark = "," if form == "t.csv" else "\t"
        lines = [mark.join(map(str, row)) for row in (names, *rows)]
        path = csv(tmp_path, "\n".join(lines), form)
    refused(path, "column 1 has no name")
    dataset = load_user_table(path, target="y", task="regression", features=["x"])
    assert dataset.X[:, 0].tolist() == [1.0, 2.0, 3.0]


WORDS = [["NA", "EU", "AF"], ["None", "Insomnia", "Apnea"], ["null", "a", "b"], ["nan", "so", "on"]]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("form", ["t.csv", "t.parquet", "t.xlsx"])
def test_words_that_may_mean_missing_are_labels_of_a_column_of_text(
    tmp_path: Path, words: list[str], form: str
) -> None:
    rows = [[float(i), words[i % 3]] for i in range(9)]
    path = tmp_path / form
    if form == "t.csv":
        pd.DataFrame(rows, columns=["x", "y"]).to_csv(path, index=False)
    elif form == "t.xlsx":
        csv(tmp_path, xlsx([["x", "y"], *rows]), form)
    else:
        pd.DataFrame(rows, columns=["x", "y"]).to_parquet(path)
    dataset = load_user_table(path, target="y", task="multiclass")
    assert dataset.class_labels == tuple(sorted(words))
    assert [dataset.class_labels[int(number)] for number in dataset.y] == [row[1] for row in rows]
    assert f"{words[0]!r} is a label here" in dataset.notes[0]
    text = "x,g,y\n" + "".join(f"{a},{b},{a}\n" for a, b in rows)
    own = csv(tmp_path, text, "g.csv")
    grouped = load_user_table(own, target="y", task="regression", groups="g")
    assert grouped.group_labels == tuple(sorted(words))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "", "b"], r"line 3, column 2 \('y'\) is empty"),
        (["a", "b", "?"], r"line 4, column 2 \('y'\) holds '\?', a missing value"),
        (["1", "NA", "2"], r"line 3, column 2 \('y'\) holds 'NA', a missing value"),
        (["1.5", "u", "None"], r"line 4, column 2 \('y'\) holds 'None', a missing value"),
        (["NA", "NaN", "NA"], r"line 2, column 2 \('y'\) holds 'NA', a missing value"),
        (["u", "v", "a\x1b[31m"], r"line 4, column 2 \('y'\) holds 'a\\x1b\[31m', a label with"),
    ],
)
def test_a_label_that_is_missing_is_refused(
    tmp_path: Path, labels: list[str], message: str
) -> None:
    text = "x,y\n" + "".join(f"{row},{label}\n" for row, label in enumerate(labels))
    refused(csv(tmp_path, text), message, task="multiclass")


def test_two_classes_and_a_word_that_may_mean_missing_say_so(tmp_path: Path) -> None:
    path = csv(tmp_path, "x,y\n1,yes\n2,no\n3,NA\n")
    refused(path, "if 'NA' is a missing value, remove its rows", task="classification")


@pytest.mark.parametrize("other", ["w", "7"])
@pytest.mark.parametrize(
    ("written", "classes"),
    [
        (["01", "02"], ("01", "02")),
        (["1.0", "2.0"], ("1.0", "2.0")),
        (["007", "10"], ("007", "10")),
        (["1e3", "5"], ("5", "1e3")),
        (["+1", "-1"], ("-1", "+1")),
        (["12345678901234567890", "12345678901234567891"],) * 2,
    ],
)
def test_labels_keep_their_spelling(
    tmp_path: Path, other: str, written: list[str], classes: tuple[str, ...]
) -> None:
    """The other column decides whether the file is parsed as plain numbers or cell by cell."""
    text = "x,o,z,y\n" + "".join(f"{i},{other},{i},{written[i % 2]}\n" for i in range(4))
    path = csv(tmp_path, text)
    dataset = load_user_table(path, target="y", task="classification", features=["x"])
    assert (dataset.class_labels, dataset.notes) == (tuple(classes), ())
    grouped = load_user_table(path, target="x", task="regression", features=["z"], groups="y")
    assert grouped.group_labels == tuple(classes)
    without = csv(tmp_path, text.partition("\n")[2], "headerless.csv")
    if other == "7":
        dataset = load_user_table(without, target="x4", task="classification")
        assert dataset.class_labels == tuple(classes)


@pytest.mark.parametrize("other", ["w", "7"])
def test_two_spellings_of_a_number_are_one_label_and_get_a_line(tmp_path: Path, other: str) -> None:
    written = ["01", "1", "2.0", "1.0"]
    text = "x,o,y\n" + "".join(f"{i},{other},{label}\n" for i, label in enumerate(written))
    dataset = load_user_table(
        csv(tmp_path, text), target="y", task="classification", features=["x"]
    )
    assert (dataset.class_labels, dataset.y.tolist()) == (("1", "2.0"), [0, 0, 1, 0])
    (note,) = dataset.notes
    assert "column 'y': '01', '1', '1.0' are read as one label, '1'" in note


LARGE = 2**53
INTEGERS = [
    (LARGE - 1, True),
    (LARGE, True),
    (LARGE + 1, False),
    (1 - LARGE, True),
    (-LARGE, True),
    (-LARGE - 1, False),
    (2**60, False),
    (-(2**60), False),
    (1 - 2**63, False),
    (-(2**63), False),
    (1234567890123456789, False),
    (-1234567890123456789, False),
    (10**18, True),
]


def of_integers(folder: Path, form: str, value: int) -> tuple[Path, dict[str, Any]]:
    """A table of three rows whose second value of x is `value`."""
    column = [1, value, 3]
    name = form.partition(" ")[0]
    path = folder / f"t.{name}"
    if name == "csv":
        word = ",w" if form == "csv words" else ""
        csv(folder, f"x,y{word}\n1,1{word}\n{value},2{word}\n3,3{word}\n", path.name)
    elif form == "npz":
        np.savez(path, x=np.array(column), y=np.arange(3))
    elif form == "mat":
        scipy.io.savemat(path, {"x": np.array(column)[:, None], "y": np.arange(3.0)[:, None]})
    elif form == "xlsx":
        csv(folder, xlsx([["x", "y"], ["1", 0], [str(value), 1], ["3", 2]]), path.name)
    else:
        made: dict[str, Any] = {
            "int64": pa.array(column),
            "decimal": pa.array([Decimal(a) for a in column], pa.decimal128(38, 0)),
            "text": pa.array(list(map(str, column))),
            "dictionary": pa.array(column).dictionary_encode(),
        }
        pq.write_table(pa.table({"x": made[form.partition(" ")[2]], "y": [1, 2, 3]}), path)
    return path, {"target": "y", "task": "regression", "features": ["x"]}


FORMS = [
    *("csv", "csv words", "npz", "mat", "xlsx"),
    *(f"parquet {kind}" for kind in ("int64", "decimal", "text", "dictionary")),
]


@pytest.mark.parametrize(("value", "held"), INTEGERS)
@pytest.mark.parametrize("form", FORMS)
def test_an_integer_is_read_exactly_or_refused(
    tmp_path: Path, form: str, value: int, held: bool
) -> None:
    path, options = of_integers(tmp_path, form, value)
    if held:
        assert int(load_user_table(path, **options).X[1, 0]) == value
        return
    with pytest.raises(DataError, match="a whole number that float64 cannot hold exactly") as error:
        load_user_table(path, **options)
    unit = "line 3" if form.startswith("csv") else "row 3" if form == "xlsx" else "row 2"
    assert f"{unit}, column 1 ('x') holds '{value}'" in str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("602214076000000000000000", 6.02214076e23),
        ("100000000000000000000000", 1e23),
        ("1.2345678901234567e+20", 1.2345678901234567e20),
        ("0.12345678901234567890", 0.12345678901234567890),
        ("9007199254740992.0", 2.0**53),
        ("-9007199254740994.0", -(2.0**53) - 2.0),
    ],
)
def test_long_numbers_whose_digits_survive_are_read(
    tmp_path: Path, text: str, value: float
) -> None:
    path = csv(tmp_path, f"x,y\n{text},1\n2,3\n")
    assert load_user_table(path, target="y", task="regression").X[0, 0] == value


def test_missing_cells_are_counted_over_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "CELLS_AT_ONCE", 8)  # two rows at a time
    lines = [f"{i},{'' if i % 2 else i},{'NA' if i == 7 else i},{i}" for i in range(10)]
    path = csv(tmp_path, "a,b,c,y\n" + "\n".join(lines))
    message = r"line 3, column 2 \('b'\) is empty; .* \(in all 6 cells in 2 columns are empty or "
    refused(path, message + r"missing: 'b': 5, 'c': 1\)")
    refused(csv(tmp_path, "x,y\n1,\n2,3\n"), r"is empty; fill it in or remove the row$")
    nulls = parquet(tmp_path, {"x": [1.0, None, float("nan")], "y": [1, 2, 3]})
    refused(nulls, r"row 2, column 1 \('x'\) .* 2 cells in 1 column is empty or missing: 'x': 2")


def test_a_sparse_matrix_is_named(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(np.eye(4))
    scipy.sparse.save_npz(tmp_path / "t.npz", matrix)
    refused(tmp_path / "t.npz", "holds a sparse matrix; save it dense")
    scipy.io.savemat(tmp_path / "t.mat", {"X": matrix, "y": np.arange(4.0)})
    refused(tmp_path / "t.mat", "'X' is a sparse, .* save it dense", arrays=["X", "y"])


def dataset(**changes: Any) -> Dataset:
    parts: dict[str, Any] = {"X": np.arange(4.0)[:, None], "y": np.arange(4.0)}
    named: dict[str, Any] = {"feature_names": ("x",), "target_name": "y", "source": "a test"}
    return Dataset(**{"name": "t", "task": "regression", **parts, **named, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"y": np.ma.masked_equal([1.0, -9999, 3, 4], -9999)},
            r"y of data set 't' is missing at \[1\]",
        ),
        (
            {"X": np.ma.masked_equal([[1.0], [2], [-1], [4]], -1)},
            r"X .* is missing at \[2, 0\]: it is mas",
        ),
        ({"y": np.arange(4) + 1j}, "y of data set 't' is of type complex128; give real numbers"),
        ({"y": np.arange(4).astype("datetime64[s]")}, "is of type datetime64"),
        ({"y": np.array(["1", "2", "3", "4"])}, "is of type <U1"),
        (
            {"y": np.array([1, 2, 3, 2**53 + 1])},
            r"holds at \[3\] a whole number that float64 cannot",
        ),
        ({"y": np.array([1, 2, 3, -(2**53) - 1])}, r"holds at \[3\] a whole number"),
        ({"feature_names": ("a\nb",)}, r"'a\\nb' has a control character; rename it"),
        ({"name": "\x1b[31mt"}, r"'\\x1b\[31mt' has a control character"),
        ({"target_name": "y\u202e"}, r"has a control character"),
    ],
)
def test_a_data_set_of_what_float64_does_not_hold_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        dataset(**changes)


def test_a_mask_that_masks_nothing_is_no_mask() -> None:
    made = dataset(y=np.ma.masked_equal([1.0, 2, 3, 4], -9999))
    assert type(made.y) is np.ndarray


def test_a_name_with_a_control_character_is_refused_where_it_stands(tmp_path: Path) -> None:
    refused(
        csv(tmp_path, 'x,"do\nse",y\n1,2,3\n'), r"the name of column 2, 'do\\nse', has a control"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": "clinic"}, "no column 'clinic' for the groups; did you mean 'Clinic'"),
        ({"outputs": ["z"]}, "no column 'z' for the target"),
        (
            {"groups": "Clinic", "features": ["Clinic"]},
            "column of groups 'Clinic' is among the fea",
        ),
        ({"features": ["y"]}, "the target 'y' is among the features"),
    ],
)
def test_a_column_that_is_missing_is_named_by_its_role(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    refused(csv(tmp_path, "x,Clinic,y\n1,a,3\n2,b,4\n"), message, **options)
