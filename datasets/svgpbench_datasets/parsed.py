"""Large tables parsed once: their numbers kept as Parquet beside the downloaded files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench_datasets.dataset import Floats, fingerprint
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.tables import Numbers

LARGE = 5_000_000
"""Numbers in a table from which on parsing its text costs more than looking a copy up."""
GROUP = 1 << 16
_BINARY = frozenset({"idx", "mat"})
_READING = {
    "parts", "reader", "skip_lines", "header", "number_rows", "rows", "columns", "features",
    "target", "categories", "split_cells", "missing", "labels",
}  # fmt: skip


def is_large(entry: DatasetEntry) -> bool:
    """Whether a data set is worth keeping parsed."""
    text = all(entry.reader_of(at) not in _BINARY for at in range(len(entry.files)))
    return text and entry.rows * len(entry.features) >= LARGE


def parsed_path(entry: DatasetEntry, contents: list[bytes], cache: Path) -> Path:
    """Where the numbers are kept: named by the content of the files and by how they are read."""
    digest = hashlib.sha256(entry.model_dump_json(include=_READING).encode())
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return cache / "parsed" / f"{entry.name.replace(':', '.')}-{digest.hexdigest()[:16]}.parquet"


def read_or_parse(
    path: Path, parse: Callable[[], tuple[Numbers, Numbers]]
) -> tuple[Floats, Floats]:
    """The numbers that are kept at a path; parsed and kept where none are, or damaged ones.

    Args:
        path: see `parsed_path`.
        parse: reads the text.

    Returns:
        X [N, D] and y [N].

    Raises:
        DataError: what `parse` raises; a cache that cannot be written.
    """
    kept = _read(path) if path.is_file() else None
    if kept is not None:
        return kept
    X, y = (np.asarray(part, dtype=np.float64) for part in parse())
    try:
        _write(path, X, y)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}); name another folder with "
            "SVGPBENCH_DATA"
        ) from None
    return X, y


def _write(path: Path, X: Floats, y: Floats) -> None:
    """One row group after another, into a new file that takes its name when it is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{at}" for at in range(X.shape[1])), "y"]
    schema = pa.schema(
        [(name, pa.float64()) for name in names], metadata={"fingerprint": fingerprint(X, y)}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        with pq.ParquetWriter(unfinished, schema, use_dictionary=False) as writer:
            for start in range(0, len(y), GROUP):
                rows = slice(start, start + GROUP)
                columns = [pa.array(column) for column in (*X[rows].T, y[rows])]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _read(path: Path) -> tuple[Floats, Floats] | None:
    """Fill arrays row group by row group; None where the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            rows, width = file.metadata.num_rows, file.metadata.num_columns
            X, y = np.empty((rows, width - 1)), np.empty(rows)
            start = 0
            for group in range(file.num_row_groups):
                table: Any = file.read_row_group(group)
                stop = start + table.num_rows
                for at in range(width - 1):
                    X[start:stop, at] = table.column(at).to_numpy()
                y[start:stop] = table.column(width - 1).to_numpy()
                start = stop
            stated = (file.schema_arrow.metadata or {}).get(b"fingerprint", b"").decode()
    except (pa.ArrowException, OSError, ValueError):
        return None
    return (X, y) if stated == fingerprint(X, y) else None
