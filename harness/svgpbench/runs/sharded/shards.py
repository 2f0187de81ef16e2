"""Shards of a Parquet table: each has some of its row groups, and a worker reads only those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.errors import UserError, refuse_unknown
from svgpbench.experiments.data_errors import data_errors_are_the_users
from svgpbench_datasets.reading.arrow import row_index
from svgpbench_datasets.reading.numbers import as_floats
from svgpbench_datasets.standardise import column_statistics

Floats = npt.NDArray[np.float64]


class TableColumns(NamedTuple):
    """Names of the table's columns that are read."""

    features: tuple[str, ...]
    target: str


@dataclass(frozen=True)
class Shard:
    """Consecutive row groups of a file."""

    path: str
    groups: tuple[int, ...]
    rows: int
    device: int = 0  # index of the device that computes it


class Moments(NamedTuple):
    """Rows, mean and norm of the deviations of the inputs and, last, the target: each [D + 1].

    The norm is √(Σ deviation²): of tiny or huge columns it is a float64 where its square is not.
    """

    rows: int
    mean: Floats
    norm: Floats


def shards_of(path: Path, rows: int) -> list[Shard]:
    """Split a file into shards of at least `rows` rows each; the last one may have fewer.

    Raises `UserError` if the file is not a Parquet table or has no rows.
    """
    shards: list[Shard] = []
    with _opened(path) as file:
        sizes = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
    groups: list[int] = []
    for index in range(len(sizes)):
        groups.append(index)
        total = sum(sizes[group] for group in groups)
        if total >= rows or (index == len(sizes) - 1 and total):
            shards.append(Shard(str(path), tuple(groups), total))
            groups = []
    if not shards:
        raise UserError(f"{path} has no rows")
    return shards


def columns_of(path: Path, target: str, features: Sequence[str] = ()) -> TableColumns:
    """Return the columns to read; without features, all but the target and the index that pandas saved.

    Raises `UserError` if a column is missing or does not hold numbers.
    """
    with _opened(path) as file:
        schema = file.schema_arrow
    refuse_unknown(f"column of {path}", (target, *features), schema.names)
    left_out = {target, *row_index(schema)}
    chosen_features = tuple(features) or tuple(x for x in schema.names if x not in left_out)
    import pyarrow.types as kinds

    for name in (*chosen_features, target):
        kind = schema.field(name).type
        if not (kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)):
            raise UserError(f"{path}: column {name!r} holds {kind}, not numbers")
    return TableColumns(chosen_features, target)


def read(shard: Shard, columns: TableColumns) -> tuple[Floats, Floats]:
    """Return inputs [n, D] and target [n] of a shard.

    Raises `UserError` if a value is not finite, or an integer that float64 cannot hold.
    """
    names = [*columns.features, columns.target]
    with _opened(Path(shard.path)) as file:
        table = file.read_row_groups(list(shard.groups), columns=names, use_threads=False)
    columns_read = [pd.Series(table.column(name).to_numpy()) for name in names]
    rows = np.stack(
        [as_floats(x.astype(np.uint8) if x.dtype.kind == "b" else x) for x in columns_read], axis=-1
    )
    if not np.isfinite(rows).all():
        index = int(np.argmin(np.isfinite(rows).all(axis=0)))
        raise UserError(
            f"{shard.path}: column {names[index]!r} holds NaN, infinity or a whole number that float64 "
            "cannot hold exactly"
        )
    return rows[:, :-1], rows[:, -1]


def moments(shard: Shard, columns: TableColumns) -> Moments:
    """Return the moments of a shard, for standardisation."""
    X, y = read(shard, columns)
    rows = np.concatenate([X, y[:, None]], axis=-1)
    with data_errors_are_the_users():
        mean, spread, _ = column_statistics(rows, names=[*columns.features, columns.target])
    return Moments(len(rows), mean, spread * np.sqrt(len(rows)))


def merged(first: Moments, second: Moments) -> Moments:
    """Return the moments of two sets of rows together. Source: Chan, Golub and LeVeque 1979."""
    rows, shift = first.rows + second.rows, second.mean - first.mean
    mean = first.mean + shift * (second.rows / rows)
    between = np.abs(shift) * np.sqrt(first.rows * second.rows / rows)
    return Moments(rows, mean, np.hypot(np.hypot(first.norm, second.norm), between))


def target_counts(shard: Shard, columns: TableColumns) -> pd.Series[int]:
    """Return how many rows of a shard have each value of the target, which is the index."""
    return pd.Series(read(shard, TableColumns((), columns.target))[1]).value_counts()


def counts_together(first: pd.Series[int], second: pd.Series[int]) -> pd.Series[int]:
    """Return the counts of two sets of rows together."""
    return first.add(second, fill_value=0).astype(int)


def _opened(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or 'no Parquet table'}") from None
    except pa.ArrowException:
        raise UserError(f"{path} is no Parquet table") from None
