"""Files of each format that are good, or nearly: what reaches the far ends of a reader."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from io import BytesIO
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyarrow.feather import write_feather
from test_file_formats import ARFF, idx, mat
from workbook import workbook, xlsx

MAT = mat(m=np.arange(6.0).reshape(2, 3))
WORKBOOK = workbook([["a", "b", "c"], [1.0, 2.0, 0.0], [3.0, 4.0, 1.0]])
_MAT_HEADER, _SECTOR = 128, 512
_TABLE = pa.table({"a": [1.0, 3.0], "b": ["2", "4"], "c": [0, 1]})


def _written(write: Callable[[Any, BytesIO], object], *values: Any) -> bytes:
    file = BytesIO()
    write(*values, file)
    return file.getvalue()


ARROW = {
    "parquet": _written(pq.write_table, _TABLE),
    "feather": _written(write_feather, _TABLE),
}
XLSX = xlsx([["a", "b", "c"], [1.0, 2.0, 0.0], [3.0, 4.0, 1.0]])
NPY = _written(lambda table, file: np.save(file, table), np.array([[1.0, 2, 0], [3, 4, 1]]))
NPZ = _written(lambda table, file: np.savez(file, m=table), np.array([[1.0, 2, 0], [3, 4, 1]]))

CELL = st.sampled_from([
    "1", "-2.5", "0", "x", "", "nan", "?", '"', "'", "\r", "\x00", "é", "1e400", "1e5", "+.5", "{", "%",
])  # fmt: skip
SEPARATOR = st.sampled_from([",", ";", "\t", " ", "  ", "\n", "\r\n"])
NUMERALS = st.text(alphabet="01.+-eE ,;\t\n", max_size=30).map(str.encode)
TEXT = st.lists(st.tuples(CELL, SEPARATOR), max_size=30).map(
    lambda parts: "".join(cell + separator for cell, separator in parts).encode()
)
_BYTE = st.sampled_from([0, 1, 2, 4, 5, 6, 8, 9, 13, 14, 15, 16, 32, 127, 128, 255]).map(
    lambda value: bytes([value])
)


def damaged(whole: bytes, start: int = 0, end: int | None = None) -> st.SearchStrategy[bytes]:
    """A good file with some bytes replaced in a few places, and seldom cut.

    Args:
        whole: the file.
        start: the first byte that may change.
        end: the byte after the last that may; None for the end of the file.
    """
    place = st.integers(start, (len(whole) if end is None else end) - 1)
    noise = st.one_of(_BYTE, _BYTE, st.binary(max_size=8))
    wounds = st.lists(st.tuples(place, noise), max_size=3)
    cut = st.one_of(st.none(), st.none(), st.none(), place)

    def damage(parts: tuple[list[tuple[int, bytes]], int | None]) -> bytes:
        raw = whole
        for at, new in parts[0]:
            raw = raw[:at] + new + raw[at + len(new) :]
        return raw[: parts[1]]

    return st.tuples(wounds, cut).map(damage)


def _separated(separator: str) -> st.SearchStrategy[bytes]:
    """Two or so rows of three or so cells, most of them numbers."""
    number = st.one_of(
        st.sampled_from(["0", "1"]), st.floats(allow_nan=False, allow_infinity=False).map(repr)
    )
    cell = st.integers(0, 9).flatmap(
        lambda draw: CELL if draw == 0 else number if draw < 6 else st.sampled_from(["0", "1.0"])
    )
    row = st.one_of(st.tuples(cell, cell, cell), st.lists(cell, min_size=2, max_size=4))
    rows = st.one_of(st.tuples(row, row), st.lists(row, max_size=3))
    end = st.sampled_from(["\n", "\n", "\r\n"])
    heading = st.sampled_from(["a{0}b{0}c\n"] * 6 + ["", '"a"{0} b {0}c\n', "\ufeffa{0}b{0}c\n"])

    def text(parts: tuple[str, Iterable[Iterable[str]], str]) -> bytes:
        lines = [separator.join(line) for line in parts[1]]
        return (parts[0].format(separator) + parts[2].join([*lines, ""])).encode()

    return st.tuples(heading, rows, end).map(text)


_ARFF_LINES = st.sampled_from([
    "", "% note", "@relation 'a b'", '@ATTRIBUTE "joint one" real', "@attribute plain{1,2}",
    "@attribute plain numeric % it", "@attribute class {a,'b c'}", "@attribute class string",
    "@attribute 'it''s' real", "@data", "@end",
])  # fmt: skip
_ARFF_ROWS = st.sampled_from([
    "1,2,a", "-3 , 4e1 ,b", "1,2,'a'", "{0 1, 2 a}", "?,2,a", "1,2", '1,2,"a"', "% 1", "", "1,2,c",
    "1,nan,a", "1,2,a % note", "1\t2\ta",
])  # fmt: skip


def _arff() -> st.SearchStrategy[bytes]:
    lines = ARFF.splitlines()
    head, good = lines[: lines.index("@DATA")], ["1,2.5,a", "-3 , 4e1 ,b"]
    header = st.one_of(st.just(head), st.just(head), st.lists(_ARFF_LINES, max_size=6))
    rows = st.one_of(st.just(good), st.tuples(_ARFF_ROWS, _ARFF_ROWS).map(list))
    return st.tuples(header, rows, st.lists(_ARFF_ROWS, max_size=1)).map(
        lambda parts: "\n".join([*parts[0], "@DATA", *parts[1], *parts[2], ""]).encode()
    )


def _idx() -> st.SearchStrategy[bytes]:
    axes = st.one_of(st.just((2, 3)), st.lists(st.integers(0, 4), max_size=5).map(tuple))
    size = st.sampled_from([0, 0, 0, 1, -1])

    def file(parts: tuple[tuple[int, ...], int, int, bytes]) -> bytes:
        shape, kind, more, noise = parts
        length = max(0, prod(shape) + more)
        return idx(shape, (noise * length)[:length], kind)

    kind = st.sampled_from([8, 8, 8, 8, 9, 13])
    noise = st.one_of(st.sampled_from([b"\0", b"\1"]), st.binary(min_size=1, max_size=6))
    return st.tuples(axes, kind, size, noise).map(file)


def _deflated(element: bytes) -> bytes:
    packed = zlib.compress(element)
    return MAT[:_MAT_HEADER] + struct.pack("<II", 15, len(packed)) + packed


def _workbook() -> st.SearchStrategy[bytes]:
    cell = st.one_of(st.floats(), st.sampled_from([0.0, 1.0]), st.sampled_from(["1", "x", "", "?"]))
    rows = st.lists(st.lists(cell, max_size=3), max_size=3)
    return rows.map(lambda some: workbook([["a", "b", "c"], *some]))


def _sheet() -> st.SearchStrategy[bytes]:
    """The first sheet's own text, damaged."""
    with zipfile.ZipFile(BytesIO(XLSX)) as archive:
        return damaged(archive.read("xl/worksheets/sheet1.xml"))


def _zipped(sheet: bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(BytesIO(XLSX)) as whole, zipfile.ZipFile(file, "w") as copy:
        for name in whole.namelist():
            copy.writestr(name, sheet if name.endswith("sheet1.xml") else whole.read(name))
    return file.getvalue()


NEARLY: dict[str, st.SearchStrategy[bytes]] = {
    "whitespace": _separated("  "),
    "csv": _separated(","),
    "semicolon": _separated(";"),
    "tab": _separated("\t"),
    "arff": _arff(),
    "idx": _idx(),
    "mat": st.one_of(damaged(MAT, _MAT_HEADER), damaged(MAT[_MAT_HEADER:]).map(_deflated)),
    "xls": st.one_of(
        damaged(WORKBOOK, 3 * _SECTOR, 3 * _SECTOR + 230), damaged(WORKBOOK), _workbook()
    ),
    "xlsx": st.one_of(damaged(XLSX), _sheet().map(_zipped)),
    "numpy": st.one_of(damaged(NPZ), damaged(NPY), damaged(NPY, 8, 128)),
    "parquet": damaged(ARROW["parquet"]),
    "feather": damaged(ARROW["feather"]),
}
