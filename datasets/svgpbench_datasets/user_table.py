"""Loading of a user's own table, in any supported format, as a data set."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from svgpbench_datasets.dataset import Dataset, Integers, Task
from svgpbench_datasets.errors import DataError, did_you_mean, join_names
from svgpbench_datasets.fetch.unpacking import Bounded, content
from svgpbench_datasets.fetch.verification import WrongContent

if TYPE_CHECKING:  # the readers import pandas, which is slow
    from svgpbench_datasets.reading.columns import ReadColumns
    from svgpbench_datasets.reading.table import Layout

_TASKS = ("regression", "classification", "multiclass")
TEXT = (".csv", ".tsv", ".txt", ".dat", ".data")
READERS = {
    **dict.fromkeys(TEXT, "text"),
    **{".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arff": "arff"},
    **{".xls": "xls", ".xlsx": "xls", ".mat": "mat", ".npy": "numpy", ".npz": "numpy"},
}
"""File formats by ending."""
PACKED = (".gz", ".xz", ".bz2", ".zip")
"""Endings of compressed files; the ending before them, or of the one file in a .zip, gives the format."""

_UTF_16 = ("text in UTF-16", (), "save the file as UTF-8")
_MAGIC: dict[bytes, tuple[str, tuple[str, ...], str]] = {
    b"\x1f\x8b": ("compressed by gzip", (), "let its name end in .gz, as in table.csv.gz"),
    b"BZh": ("compressed by bzip2", (), "let its name end in .bz2, as in table.csv.bz2"),
    b"\xfd7zXZ\0": ("compressed by xz", (), "let its name end in .xz, as in table.csv.xz"),
    b"PK\x03\x04": (
        "a .zip archive or an Excel workbook",
        (".xls", ".xlsx", ".npz", ".npy"),
        "let its name end in .zip or .xlsx",
    ),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", (".xls", ".xlsx"), "let its name end in .xls"),
    b"PAR1": ("a Parquet file", (".parquet", ".pq"), "let its name end in .parquet"),
    b"ARROW1": ("a Feather file", (".feather",), "let its name end in .feather"),
    b"\x93NUMPY": ("a NumPy array", (".npy", ".npz"), "let its name end in .npy"),
    b"MATLAB 5.0": ("a MATLAB file", (".mat",), "let its name end in .mat"),
    b"\x89HDF": ("an HDF5 file", (".mat",), "save the table as .csv or .parquet"),
    b"%PDF": ("a PDF", (), "save the table itself, as .csv"),
    b"SQLite format": ("a data base", (), "save the table itself, as .csv"),
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
"""First bytes of files: what they are, the endings that suit them, and what to do for another ending."""
_MOST_MAGIC = 512

_MOST_TIMES, _AT_LEAST = 200, 1 << 30
"""Bound on uncompressed bytes: 200 times the compressed size, or 1 GiB if that is more."""


def is_table_file(name: str) -> bool:
    """Return True if the ending of a file name is in `READERS` or `PACKED`."""
    return name.lower().endswith((*READERS, *PACKED))


def load_user_table(
    path: str | Path,
    *,
    target: str,
    task: Task,
    features: Sequence[str] | None = None,
    name: str | None = None,
    outputs: Sequence[str] = (),
    arrays: Sequence[str] = (),
    groups: str | None = None,
    header: bool | None = None,
) -> Dataset:
    """Load a table from a file as a data set: X [N, D] and y [N], N at least 2.

    The file name ends in one of `READERS`, followed by one of `PACKED` if it is compressed.

    Args:
        path: the file.
        target: name of the target column.
        task: `classification` needs two distinct target values, `multiclass` two or more. They
            become 0..K-1 in sorted order.
        features: names of the D input columns in this order; None for every column but
            the target and `outputs`.
        name: name of the data set; None for the stem of the file name.
        outputs: names of further target columns, which are not inputs.
        arrays: names of the arrays of a .mat or .npz file to read side by side; empty for all.
        groups: name of a column with the group of each row, such as a patient, for splits. It is no input.
        header: False if a text or a workbook has no line of names: its columns are then x1, x2, ...
            None to detect it.

    Raises:
        DataError: the file is not such a table. The message names file, line (binary formats:
            row) and column, and what to do.
    """
    from svgpbench_datasets.reading.cells import is_numeral
    from svgpbench_datasets.reading.columns import read_columns
    from svgpbench_datasets.reading.formats import open_table
    from svgpbench_datasets.reading.numbers import sorted_classes

    if task not in _TASKS:
        hint = did_you_mean(str(task), _TASKS)
        raise DataError(f"unknown task {task!r} for {path}{hint} (known: {', '.join(_TASKS)})")
    if isinstance(features, str):
        raise DataError(f"features of {path} are one text {features!r}; give a list of names")
    file, labelled = Path(path), task != "regression"
    layout = layout_of(file, arrays, header)

    def read(column: str, **options: Any) -> ReadColumns:
        with _content(file) as (_, stream):
            table = open_table(stream, str(file), layout)
            return read_columns(table, str(file), target=column, **options)

    columns = read(target, features=features, outputs=outputs, groups=groups, labelled=labelled)
    rows, y, classes = len(columns.y), columns.y, None
    if rows < 2:
        raise DataError(f"{file}: {rows or 'no'} data row{'s' * (rows == 0)}; give at least two")
    if labelled:
        y, classes = sorted_classes(y, columns.labels, f"{file}: target {target!r}", task=task)
    numbers: Integers | None = None
    group_labels: tuple[str, ...] = ()
    notes = columns.notes
    if groups is not None:
        # a reading has at least one input: the first will do, the others are not converted again
        found = read(groups, features=columns.features[:1], labelled=True)
        where = f"{file}: groups {groups!r}"
        ordered, group_labels = sorted_classes(found.y, found.labels, where, task=None)
        numbers = ordered.astype(np.int64)
        notes += found.notes
    if header is None and layout.header and any(map(is_numeral, columns.features)):
        notes += (
            f"{file}: line {layout.skip_lines + 1} is read as names of columns, although some are "
            "numbers; say `header = false` (--no-header) if it is data",
        )
    return Dataset(
        name=file.stem if name is None else name,
        task=task,
        X=columns.X,
        y=y,
        feature_names=columns.features,
        target_name=target,
        source=str(file),
        class_labels=classes,
        groups=numbers,
        group_labels=group_labels,
        notes=notes,
    )


def layout_of(file: Path, arrays: Sequence[str] = (), header: bool | None = None) -> Layout:
    """Return the layout of a file, from its ending and, for text, from its first lines.

    Raises:
        DataError: the file is missing, empty, of an unknown format or not of that of its ending, or it has
            no arrays or header to choose.
    """
    from svgpbench_datasets.reading.table import Layout
    from svgpbench_datasets.reading.text import detect_layout

    if file.is_dir():
        raise DataError(f"{file} is a folder; name a file in it, such as a .csv")
    if not file.is_file():
        if os.path.lexists(file):
            link = f"a link to {os.readlink(file)}, " if file.is_symlink() else ""
            raise DataError(f"{file} is {link}no regular file; name a table file")
        siblings = file.parent.iterdir() if file.parent.is_dir() else ()
        raise DataError(f"no file {file}{did_you_mean(file.name, (f.name for f in siblings))}")
    if file.stat().st_size == 0:
        raise DataError(f"{file} is empty; give a header line and data rows")
    with _content(file) as (ending, stream):
        if ending not in READERS:
            raise DataError(
                f"{file}: files ending in {ending!r} are not read; use {', '.join(READERS)}"
            )
        if arrays and ending not in (".mat", ".npz"):
            raise DataError(f"{file} has no arrays to choose from; leave `arrays` out")
        if header is not None and ending not in (*TEXT, ".xls", ".xlsx"):
            raise DataError(f"{file} says itself whether it has names; leave `header` out")
        # peeked at and not read: `detect_layout` gets the same stream from its first byte
        start = io.BufferedReader(cast(io.RawIOBase, stream))
        if kind := _kind_of(start.peek(_MOST_MAGIC)[:_MOST_MAGIC]):
            what, endings, remedy = kind
            if kind is _UTF_16:
                raise DataError(f"{file}: line 1, byte 1 is not UTF-8 text but {what}; {remedy}")
            if ending not in endings:
                raise DataError(f"{file} is {what}, whatever its ending says; {remedy}")
        if ending in TEXT:
            return detect_layout(start, str(file), header)
        return Layout(READERS[ending], header=header, arrays=tuple(arrays))


def _kind_of(start: bytes) -> tuple[str, tuple[str, ...], str] | None:
    """Return what a file is by its first bytes, the endings that suit it, and what to do; or None."""
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    if start.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "a web page", (), "save the table itself"
    # in UTF-16 without a byte order mark, every second byte of ASCII text is zero
    if len(start) > 3 and (not any(start[1:64:2]) or not any(start[:64:2])):
        return _UTF_16
    return None


@contextmanager
def _content(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the ending that gives the format of a file, and a stream of its uncompressed content."""
    ending = file.suffix.lower()
    try:
        if ending not in PACKED:
            with file.open("rb") as stream:
                yield ending, stream
            return
        member = None
        if ending == ".zip":
            try:
                with zipfile.ZipFile(file) as archive:
                    names = [name for name in archive.namelist() if _is_content(name)]
            # the last two: an unsupported version, and a name that is not UTF-8
            except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
                why = f"is no .zip archive that can be read ({error})"
                raise DataError(f"{file} {why}") from None
            if len(names) != 1:
                why = f"{file} holds {len(names)} files; a .zip of a table holds one"
                few = f": unpack it and name one of {join_names(map(repr, names), 5)}"
                raise DataError(why + few * bool(names))
            member = names[0]
        bound = max(_AT_LEAST, _MOST_TIMES * file.stat().st_size)
        with content(file, member, bound) as plain:
            bounded = Bounded(plain, bound, f"it is more than {bound:,} bytes uncompressed")
            yield Path(member or file.stem).suffix.lower(), io.BufferedReader(bounded)
    except WrongContent as refusal:
        raise DataError(f"{file} cannot be read: {refusal}") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None


def _is_content(member: str) -> bool:
    """Return True for a file in a .zip, unless it is a folder or hidden, as what Finder and Explorer add."""
    path = PurePosixPath(member)
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    # `ZipInfo.is_dir` fails on an empty name, as in a damaged file
    return not member.endswith("/") and not hidden and path.name not in ("Thumbs.db", "desktop.ini")
