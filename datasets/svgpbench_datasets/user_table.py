"""A user's own file of any format to a data set."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from svgpbench_datasets.dataset import Dataset, Task
from svgpbench_datasets.errors import DataError, did_you_mean
from svgpbench_datasets.fetch.proof import WrongContent
from svgpbench_datasets.fetch.unpacking import Bounded, content
from svgpbench_datasets.reading.layout import Layout

_TASKS = ("regression", "classification", "multiclass")
TEXT = (".csv", ".tsv", ".txt", ".dat", ".data")
READERS = {
    **dict.fromkeys(TEXT, "text"),
    **{".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arff": "arff"},
    **{".xls": "xls", ".xlsx": "xls", ".mat": "mat", ".npy": "numpy", ".npz": "numpy"},
}
"""The format of a file by its ending."""
PACKED = (".gz", ".xz", ".bz2", ".zip")
"""Endings that may follow; a .zip holds one file, whose own ending counts."""

_MOST_TIMES, _AT_LEAST = 200, 1 << 30
"""Of its own size, and bytes in any case, that a compressed file may take uncompressed."""


def is_table_file(name: str) -> bool:
    """Whether a name is that of a file that `load_user_table` reads, by its ending."""
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
) -> Dataset:
    """Load a file of a table as a data set: X [N, D] and y [N], N at least 2.

    The file ends in one of `READERS`, and one of `PACKED` after it where it is compressed. The target of
    `classification` has two distinct values, which become 0 and 1 in sorted order, that of `multiclass`
    two or more, 0..K-1. `features` are the D inputs in the order wanted, None for every column but the
    target and `outputs`, the targets of a table of several. `arrays` are those to read of a .mat or
    .npz file, side by side; none for all.

    Raises:
        DataError: anything that keeps the file from being such a table, with file, line (binary
            formats: row) and column, and what to do about it.
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
    with _content(file) as (_, stream):
        table = open_table(stream, str(file), layout)
        found = read_columns(
            table,
            str(file),
            target=target,
            features=features,
            outputs=outputs,
            labelled=labelled,
        )
    rows, y, classes = len(found.y), found.y, None
    if rows < 2:
        raise DataError(f"{file}: {rows or 'no'} data row{'s' * (rows == 0)}; give at least two")
    if labelled:
        y, classes = sorted_classes(y, found.labels, f"{file}: target {target!r}", task=task)
    return Dataset(
        name=file.stem if name is None else name,
        task=task,
        X=found.X,
        y=y,
        feature_names=found.features,
        target_name=target,
        source=str(file),
        class_labels=classes,
    )


def layout_of(file: Path, arrays: Sequence[str] = ()) -> Layout:
    """How a file is laid out: by its ending and, of text, by its first line."""
    from svgpbench_datasets.reading.text import layout_found

    _check_file(file)
    with _content(file) as (ending, stream):
        if ending not in READERS:
            raise DataError(
                f"{file}: files ending in {ending!r} are not read; use {', '.join(READERS)}"
            )
        if arrays and ending not in (".mat", ".npz"):
            raise DataError(f"{file} has no arrays to choose from; leave `arrays` out")
        if ending in TEXT:
            return layout_found(stream, str(file))
        return Layout(READERS[ending], header=None, arrays=tuple(arrays))


def _check_file(file: Path) -> None:
    if file.is_dir():
        raise DataError(f"{file} is a folder; name a file in it, such as a .csv")
    if not file.is_file():
        near = ""
        if file.parent.is_dir():
            near = did_you_mean(file.name, (sibling.name for sibling in file.parent.iterdir()))
        raise DataError(f"no file {file}{near}")
    if file.stat().st_size == 0:
        raise DataError(f"{file} is empty; give a header line and data rows")


@contextmanager
def _content(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The ending that tells the format of a file, and its uncompressed content."""
    ending = file.suffix.lower()
    try:
        if ending not in PACKED:
            with file.open("rb") as stream:
                yield ending, stream
            return
        member = _only_member(file) if ending == ".zip" else None
        bound = max(_AT_LEAST, _MOST_TIMES * file.stat().st_size)
        with content(file, member, bound) as plain:
            bounded = Bounded(plain, bound, f"it is more than {bound:,} bytes uncompressed")
            yield Path(member or file.stem).suffix.lower(), io.BufferedReader(bounded)
    except WrongContent as refusal:
        raise DataError(f"{file} cannot be read: {refusal}") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None


def _only_member(file: Path) -> str:
    try:
        with zipfile.ZipFile(file) as archive:
            # a damaged name may be empty, of which `is_dir` knows nothing
            names = [name for name in archive.namelist() if not name.endswith("/")]
    except (zipfile.BadZipFile, NotImplementedError) as error:  # a version of zip to come
        raise DataError(f"{file} is no .zip archive that can be read ({error})") from None
    if len(names) != 1:
        raise DataError(f"{file} holds {len(names)} files; a .zip of a table holds one")
    return names[0]
