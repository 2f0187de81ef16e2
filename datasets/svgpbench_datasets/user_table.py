"""A user's own file, CSV or Parquet, to a data set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from svgpbench_datasets.dataset import Dataset, Task
from svgpbench_datasets.errors import DataError, did_you_mean
from svgpbench_datasets.reading.cells import Cells, csv_rows, decode_lines, read_cells
from svgpbench_datasets.reading.columns import choose_features
from svgpbench_datasets.reading.labels import class_labels
from svgpbench_datasets.reading.parquet import read_parquet

_TASKS = ("regression", "classification", "multiclass")


def load_user_table(
    path: str | Path,
    *,
    target: str,
    task: Task,
    features: Sequence[str] | None = None,
    name: str | None = None,
) -> Dataset:
    """Load a CSV file with a header line, or a Parquet file, as a data set.

    Args:
        path: a file ending in .csv, .parquet or .pq.
        target: the column to predict.
        task: `regression`; `classification` for a target with two distinct values, which become
            0 and 1 in sorted order; `multiclass` for one with two or more, 0..K-1.
        features: the D input columns in the order wanted; None for every column but the target.
        name: what to call the data set; None for the file's name without its ending.

    Returns:
        the data set: X [N, D] and y [N], N at least 2.

    Raises:
        DataError: anything that keeps the file from being such a table, with file, line (Parquet:
            row) and column, and what to do about it.
    """
    if task not in _TASKS:
        hint = did_you_mean(str(task), _TASKS)
        raise DataError(f"unknown task {task!r} for {path}{hint} (known: {', '.join(_TASKS)})")
    if isinstance(features, str):
        raise DataError(f"features of {path} are one text {features!r}; give a list of names")
    file = Path(path)
    read = read_parquet if file.suffix.lower() in {".parquet", ".pq"} else _read_csv
    try:
        _check_file(file)
        chosen, cells = read(file, target=target, features=features, label=task != "regression")
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    rows = len(cells.numbers)
    if rows < 2:
        raise DataError(f"{file}: {rows or 'no'} data row{'s' * (rows == 0)}; give at least two")
    if task != "regression":
        X = cells.numbers
        y, classes = class_labels(cells.labels, f"{file}: target {target!r}", task=task)
    else:
        X, y, classes = cells.numbers[:, :-1], cells.numbers[:, -1], None
    return Dataset(
        name=file.stem if name is None else name,
        task=task,
        X=X,
        y=y,
        feature_names=chosen,
        target_name=target,
        source=str(file),
        class_labels=classes,
    )


def _check_file(file: Path) -> None:
    if file.is_dir():
        raise DataError(f"{file} is a folder; name a .csv or .parquet file in it")
    if not file.is_file():
        near = ""
        if file.parent.is_dir():
            near = did_you_mean(file.name, (sibling.name for sibling in file.parent.iterdir()))
        raise DataError(f"no file {file}{near}")
    if file.suffix.lower() not in {".csv", ".parquet", ".pq"}:
        raise DataError(f"{file}: files ending in {file.suffix!r} are not read; use .csv, .parquet")
    if file.stat().st_size == 0:
        raise DataError(f"{file} is empty; give a header line and data rows")


def _read_csv(
    file: Path, *, target: str, features: Sequence[str] | None, label: bool
) -> tuple[tuple[str, ...], Cells]:
    where = str(file)
    with file.open("rb") as lines:
        rows = csv_rows(decode_lines(lines, where), where)
        header = next(rows, None)
        if header is None:
            raise DataError(f"{where} holds only blank lines; give a header line and data rows")
        names = tuple(cell.strip() for cell in header[1])
        chosen = choose_features(names, target=target, features=features, where=where)
        first = next(rows, None)
        if first is None:
            raise DataError(f"{where}: a header line but no data rows; give at least two")
        numeric = chosen if label else (*chosen, target)
        cells = read_cells(
            chain([first], rows),
            where=where,
            names=names,
            numeric=numeric,
            label=target if label else None,
        )
    return chosen, cells
