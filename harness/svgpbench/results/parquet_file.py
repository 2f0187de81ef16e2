"""One Parquet file per experiment, `<folder>/<experiment>.parquet`, with one row per record.

Metrics are columns `metric_NAME`, and traces are columns of lists `trace_NAME`. A column holds integers if
all its values in the experiment are integers, else doubles. Null is null. Numbers are stored bit for bit.

`config`, `data`, `environment`, `timing` and `worker` are the JSON of the record. `order` lists the metrics
and trace columns of the record. `other` holds values that their column cannot represent exactly, such as an
integer among doubles. The metadata of the file has a digest of all values, so that a file that was cut off
or changed is refused.
"""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from svgpbench.atomic import write_whole
from svgpbench.config import CellConfig
from svgpbench.environment import Environment
from svgpbench.experiments.outcome import Number
from svgpbench.results.records import (
    SCHEMA_VERSION,
    Record,
    UnreadableFileError,
    WorkerFacts,
    parquet_path,
)

MARK: Final = b"svgpbench"
"""Key of the file's metadata that has the schema and the digest."""

METADATA_KEYS: Final = ("schema_version", "experiment", "digest")
PLAIN: Final = {
    "cell_id": pa.string(),
    "method_version": pa.int64(),
    "status": pa.string(),
    "message": pa.string(),
    "traceback": pa.string(),
    "started": pa.string(),
    "wall_s": pa.float64(),
    "peak_memory_bytes": pa.int64(),
}
AS_JSON: Final = ("config", "data", "environment", "timing", "worker")
LAYOUT_COLUMNS: Final = ("order", "other")
COLUMNS: Final = PLAIN | dict.fromkeys((*AS_JSON, *LAYOUT_COLUMNS), pa.string())
"""Columns of every file, with their types."""

PREFIX: Final = {"metrics": "metric_", "trace": "trace_"}


class Lists(NamedTuple):
    """A column of lists: list i is numbers[ends[i - 1] : ends[i]], with null where `present` is false."""

    numbers: npt.NDArray[Any]
    present: npt.NDArray[np.bool_]
    ends: list[int]

    def values_of_row(self, row: int) -> list[Number]:
        """Return the list of a row."""
        part = slice(self.ends[row - 1] if row else 0, self.ends[row])
        values: list[Number] = self.numbers[part].tolist()
        present = self.present[part]
        if present.all():
            return values
        return [
            value if is_there else None for value, is_there in zip(values, present, strict=True)
        ]


@dataclass(frozen=True)
class ParquetRecords:
    """The columns of an experiment's file, from which single records are built."""

    path: Path
    plain: dict[str, list[Any]]
    lists: dict[str, Lists]

    @functools.cached_property
    def rows(self) -> dict[str, int]:
        """Row number of each cell id."""
        return {cell_id: row for row, cell_id in enumerate(self.plain["cell_id"])}

    def records(self) -> list[Record]:
        """Return all records, sorted by backend and cell id."""
        return [self.record(cell_id) for cell_id in self.rows]

    def record(self, cell_id: str) -> Record:
        """Return the record of a cell in this file. Raises `UnreadableFileError` if it is damaged."""
        try:
            return self._record(self.rows[cell_id])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise _damaged(self.path, f"the record of {cell_id}: {error}") from error

    def _record(self, row: int) -> Record:
        content = {name: self.plain[name][row] for name in (*PLAIN, *AS_JSON, *LAYOUT_COLUMNS)}
        order, inexact_values = (json.loads(content.pop(name)) for name in LAYOUT_COLUMNS)
        content |= {
            "started": datetime.fromisoformat(content["started"]),
            "config": CellConfig.model_validate_json(content["config"]),
            "environment": _environment(content["environment"]),
            "worker": WorkerFacts.model_validate_json(content["worker"]),
            "data": json.loads(content["data"]),
            "timing": json.loads(content["timing"]),
        }
        metrics = {name: self.plain[f"metric_{name}"][row] for name in order["metrics"]}
        trace = {name: self.lists[f"trace_{name}"].values_of_row(row) for name in order["trace"]}
        content["metrics"] = metrics | inexact_values.get("metrics", {})
        content["trace"] = trace | inexact_values.get("trace", {})
        # it was validated when it was written, and the digest shows that it has not changed
        return Record.model_construct(**content)


@functools.lru_cache
def _environment(text: str) -> Environment | None:
    """Return the environment from its JSON. It is cached, because many records share one."""
    return None if text == "null" else Environment.model_validate_json(text)


def write_parquet_records(folder: Path, records: Iterable[Record]) -> Path:
    """Write all records of one experiment to its file, whole or not at all. It replaces an existing file.

    Raises `UserError` if it cannot be written.
    """
    ordered = sorted(records, key=lambda record: (record.config.backend.name, record.cell_id))
    (experiment,) = {record.config.experiment for record in ordered}
    table = _table([record.model_dump(mode="json") for record in ordered])
    metadata = dict(
        zip(METADATA_KEYS, (SCHEMA_VERSION, experiment, _digest(*_columns(table))), strict=True)
    )
    buffer = io.BytesIO()
    lists = [field.name for field in table.schema if pa.types.is_list(field.type)]
    pq.write_table(
        table.replace_schema_metadata({MARK: json.dumps(metadata)}),
        buffer,
        compression="zstd",
        compression_level=9,
        # numbers of a trace hardly repeat, so no dictionary; with one PyArrow skips the byte split,
        # which puts like bytes of neighbouring numbers side by side, where they compress
        use_dictionary=[name for name in table.column_names if name not in lists],
        use_byte_stream_split=[f"{name}.list.element" for name in lists],
    )
    path = parquet_path(folder, experiment)
    write_whole(path, buffer.getvalue())
    _read.cache_clear()  # two files of one size may have the same time of change
    return path


def _table(contents: Sequence[dict[str, Any]]) -> pa.Table:
    """Return a table with one row per record; `contents` has the records as JSON objects."""
    columns = {
        name: pa.array([content[name] for content in contents], type_)
        for name, type_ in PLAIN.items()
    }
    for name in AS_JSON:
        columns[name] = _texts(content[name] for content in contents)
    columns["order"] = _texts({part: list(x[part]) for part in PREFIX} for x in contents)
    others: list[dict[str, dict[str, Any]]] = [{} for _ in contents]
    for part, prefix in PREFIX.items():
        for name in dict.fromkeys(name for content in contents for name in content[part]):
            values = [content[part].get(name) for content in contents]
            numbers = [x for x in _numbers(values) if x is not None]
            # `type`, as `isinstance` takes True for an integer; larger ones do not fit int64
            all_int64 = all(type(x) is int and -(2**63) <= x < 2**63 for x in numbers)
            kind = int if all_int64 and numbers else float
            # null where the column's type cannot represent the value, or a value of the list, bit for bit
            exact = [
                value if all(x is None or type(x) is kind for x in _numbers([value])) else None
                for value in values
            ]
            for inexact, value, exact_value in zip(others, values, exact, strict=True):
                if exact_value != value:
                    inexact.setdefault(part, {})[name] = value
            type_ = pa.int64() if kind is int else pa.float64()
            columns[f"{prefix}{name}"] = pa.array(
                exact, pa.list_(type_) if part == "trace" else type_
            )
    columns["other"] = _texts(others)
    return pa.table(columns)


def _texts(values: Iterable[Any]) -> pa.Array:
    return pa.array([json.dumps(value, allow_nan=False) for value in values], pa.string())


def _numbers(values: Iterable[Any]) -> Iterable[Any]:
    """Return the numbers of a column, whether its values are lists or not."""
    return itertools.chain.from_iterable(x if isinstance(x, list) else (x,) for x in values)


def _columns(table: pa.Table) -> tuple[dict[str, list[Any]], dict[str, Lists]]:
    """Return the plain columns as Python lists, and the columns of lists as `Lists`."""
    plain, lists = {}, {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_list(column.type):
            numbers = column.flatten()
            lists[name] = Lists(
                # Arrow leaves open which bytes lie under a null, and the digest is of all bytes
                numbers.fill_null(0).to_numpy(zero_copy_only=False),
                numbers.is_valid().to_numpy(zero_copy_only=False),
                # not Arrow's offsets: they may count values under a null list, unlike `flatten`
                np.cumsum(column.value_lengths().fill_null(0).to_numpy()).tolist(),
            )
        else:
            plain[name] = column.to_pylist()
    return plain, lists


def _digest(plain: dict[str, list[Any]], lists: dict[str, Lists]) -> str:
    """Return the SHA-256 of all values. It does not depend on the layout of the file."""
    hashed = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for name, column in sorted(lists.items()):
        hashed.update(json.dumps([name, column.numbers.dtype.str, column.ends]).encode())
        hashed.update(column.present.tobytes())
        hashed.update(column.numbers.tobytes())
    return f"sha256:{hashed.hexdigest()}"


def is_parquet_records(path: Path) -> bool:
    """Return True if a Parquet file is marked as holding records.

    Raises `UnreadableFileError` if it is damaged or cannot be read.
    """
    try:
        return MARK in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def read_parquet_records(path: Path) -> ParquetRecords:
    """Return the records of a file. The result is cached until the file changes.

    Raises `UnreadableFileError` if the file is damaged, has another schema or another name, or holds no
    records.
    """
    try:
        facts = path.stat()
    except OSError as error:
        raise UnreadableFileError(f"cannot read {path}: {error.strerror}") from error
    return _read(path, facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> ParquetRecords:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
        if MARK not in (table.schema.metadata or {}):
            raise UnreadableFileError(
                f"{path} holds no records: move it; `svgpbench collect` writes such files"
            )
        metadata = json.loads(table.schema.metadata[MARK])
        schema, experiment, digest = (metadata[key] for key in METADATA_KEYS)
        plain, lists = _columns(table)
        unchanged = digest == _digest(plain, lists)
        types = {field.name: field.type for field in table.schema}
        fits = all(types.get(name) == type_ for name, type_ in COLUMNS.items())
        fits = fits and None not in plain["cell_id"]  # which records are sorted by
    except UnreadableFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        raise _damaged(path, error) from error  # a changed byte may cause any of these
    if not unchanged:
        raise _damaged(path, "its digest is not that of its values")
    if not fits:
        raise _damaged(path, "its columns are not those of records")
    if schema != SCHEMA_VERSION:
        raise UnreadableFileError(
            f"{path} has record schema {schema}, this version reads {SCHEMA_VERSION}: "
            "use the version that wrote it"
        )
    if path.stem != experiment:
        raise UnreadableFileError(f"{path} holds the records of {experiment}: give it that name")
    return ParquetRecords(path, plain, lists)


def _damaged(path: Path, why: object) -> UnreadableFileError:
    first_line = str(why).partition("\n")[0]
    return UnreadableFileError(
        f"{path} is damaged: {first_line}; take another copy, or collect its records again"
    )
