"""Files as people and programs write them: comments above, no header, quotes, Finder, other formats."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from test_user_table import csv, refused
from workbook import xlsx

from svgpbench_datasets import DataError, load_user_table
from svgpbench_datasets.reading.text import detect_layout

ROWS = [f"{a / 10},{a % 7},{a % 3}" for a in range(10)]
FLOWERS = [f"{5 + i % 7 / 10:.1f},{i % 5},{'setosa' if i % 2 else 'virginica'}" for i in range(40)]


@pytest.mark.parametrize(
    ("header", "separator"),
    [
        ("# a b y\n", " "),
        ("# a,b,y\n", ","),
        ("#a,b,y\n", ","),
        ("# a, b, y\n", " "),
        ("% a;b;y\n", ";"),
        ("# a\tb\ty\n", "\t"),
        ("# logger 7, firmware 2\na,b,y\n", ","),
        ("# logger, 7, 2\na,b,y\n", ","),
        ("# logger 7\n# units: m s m\n# a b y\n\n", " "),
        ("\ufeff# a,b,y\n", ","),
        ("# logger 7\n\na b y\n", " "),
        ('# "a","b",y\n', ","),
        ("a b y\n", " "),
        ('"a" "b" "y"\n', " "),
        ("a|b|y\n", "|"),
        ("# a|b|y\n", "|"),
        ("sep=;\na;b;y\n", ";"),
        ('"sep=,"\na,b,y\n', ","),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_names_above_the_rows_are_found(
    tmp_path: Path, header: str, separator: str, end: str
) -> None:
    text = header + "".join(row.replace(",", separator) + "\n" for row in ROWS)
    dataset = load_user_table(csv(tmp_path, text.replace("\n", end)), target="y", task="regression")
    assert dataset.feature_names == ("a", "b")
    np.testing.assert_array_equal(dataset.X[:, 0], np.arange(10) / 10)
    assert (dataset.y.tolist(), dataset.notes) == ([a % 3 for a in range(10)], ())


def test_what_numpy_saves_with_a_header_is_read(tmp_path: Path) -> None:
    table = np.arange(12.0).reshape(4, 3)
    np.savetxt(tmp_path / "s.txt", table, header="more\na b y")
    dataset = load_user_table(tmp_path / "s.txt", target="y", task="regression")
    assert dataset.feature_names == ("a", "b")
    np.testing.assert_array_equal(dataset.X, table[:, :2])


def test_comments_that_name_nothing_leave_the_columns_without_names(tmp_path: Path) -> None:
    path = csv(tmp_path, "# made in May\n" + "\n".join(ROWS))
    assert load_user_table(path, target="x3", task="regression").feature_names == ("x1", "x2")
    refused(csv(tmp_path, "# a\n# b\n"), "holds only comments and blank lines")
    refused(csv(tmp_path, "a,b,y\n1,2,3\n# end\n4,5,6\n"), "remove comments that begin with #")


def test_a_file_whose_first_line_has_a_class_of_later_lines_has_no_header(tmp_path: Path) -> None:
    path = csv(tmp_path, "\n".join(FLOWERS), "flowers.data")
    dataset = load_user_table(path, target="x3", task="classification")
    assert (len(dataset.y), dataset.class_labels) == (40, ("setosa", "virginica"))
    assert dataset.y[:2].tolist() == [1, 0]
    refused(path, "a table without names has columns x1 to x3", target="virginica")


def test_a_header_may_hold_numbers_and_says_so(tmp_path: Path) -> None:
    spectra = "400,402,species\n" + "\n".join(FLOWERS)
    dataset = load_user_table(csv(tmp_path, spectra), target="species", task="classification")
    assert (len(dataset.y), dataset.feature_names) == (40, ("400", "402"))
    assert "line 1 is read as names of columns, although some are numbers" in dataset.notes[0]
    assert "header = false" in dataset.notes[0]


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
def test_a_file_may_be_said_to_have_no_header(tmp_path: Path, name: str) -> None:
    rows = [["5.0", "3", "only"], *([str(i), str(i % 4), "setosa"] for i in range(5))]
    path = csv(tmp_path, "\n".join(map(",".join, rows)) if name == "t.csv" else xlsx(rows), name)
    refused(path, "if the first line is data, say `header = false`", target="z")
    options = {"task": "classification", "header": False}
    dataset = load_user_table(path, target="x3", **options)
    assert (len(dataset.y), dataset.class_labels) == (6, ("only", "setosa"))
    assert (dataset.feature_names, dataset.notes) == (("x1", "x2"), ())


def test_a_line_of_numbers_may_be_said_to_be_the_header(tmp_path: Path) -> None:
    path = csv(tmp_path, "2010,2011,2012\n1,2,3\n4,5,6\n")
    dataset = load_user_table(path, target="2012", task="regression", header=True)
    assert (dataset.y.tolist(), dataset.feature_names) == ([3, 6], ("2010", "2011"))
    arff = csv(tmp_path, "@relation r\n@attribute y real\n@data\n1\n", "t.arff")
    refused(arff, "says itself whether it has names; leave `header` out", header=False)


def test_a_workbook_without_a_header_is_seen_by_its_classes(tmp_path: Path) -> None:
    rows = [[float(i), "ab"[i % 2]] for i in range(6)]
    dataset = load_user_table(
        csv(tmp_path, xlsx(rows), "t.xlsx"), target="x2", task="classification"
    )
    assert dataset.X[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"1,200"', "with thousands separators; write it without them"),
        ('"1,200,000"', "with thousands separators"),
        ('"-1,200.5"', "with thousands separators"),
        ("1 200", "with thousands separators"),
        ("1'200", "with thousands separators"),
        ("1\u2019200.5", "with thousands separators"),
        ("1\u00a0200", "with thousands separators"),
        ("1\u202f200\u202f000", "with thousands separators"),
        ("1.200.000", "with thousands separators"),
        ('"1.200,5"', "with thousands separators"),
        ('"1,5"', "with a decimal comma; write the file with decimal points"),
    ],
)
def test_separators_of_thousands_are_named_and_never_a_fraction(
    tmp_path: Path, text: str, words: str
) -> None:
    rows = "".join(f"{i},{text if i == 3 else i}\n" for i in range(6))
    refused(csv(tmp_path, f"x,y\n{rows}"), words)


@pytest.mark.parametrize("mark", ["\t", ";", "|"])
def test_a_comma_that_may_be_of_thousands_or_decimals_is_said_to_be(
    tmp_path: Path, mark: str
) -> None:
    text = f"x{mark}y\n1{mark}2\n1,200{mark}3\n"
    refused(csv(tmp_path, text), "whose comma may separate thousands or decimals")


def test_a_mask_beside_its_array_is_no_input(tmp_path: Path) -> None:
    X, mask = np.arange(6.0).reshape(3, 2), np.array([[0, 0], [0, 1], [0, 0]], dtype=bool)
    np.savez(tmp_path / "t.npz", X=X, X_mask=mask, y=np.arange(3.0))
    refused(tmp_path / "t.npz", "'X_mask' looks like a mask of missing values; name the arrays")
    asked = load_user_table(tmp_path / "t.npz", target="y", task="regression", arrays=["X", "y"])
    assert asked.feature_names == ("X1", "X2")


QUOTED_ARFF = [
    ("'yes'", "yes"),
    ('"yes"', "yes"),
    ("'yes, daily'", "yes, daily"),
    ('"yes, daily"', "yes, daily"),
    (r"'it\'s'", "it's"),
    (r'"an \"a\""', 'an "a"'),
    ("'it''s'", "it's"),
    (r"'50\%'", "50%"),
    ("'a {b}'", "a {b}"),
    ("'% no comment'", "% no comment"),
    ("yes % a comment, long", "yes"),
    (" 'yes' % a comment", "yes"),
    ("100%", "100%"),
    (r"'a\\b'", r"a\b"),
]


@pytest.mark.parametrize(("written", "label"), QUOTED_ARFF)
def test_quotes_of_arff_are_no_part_of_a_value(tmp_path: Path, written: str, label: str) -> None:
    head = "@relation t\n@attribute 'dose ''mg''' real\n@attribute \"two words\" real\n"
    head += "@attribute s {a, b}\n@data\n"
    text = head + f"% said\n1,2,{written}\n3,4,no\n\n5,'6',{written}\n"
    dataset = load_user_table(csv(tmp_path, text, "t.arff"), target="s", task="classification")
    assert dataset.class_labels is not None
    assert set(dataset.class_labels) == {label, "no"}
    assert dataset.feature_names == ("dose 'mg'", "two words")
    assert dataset.X.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_quoted_and_a_plain_value_of_arff_are_one_label(tmp_path: Path) -> None:
    head = "@relation t\n@attribute x real\n@attribute s {yes, no}\n@data\n"
    text = head + "1,'no'\n2,no\n3,'yes'\n4,\"yes\"\n"
    dataset = load_user_table(csv(tmp_path, text, "t.arff"), target="s", task="classification")
    assert (dataset.class_labels, dataset.y.tolist()) == (("no", "yes"), [0, 0, 1, 1])
    refused(
        csv(tmp_path, head + "1,'no\n2,no\n", "t.arff"), "line 5 .* check its quotes", target="s"
    )
    refused(csv(tmp_path, head + "{0 1}\n", "t.arff"), "line 5 is a sparse row", target="s")


def archive(folder: Path, **members: str | bytes) -> Path:
    with zipfile.ZipFile(folder / "t.zip", "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return folder / "t.zip"


def test_what_finder_and_explorer_add_to_a_zip_is_ignored(tmp_path: Path) -> None:
    text = "a,y\n1,2\n3,4\n"
    path = archive(
        tmp_path,
        **{"__MACOSX/._t.csv": b"\0\5\x16\7", "d/": "", "d/t.csv": text, ".DS_Store": b"\0"},
        **{"d/.DS_Store": b"\0", "d/Thumbs.db": b"\0", "desktop.ini": "", "d/._t.csv": b"\0"},
    )
    assert load_user_table(path, target="y", task="regression").X.tolist() == [[1], [3]]


def test_files_of_a_zip_that_holds_several_are_named(tmp_path: Path) -> None:
    path = archive(tmp_path, **{"bank.csv": "a", "names.txt": "b", ".DS_Store": b"\0"})
    refused(
        path, r"holds 2 files; a .zip of a table holds one: unpack it .* 'bank.csv', 'names.txt'"
    )
    refused(archive(tmp_path, **{".DS_Store": b"\0"}), "holds 0 files; a .zip of a table holds one")


TEXT = "a,b,y\n1,2,3\n4,5,6\n"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (gzip.compress(TEXT.encode()), r"is compressed by gzip.*let its name end in \.gz"),
        (bz2.compress(TEXT.encode()), r"is compressed by bzip2.*\.bz2"),
        (lzma.compress(TEXT.encode()), r"is compressed by xz.*\.xz"),
        (xlsx([["a", "y"], [1, 2]]), r"is a \.zip archive or an Excel workbook.*\.xlsx"),
        (b"PAR1" + b"\0" * 40, r"is a Parquet file"),
        (b"\x93NUMPY\1\0", r"is a NumPy array"),
        (b"\x89HDF\r\n", r"is an HDF5 file"),
        (b"%PDF-1.4\n", r"is a PDF"),
        (b"\n<!DOCTYPE html><html>", r"is a web page"),
        (TEXT.encode("utf-16"), r"is not UTF-8 text but text in UTF-16; save the file as UTF-8"),
        (TEXT.encode("utf-16-le"), r"text in UTF-16"),
        (TEXT.encode("utf-16-be"), r"text in UTF-16"),
        ("a,\u00e9\n1,2\n".encode("latin-1"), r"line 1, byte 3 is not UTF-8 text"),
        (b"a,y\r1,2\r3,4\r", r"ends its lines with carriage returns alone"),
        (b"a,y\n1,2,\n3,4,\n", r"line 2 has 3 cells .* remove the separator at its end"),
        (b"a,y,\n1,2,\n3,4,\n", r"column 3 has no name \(a separator at the end of lines"),
        (b"a y\n1 2 3\n4 5 6\n", r"whether a column of row names lacks its name in the header"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",  # gzip's bytes hold the time
)
def test_a_file_that_is_something_else_is_named(tmp_path: Path, raw: bytes, words: str) -> None:
    refused(csv(tmp_path, raw), words)


def test_a_workbook_named_as_another_format_is_named(tmp_path: Path) -> None:
    refused(csv(tmp_path, xlsx([["a", "y"], [1, 2]]), "t.parquet"), "or an Excel workbook")
    packed = csv(tmp_path, gzip.compress(TEXT.encode("utf-16")), "t.csv.gz")
    refused(packed, "text in UTF-16")


def test_a_formula_that_nobody_computed_is_named(tmp_path: Path) -> None:
    book, raw = openpyxl.Workbook(), io.BytesIO()
    for row in (["a", "y"], [1, 2], [3, "=A3*2"]):
        book.active.append(row)
    book.save(raw)
    path = csv(tmp_path, raw.getvalue(), "t.xlsx")
    refused(path, "row 3, column 2 holds a formula without a stored result; open the file in Excel")


@pytest.mark.parametrize("text", ["#N/A", "#DIV/0!", "#VALUE!", "#REF!"])
def test_an_error_of_a_spreadsheet_is_no_label(tmp_path: Path, text: str) -> None:
    raw = xlsx([["a", "y"], [1, "u"], [2, "v"], [3, text]])
    refused(csv(tmp_path, raw, "t.xlsx"), r"row 4, column 2 \('y'\) holds '#", task="multiclass")


def test_what_is_no_regular_file_is_named(tmp_path: Path) -> None:
    itself, zeros, gone = (tmp_path / f"{name}.csv" for name in ("itself", "zeros", "gone"))
    itself.symlink_to(itself)
    zeros.symlink_to("/dev/zero")
    gone.symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (itself, zeros, gone, tmp_path / "pipe.csv"):
        refused(path, "no regular file; name a table file")
    refused(tmp_path / "absent.csv", "no file ")


def test_blanks_in_quotes_and_tabs_separate_nothing(tmp_path: Path) -> None:
    text = '"dose mg" "y"\n"a b" 1\n"c" 2\n'
    dataset = load_user_table(csv(tmp_path, text), target="dose mg", task="classification")
    assert (dataset.class_labels, dataset.feature_names) == (("a b", "c"), ("y",))


@pytest.mark.parametrize("text", ["\r", "#", "a,b\r\n1,2\r\n"])
def test_any_start_of_a_text_has_a_layout_or_a_line(text: str) -> None:
    try:
        detect_layout(io.BytesIO(text.encode()), "t")
    except DataError as error:
        assert "\n" not in str(error)
