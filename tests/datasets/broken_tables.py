"""Table files of each format that are broken, or nearly good: what reaches the far ends of a reader."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
from broken_files import changed, damaged, seldom
from hypothesis import strategies as st
from pyarrow.feather import write_feather
from test_file_formats import ARFF, idx, mat, written
from watched_parsers import Files
from workbook import workbook, xlsx

ROWS = [["a", "b", "c"], [1.0, 2.0, 0.0], [3.0, 4.0, 1.0]]
ARRAY = np.array(ROWS[1:], float)
COLUMNS = {"a": [1.0, 3.0], "b": ["2", "4"], "c": [0, 1]}
SEPARATORS = {"whitespace": "  ", "csv": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
ARROW = {
    "parquet": lambda file, table: pq.write_table(table, file),
    "feather": lambda file, table: write_feather(table, file),
}
WHOLE: dict[str, bytes] = {
    **{name: f"a{x}b{x}c\n1{x}2{x}0\n3{x}4{x}1\n".encode() for name, x in SEPARATORS.items()},
    "arff": ARFF.encode(),
    "idx": idx((2, 3), b"\x01\x02\x00\x03\x04\x01"),
    "mat": mat(m=np.arange(6.0).reshape(2, 3)),
    "xls": workbook(ROWS),
    "xlsx": xlsx(ROWS),
    "npy": written(np.save, ARRAY),
    "npz": written(np.savez, m=ARRAY),
    **{name: written(write, pa.table(COLUMNS)) for name, write in ARROW.items()},
}
"""A good file of each format."""

# fmt: off
CELL = st.sampled_from([
    "1", "-2.5", "0", "y", "x", "", "nan", "?", '"', "'", '"1', "1;2", "1,5", "0x1", "1_0", "-", "\r", "\x00",
    "é", "１", "\ufeff1", "1e400", "1e5", "+.5", "{", "%", "9" * 30, "x" * 5000, "é漢\u2028", "2024-02-29",
])
SEPARATOR = st.sampled_from([",", ";", "\t", " ", "  ", "\n", "\r\n"])
NUMERALS = st.text(alphabet="01.+-eE ,;\t\n", max_size=30).map(str.encode)
TEXT = st.lists(st.tuples(CELL, SEPARATOR), max_size=30).map(
    lambda parts: "".join(cell + separator for cell, separator in parts).encode()
)
# fmt: on


@st.composite
def _separated(draw: st.DrawFn, separator: str) -> bytes:
    """Draw two or so rows of three or so cells, most of them numbers."""
    number = st.floats(allow_nan=False, allow_infinity=False).map(repr)
    usual = st.sampled_from(["0", "1", "1.0"])
    cell = st.integers(0, 9).flatmap(lambda x: CELL if x == 9 else number if x > 6 else usual)
    width = draw(st.sampled_from([3, 3, 3, 3, 3, 1, 2, 4]))
    even = st.lists(cell, min_size=width, max_size=width)
    row = st.one_of(even, even, even, st.lists(cell, min_size=1, max_size=4))
    rows = draw(st.one_of(st.tuples(row, row), st.lists(row, max_size=4)))
    headings = [*["a{0}b{0}c"] * 6, "", "", '"a"{0} b {0}c', "\ufeffa{0}b{0}c"]
    heading = draw(st.sampled_from(headings)).format(separator)
    end = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n"]))
    lines = [heading] * bool(heading) + [separator.join(x) for x in rows]
    encoding = draw(st.sampled_from([*["utf-8"] * 8, "utf-16", "utf-8-sig"]))
    return end.join([*lines, ""]).encode(encoding)


# fmt: off
_ARFF_LINES = st.sampled_from([
    "", "% note", "@relation 'a b'", '@ATTRIBUTE "joint one" real', "@attribute plain{1,2}",
    "@attribute plain numeric % it", "@attribute class {a,'b c'}", "@attribute class string",
    "@attribute 'it''s' real", "@attribute d date", "@attribute r relational", "@attribute", "@data", "@end",
])
_ARFF_ROWS = st.sampled_from([
    "1,2,a", "-3 , 4e1 ,b", "1,2,'a'", "{0 1, 2 a}", "?,2,a", "1,2", '1,2,"a"', "% 1", "", "1,2,c",
    "1,nan,a", "1,2,a % note", "1\t2\ta",
])
# fmt: on


@st.composite
def _arff(draw: st.DrawFn) -> bytes:
    lines = ARFF.splitlines()
    head, good = lines[: lines.index("@DATA")], ["1,2.5,a", "-3 , 4e1 ,b"]
    header = draw(st.one_of(st.just(head), st.just(head), st.lists(_ARFF_LINES, max_size=6)))
    rows = draw(st.one_of(st.just(good), st.lists(_ARFF_ROWS, min_size=2, max_size=2)))
    data = draw(st.sampled_from(["@DATA", "@DATA", "@DATA", "@data", "@Data %x\n%"]))
    more = draw(st.lists(_ARFF_ROWS, max_size=1))
    return "\n".join([*header, data, *rows, *more, ""]).encode()


@st.composite
def _idx(draw: st.DrawFn) -> bytes:
    shape = draw(st.one_of(st.just((2, 3)), st.lists(st.integers(0, 4), max_size=5).map(tuple)))
    noise = draw(st.one_of(st.sampled_from([b"\0", b"\1"]), st.binary(min_size=1, max_size=6)))
    length = max(0, prod(shape) + draw(st.sampled_from([0, 0, 0, 1, -1])))
    return idx(shape, (noise * length)[:length], draw(st.sampled_from([8, 8, 8, 8, 9, 13])))


@st.composite
def _array(draw: st.DrawFn) -> Any:
    shapes = [(2, 3), (2, 3), (4, 3), (4,), (4, 1), (1, 4), (0, 3), (), (2, 2, 2), (4, 0)]
    shape = draw(st.sampled_from(shapes))
    kinds = ["f8", "f8", ">f8", "f4", "i2", "u1", "?", "c16", "U3", "S2", "M8[D]", "f8,i4"]
    kind = draw(st.sampled_from(kinds))
    if kind in ("M8[D]", "f8,i4"):
        return np.zeros(shape, kind)
    values = np.arange(float(prod(shape))).reshape(shape)
    values[values == 1.0] = draw(st.sampled_from([1.0, 1.0, 1.0, np.nan]))
    with np.errstate(invalid="ignore"):  # NaN as an integer
        return np.asfortranarray(values.astype(kind))


@st.composite
def _arrays(draw: st.DrawFn) -> dict[str, Any]:
    """Draw arrays with their names, as .npz and .mat have them."""
    several = {"X": ARRAY[:, :2], "y": ARRAY[:, 2]}
    arrays = dict(draw(st.sampled_from([{"m": ARRAY}, {"m": ARRAY}, several])))
    if draw(seldom(60)):
        arrays[draw(st.sampled_from(["m", "m", "X", "y", "z", "y ", "é", "a/b"]))] = draw(_array())
    return arrays


_PICKLED = written(np.save, np.array([{"a": 1}, None], object), allow_pickle=True)
_MAT_HEADER = 128
_MAT_WORDS = st.sampled_from([0, 1, 5, 6, 15, 17, 0x20006, 0x90006, 2**31])


@st.composite
def _mat(draw: st.DrawFn) -> bytes:
    """Draw variables of every kind, sometimes with another word in the tags and flags of the first one."""
    arrays = {name.strip(): x for name, x in draw(_arrays()).items() if name.strip().isidentifier()}
    others = [{}, {}, {"s": {"f": 1.0}}, {"c": np.array([1, "a"], object)}, {"t": "text"}]
    packed = draw(st.booleans())
    try:
        named = arrays | draw(st.sampled_from(others))
        raw = written(scipy.io.savemat, named, do_compression=packed)
    except (TypeError, ValueError):  # no such file can hold that
        raw = WHOLE["mat"]
    if draw(seldom(30)):
        at = 4 * draw(st.integers(_MAT_HEADER // 4, min(len(raw), 192) // 4 - 1))
        word = draw(st.one_of(_MAT_WORDS, st.integers(0, 2**32 - 1)))
        raw = raw[:at] + word.to_bytes(4, "little") + raw[at + 4 :]
    return raw


def _deflated(element: bytes) -> bytes:
    packed = zlib.compress(element)
    return WHOLE["mat"][:_MAT_HEADER] + struct.pack("<II", 15, len(packed)) + packed


def _sheets(*more: Any) -> st.SearchStrategy[list[list[Any]]]:
    """Draw rows of workbooks, of numbers, texts and `more`."""
    usual = st.sampled_from([0.0, 1.0])
    cell = st.one_of(
        usual, usual, st.floats(), st.sampled_from(["1", "x", "", "?", "1e999", *more])
    )
    rows = st.one_of(st.lists(st.lists(cell, max_size=4), max_size=3), st.just(ROWS[1:]))
    return st.tuples(st.sampled_from([[ROWS[0]], [ROWS[0]], []]), rows).map(
        lambda x: [*x[0], *x[1]]
    )


@st.composite
def _xlsx_of_sheet(draw: st.DrawFn) -> bytes:
    """Draw a workbook whose sheet's own text is damaged."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(WHOLE["xlsx"])) as whole, zipfile.ZipFile(file, "w") as copy:
        for name in whole.namelist():
            raw = whole.read(name)
            copy.writestr(name, draw(damaged(raw)) if name.endswith("sheet1.xml") else raw)
    return file.getvalue()


_ODD_COLUMNS = st.sampled_from([
    [Decimal("1.5")] * 2, ["1", "x"], [None] * 2, [[1]] * 2, [{"q": 1}] * 2, [b"1"] * 2, [True, False],
    [2**62] * 2, [date(2024, 2, 29)] * 2, np.array([1, 2], "float16"), np.array([1, 2], "M8[s]"),
])  # fmt: skip


@st.composite
def _arrow(draw: st.DrawFn, write: Callable[[Any, Any], object]) -> bytes:
    columns = draw(changed(COLUMNS))
    if columns and draw(seldom(40)):
        columns[draw(st.sampled_from(list(columns)))] = draw(_ODD_COLUMNS)
    try:
        table = pa.table(columns)
        if draw(seldom(20)):
            name = draw(st.sampled_from(table.column_names))
            table = table.set_column(0, name, table[name].dictionary_encode())
        return written(write, table)
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError, IndexError):
        return written(write, pa.table(COLUMNS))  # no such file can hold that


_SECTOR = 512
_XLS, _ELEMENT = WHOLE["xls"], WHOLE["mat"][_MAT_HEADER:]
NEARLY: dict[str, st.SearchStrategy[bytes]] = {
    **{name: _separated(separator) for name, separator in SEPARATORS.items()},
    "arff": _arff(),
    "idx": _idx(),
    "mat": st.one_of(
        damaged(WHOLE["mat"], _MAT_HEADER),
        damaged(_ELEMENT).map(_deflated),
        damaged(_deflated(_ELEMENT), _MAT_HEADER + 8),
        _mat(),
    ),
    "xls": st.one_of(damaged(_XLS, 3 * _SECTOR, 3 * _SECTOR + 230), _sheets().map(workbook)),
    "xlsx": st.one_of(
        _xlsx_of_sheet(), _sheets("=1/0", "#N/A", None, True, 2**63, date(2024, 2, 29)).map(xlsx)
    ),
    "npy": st.one_of(
        damaged(WHOLE["npy"], 8, 128),
        _array().map(lambda x: written(np.save, x)),
        st.just(_PICKLED),
    ),
    "npz": _arrays().map(lambda x: written(np.savez_compressed, **x)),
    **{name: st.one_of(damaged(WHOLE[name]), _arrow(write)) for name, write in ARROW.items()},
}


def broken_table(name: str) -> st.SearchStrategy[bytes]:
    """Draw a file of a format: any bytes, any text, a good file damaged, or one that is nearly good."""
    harm, nearly = damaged(WHOLE[name]), NEARLY[name]
    return st.one_of(st.binary(max_size=400), TEXT, harm, harm, nearly, nearly, nearly, nearly)


# --- tables of users

ENDINGS = {
    **{name: (f".{name}",) for name in WHOLE},
    **{"whitespace": (".txt", ".data"), "csv": (".csv", ".CSV"), "semicolon": (".csv",)},
    **{"tab": (".tsv",), "pipe": (".txt",)},
}
"""Endings of a user's file, by format."""

COMPRESSED = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def zipped(raw: bytes, *names: str) -> bytes:
    """Return an archive with the same content under each name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, raw)
    return file.getvalue()


@st.composite
def user_table_files(draw: st.DrawFn, format_name: str) -> Files:
    """Draw a user's file, sometimes compressed and damaged then, and the options that it is read with."""
    raw = draw(broken_table(format_name))
    name = f"own{draw(st.sampled_from(ENDINGS[format_name]))}"
    how = draw(st.sampled_from(["", "", "", "", ".zip", *COMPRESSED]))
    if how:
        whole = draw(st.sampled_from([raw, WHOLE[format_name]]))
        names = draw(st.sampled_from([[name], [name], [name], [], [name, "b.csv"], ["folder/"]]))
        packed = zipped(whole, *names) if how == ".zip" else COMPRESSED[how](whole)
        raw = draw(st.one_of(st.just(packed), damaged(packed)))
    target = {"arff": "plain"}.get(
        format_name, "x3" if format_name in ("mat", "npy", "npz") else "c"
    )
    options = {
        "target": draw(st.sampled_from([*[target] * 5, "y", "x2", "x2", "C", "", "a"])),
        "task": draw(st.sampled_from(["regression", "classification", "multiclass", "guess"])),
    }
    choices = {
        "features": [["a"], ["b", "a"], ["a", "a"], [], "a", ["nope"], ["c"]],
        "outputs": [["a"], ["nope"], ["c"]],
        "arrays": [["X", "y"], ["nope"], ["X", "X"]],
    }
    for option, values in choices.items():
        if draw(seldom(12)):
            options[option] = draw(st.sampled_from(values))
    return {name + how: raw, "options.json": json.dumps(options).encode()}
