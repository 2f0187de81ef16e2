"""A user's tables in every format that is read, and the options that they are read with, made wrong."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
from mutations import VALUES, bytes_mutated, mutated
from pyarrow.feather import write_feather

from svgpbench_datasets import load_user_table
from svgpbench_datasets.reading import columns

sys.path.insert(0, str(Path(__file__).parents[1] / "datasets"))
from workbook import workbook

GRID: list[list[Any]] = [["a", "b", "y"], [1.5, 2, 0], [3.0, -4e3, 1], [0.25, 5, 0], [7.0, 6.5, 1]]
OPTIONS: dict[str, Any] = {"target": "y", "task": "regression"}
CELLS = (
    "",
    "nan",
    "?",
    "x",
    '"',
    "'",
    '"1',
    "1;2",
    "1,5",
    "0x1",
    "1_0",
    "1e999",
    "-",
    "\ufeff1",
    "１",
    "{",
    "%",
    "\r",
)
"""Of text files, beside the values of any tree."""

Grid = list[list[Any]]


def text_of(grid: Grid, separator: str, rng: random.Random) -> bytes:
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r", "\n\n"))
    rows = [
        separator.join(str(x) for x in row) if isinstance(row, list) else str(row) for row in grid
    ]
    return end.join([*rows, ""]).encode(
        rng.choice(("utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig")), "replace"
    )


def grid_mutated(rng: random.Random) -> Grid:
    grid: Grid = mutated({"rows": GRID}, rng).get("rows", [])
    if not isinstance(grid, list):
        return [[grid]]
    if rng.random() < 0.5 and grid:
        row = rng.choice(grid)
        if isinstance(row, list) and row:
            row[rng.randrange(len(row))] = rng.choice(CELLS)
    return grid


def csv_file(rng: random.Random) -> bytes:
    return text_of(grid_mutated(rng), rng.choice((",", ",", ";", "\t", " ", "  ")), rng)


ARFF = "@relation r\n@attribute a numeric\n@attribute 'b c' {{x,y}}\n@attribute y {kind}\n@data\n{rows}"


def arff_file(rng: random.Random) -> bytes:
    rows = mutated({"rows": [["1", "x", "0"], ["2.5", "y", "1"], ["?", "x", "0"]]}, rng).get(
        "rows", []
    )
    lines = [
        ",".join(map(str, row)) if isinstance(row, list) else str(row)
        for row in (rows if isinstance(rows, list) else ())
    ]
    kind = rng.choice(("real", "numeric", "{0,1}", "string", "date", "relational", "{", ""))
    text = ARFF.format(kind=kind, rows="\n".join(lines))
    return rng.choice((text, text.upper(), text.replace("@data", "@Data %x\n%"))).encode(
        "utf-8", "replace"
    )


def columns_mutated(rng: random.Random) -> dict[str, Any]:
    by_name = {name: [row[at] for row in GRID[1:]] for at, name in enumerate(GRID[0])}
    changed = mutated(by_name, rng)
    if rng.random() < 0.4 and changed:
        odd = (
            *(
                [Decimal("1.5")] * 4,
                ["1", "2", "3", "x"],
                [None] * 4,
                [[1]] * 4,
                [{"q": 1}] * 4,
                [b"1"] * 4,
            ),
            *(
                [True, False] * 2,
                [2**62] * 4,
                np.array([1, 2, 3, 4], "float16"),
                np.array([1, 2, 3, 4], "M8[s]"),
            ),
        )
        changed[rng.choice(list(changed))] = rng.choice(odd)
    return dict(changed)


def arrow_file(write: Callable[[Any, Any], object]) -> Callable[[random.Random], bytes]:
    def made(rng: random.Random) -> bytes:
        file = io.BytesIO()
        try:
            table = pa.table(columns_mutated(rng))
            if rng.random() < 0.2:
                name = rng.choice(table.column_names)
                table = table.set_column(0, name, table[name].dictionary_encode())
            write(table, file)
        except (
            pa.ArrowException,
            ValueError,
            TypeError,
            AttributeError,
            OverflowError,
            IndexError,
        ):
            file = io.BytesIO()  # no file can say that
            write(pa.table({"a": [1.0, 2.0], "y": ["0", "1"]}), file)
        return file.getvalue()

    return made


def array_of(rng: random.Random) -> Any:
    shape = rng.choice(((4, 3), (4,), (4, 1), (1, 4), (0, 3), (), (2, 2, 2), (4, 0)))
    kind = rng.choice(
        ("f8", "f8", "f8", ">f8", "f4", "i2", "u1", "?", "c16", "U3", "S2", "M8[D]", "f8,i4")
    )
    values = np.arange(float(np.prod(shape))).reshape(shape)
    if rng.random() < 0.1:
        values = np.where(values == 1.0, np.nan, values)
    return (
        np.zeros(shape, kind)
        if kind in ("M8[D]", "f8,i4")
        else np.asfortranarray(values.astype(kind))
    )


def numpy_file(rng: random.Random) -> bytes:
    file = io.BytesIO()
    pickled = rng.random() < 0.05
    np.save(
        file,
        np.array([{"a": 1}, None], dtype=object) if pickled else array_of(rng),
        allow_pickle=pickled,
    )
    return file.getvalue()


def several(rng: random.Random) -> dict[str, Any]:
    good = {"X": np.arange(8.0).reshape(4, 2), "y": np.array([0.0, 1, 0, 1])}
    if rng.random() < 0.8:
        good[rng.choice(("X", "y", "z", "y ", "é", "a/b"))] = array_of(rng)
    return good


def npz_file(rng: random.Random) -> bytes:
    file = io.BytesIO()
    rng.choice((np.savez, np.savez_compressed))(file, **several(rng))
    return file.getvalue()


def mat_file(rng: random.Random) -> bytes:
    file = io.BytesIO()
    named = {
        name.strip() or "q": value for name, value in several(rng).items() if name.isidentifier()
    }
    more = rng.choice(({}, {"s": {"field": 1.0}}, {"c": np.array([1, "a"], object)}, {"t": "text"}))
    try:
        scipy.io.savemat(file, named | more, do_compression=rng.random() < 0.5)
    except (TypeError, ValueError):
        file = io.BytesIO()
        scipy.io.savemat(file, {"y": np.arange(4.0)})
    return _word_mutated(file.getvalue(), rng) if rng.random() < 0.3 else file.getvalue()


def _word_mutated(raw: bytes, rng: random.Random) -> bytes:
    """Another number of four bytes in the tags and flags of the first variable, or in its compressed form."""
    at = rng.randrange(128, min(len(raw), 192), 4)
    word = rng.choice((0, 1, 5, 6, 17, 0x20006, 0x90006, 2**31, rng.randrange(2**32)))
    return raw[:at] + word.to_bytes(4, "little") + raw[at + 4 :]


def xlsx_file(rng: random.Random) -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in grid_mutated(rng):
        cells = row if isinstance(row, list) else [row]
        try:
            book.active.append([x if isinstance(x, int | float | str) else None for x in cells])
        except (ValueError, openpyxl.utils.exceptions.IllegalCharacterError):
            book.active.append(["=1/0", "#N/A", "2"])
    try:
        book.save(file)
    except (ValueError, OverflowError, TypeError):
        return b""
    return file.getvalue()


def xls_file(rng: random.Random) -> bytes:
    cells = [
        x for x in VALUES if isinstance(x, float | str) and len(str(x)) < 40 and str(x).isascii()
    ]
    grid = [list(row) for row in GRID]
    grid[rng.randrange(5)][rng.randrange(3)] = rng.choice(cells)
    return workbook([[x if isinstance(x, str) else float(x) for x in row] for row in grid])


FILES: dict[str, Callable[[random.Random], bytes]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".data", ".CSV"), csv_file),
    **{".arff": arff_file, ".npy": numpy_file, ".npz": npz_file, ".mat": mat_file},
    **{".xlsx": xlsx_file, ".xls": xls_file},
    **{".parquet": arrow_file(pq.write_table), ".feather": arrow_file(write_feather)},
}


def packed(raw: bytes, name: str, rng: random.Random) -> tuple[bytes, str]:
    """Compressed, sometimes; a .zip may hold two files or none."""
    how = rng.choice(("", "", "", ".gz", ".xz", ".bz2", ".zip"))
    if how == ".zip":
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for inside in rng.choice(([name], [name], [name], [], [name, "b.csv"], ["folder/"])):
                archive.writestr(inside, raw)
        raw = file.getvalue()
    elif how:
        raw = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[how](raw)
    if how and rng.random() < 0.3:
        raw = bytes_mutated(raw, rng)
    return raw, name + how


def options_mutated(rng: random.Random) -> dict[str, Any]:
    options = dict(OPTIONS)
    options["task"] = rng.choice(
        ("regression", "regression", "classification", "multiclass", "guess")
    )
    options["target"] = rng.choice(("y", "y", "y", "x2", "Y", "", "a"))
    if rng.random() < 0.2:
        options["features"] = rng.choice((["a"], ["b", "a"], ["a", "a"], [], "a", ["nope"], ["y"]))
    if rng.random() < 0.1:
        options["outputs"] = rng.choice((["a"], ["nope"], ["y"]))
    if rng.random() < 0.1:
        options["arrays"] = rng.choice((["X", "y"], ["nope"], ["X", "X"]))
    return options


class Tables:
    """The parser of a user's tables, as `Parser` has it."""

    door = (columns, "choose_features")
    modules = (
        "svgpbench_datasets.user_table",
        *(
            f"svgpbench_datasets.reading.{name}"
            for name in ("arrays", "arrow", "cells", "columns", "formats")
        ),
        *(
            f"svgpbench_datasets.reading.{name}"
            for name in ("mat5", "numbers", "table", "text", "workbooks")
        ),
    )

    @staticmethod
    def write(folder: Path, rng: random.Random) -> None:
        ending = rng.choice(list(FILES))
        raw = FILES[ending](rng)
        if rng.random() < 0.12:
            raw = bytes_mutated(raw, rng)
        raw, name = packed(raw, f"own{ending}", rng)
        (folder / name).write_bytes(raw)
        (folder / "options.json").write_text(json.dumps(options_mutated(rng)))

    @staticmethod
    def read(folder: Path) -> object:
        options = json.loads((folder / "options.json").read_text())
        (file,) = folder.glob("own.*")
        table = load_user_table(file, **options)
        assert np.isfinite(table.X).all() and np.isfinite(table.y).all()
        assert table.X.shape == (len(table.y), len(table.feature_names))
        return table


TABLES = Tables
