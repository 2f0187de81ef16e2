"""A user's Parquet file to numbers and labels; pyarrow is imported only when one is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import Cells, is_missing, shown, why_not_a_number
from svgpbench_datasets.reading.columns import choose_features


def read_parquet(
    file: Path, *, target: str, features: Sequence[str] | None, label: bool
) -> tuple[tuple[str, ...], Cells]:
    """Read the chosen columns of a Parquet file.

    Args:
        file: the path.
        target: the column to predict.
        features: the inputs; None for every other column.
        label: True to keep the target as text, False to read it as the last number column.

    Returns:
        the feature names, and the cells: numbers [N, D] or [N, D + 1], and labels.

    Raises:
        DataError: not a Parquet file, a column that is not numeric, a cell that is null or not
            finite; with its row (from 1) and column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = str(file)
    try:
        with pq.ParquetFile(file) as source:
            names = tuple(source.schema_arrow.names)
            chosen = choose_features(names, target=target, features=features, where=where)
            table = source.read(columns=[*chosen, target])
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = shown(str(error).split("\n", maxsplit=1)[0], width=120)
        raise DataError(f"{where} is not a Parquet file that can be read ({reason})") from None
    places = {name: f"column {names.index(name) + 1} ({name!r})" for name in names}
    numeric = chosen if label else (*chosen, target)
    numbers = np.empty((table.num_rows, len(numeric)))
    for at, name in enumerate(numeric):
        numbers[:, at] = _numbers(table.column(name), where, places[name])
    labels = _labels(table.column(target), where, places[target]) if label else ()
    return chosen, Cells(numbers, labels)


def _numbers(column: Any, where: str, place: str) -> Floats:
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"{where}: {place} holds {kind}, not numbers; convert it or leave it out")
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy())) + 1
        raise DataError(f"{where}: row {row}, {place} {why_not_a_number('')}")
    try:
        values = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowException:
        raise DataError(
            f"{where}: {place} holds whole numbers that float64 cannot hold exactly; rescale it"
        ) from None
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise DataError(f"{where}: row {row + 1}, {place} {why_not_a_number(str(values[row]))}")
    return values


def _labels(column: Any, where: str, place: str) -> tuple[str, ...]:
    labels = []
    for row, value in enumerate(column.to_pylist(), start=1):
        if value is not None and not isinstance(value, str | int | float | Decimal):
            raise DataError(
                f"{where}: {place} holds {column.type}, neither text nor numbers; convert it"
            )
        integral = isinstance(value, float) and math.isfinite(value) and value.is_integer()
        text = "" if value is None else str(int(value)) if integral else str(value)
        if is_missing(text):
            raise DataError(f"{where}: row {row}, {place} {why_not_a_number(text)}")
        labels.append(text)
    return tuple(labels)
