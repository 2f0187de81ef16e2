"""Loading of a user's own table, in any supported format, as a data set."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from svgpbench_datasets.dataset import Dataset, Integers, Task
from svgpbench_datasets.errors import DataError, did_you_mean
from svgpbench_datasets.fetch.unpacking import Bounded, content
from svgpbench_datasets.fetch.verification import WrongContent
from svgpbench_datasets.reading.layout import Layout

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

    Raises:
        DataError: the file is not such a table. The message names file, line (binary formats:
            row) and column, and what to do.
    """
    from svgpbench_datasets.reading.columns import read_columns
    from svgpbench_datasets.reading.formats import open_table
    from svgpbench_datasets.reading.numbers import sorted_classes

    if task not in _TASKS:
        hint = did_you_mean(str(task), _TASKS)
        raise DataError(f"unknown task {task!r} for {path}{hint} (known: {', '.join(_TASKS)})")
    if isinstance(features, str):
        raise DataError(f"features of {path} are one text {features!r}; give a list of names")
    file, labelled = Path(path), task != "regression"
    layout = layout_of(file, arrays)
    apart = outputs if groups is None else [*outputs, groups]
    with _content(file) as (_, stream):
        table = open_table(stream, str(file), layout)
        columns = read_columns(
            table, str(file), target=target, features=features, outputs=apart, labelled=labelled
        )
    rows, y, classes = len(columns.y), columns.y, None
    if rows < 2:
        raise DataError(f"{file}: {rows or 'no'} data row{'s' * (rows == 0)}; give at least two")
    if labelled:
        y, classes = sorted_classes(y, columns.labels, f"{file}: target {target!r}", task=task)
    numbers: Integers | None = None
    group_labels: tuple[str, ...] = ()
    if groups is not None:
        with _content(file) as (_, stream):
            table = open_table(stream, str(file), layout)
            group_column = read_columns(
                table, str(file), target=groups, features=columns.features[:1], labelled=True
            )
        where = f"{file}: groups {groups!r}"
        ordered, group_labels = sorted_classes(
            group_column.y, group_column.labels, where, task="multiclass"
        )
        numbers = ordered.astype(np.int64)
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
    )


def layout_of(file: Path, arrays: Sequence[str] = ()) -> Layout:
    """Return the layout of a file, from its ending and, for text, from its first line that is not blank.

    Raises:
        DataError: the file is missing, empty or of an unknown format, or has no arrays to choose.
    """
    from svgpbench_datasets.reading.text import detect_layout

    if file.is_dir():
        raise DataError(f"{file} is a folder; name a file in it, such as a .csv")
    if not file.is_file():
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
        if ending in TEXT:
            return detect_layout(stream, str(file))
        return Layout(READERS[ending], header=None, arrays=tuple(arrays))


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
                    # `ZipInfo.is_dir` fails on an empty name, as in a damaged file
                    names = [name for name in archive.namelist() if not name.endswith("/")]
            # the last two: an unsupported version, and a name that is not UTF-8
            except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
                why = f"is no .zip archive that can be read ({error})"
                raise DataError(f"{file} {why}") from None
            if len(names) != 1:
                raise DataError(f"{file} holds {len(names)} files; a .zip of a table holds one")
            member = names[0]
        bound = max(_AT_LEAST, _MOST_TIMES * file.stat().st_size)
        with content(file, member, bound) as plain:
            bounded = Bounded(plain, bound, f"it is more than {bound:,} bytes uncompressed")
            yield Path(member or file.stem).suffix.lower(), io.BufferedReader(bounded)
    except WrongContent as refusal:
        raise DataError(f"{file} cannot be read: {refusal}") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
