"""Large tables parsed once: their numbers kept as Parquet beside the downloaded files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench_datasets.blocks import Block, comes_in_blocks
from svgpbench_datasets.dataset import Floats, sealed
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError

LARGE = 5_000_000
"""Numbers in a table from which on parsing its text costs more than looking a copy up."""
_READING = {
    "parts", "reader", "skip_lines", "header", "number_rows", "rows", "columns", "features",
    "target", "categories", "split_cells", "missing", "labels",
}  # fmt: skip


def is_large(entry: DatasetEntry) -> bool:
    """Whether a data set is worth keeping parsed."""
    return comes_in_blocks(entry) and entry.rows * len(entry.features) >= LARGE


def parsed_path(entry: DatasetEntry, hashes: Sequence[str], cache: Path) -> Path:
    """Where the numbers are kept: named by the sha256 of each file and by how they are read."""
    digest = hashlib.sha256(entry.model_dump_json(include=_READING).encode())
    digest.update(" ".join(hashes).encode())
    return cache / "parsed" / f"{entry.name.replace(':', '.')}-{digest.hexdigest()[:16]}.parquet"


def read_or_parse(path: Path, parse: Callable[[], Iterable[Block]]) -> tuple[Floats, Floats]:
    """The numbers that are kept at a path; parsed and kept where none are, or damaged ones.

    Block after block goes from the text to the file, and row group after row group from the file to the
    arrays: they are held once.

    Args:
        path: see `parsed_path`.
        parse: reads the text.

    Returns:
        X [N, D] and y [N], sealed.

    Raises:
        DataError: what `parse` raises; a cache that cannot be written or keeps nothing.
    """
    kept = _read(path) if path.is_file() else None
    if kept is not None:
        return kept
    try:
        _write(path, parse())
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}); name another folder with "
            "SVGPBENCH_DATA"
        ) from None
    kept = _read(path)
    if kept is None:
        raise DataError(f"{path} does not hold what was just written to it; check that disk")
    return kept


def _write(path: Path, blocks: Iterable[Block]) -> None:
    """One row group after another, into a new file that takes its name when it is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    writer: Any = None
    try:
        for X, y in blocks:
            names = [*(f"x{at}" for at in range(X.shape[1])), "y"]
            columns = [pa.array(np.ascontiguousarray(one)) for one in (*X.T, y)]
            table = pa.table(dict(zip(names, columns, strict=True)))
            writer = writer or pq.ParquetWriter(
                unfinished, table.schema, use_dictionary=False, write_page_checksum=True
            )
            writer.write_table(table)
        if writer is not None:
            writer.close()
            unfinished.replace(path)
    finally:
        if writer is not None:
            writer.close()
        unfinished.unlink(missing_ok=True)


def _read(path: Path) -> tuple[Floats, Floats] | None:
    """Fill arrays row group by row group; None where the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            rows, width = file.metadata.num_rows, file.metadata.num_columns
            X, y = np.empty((rows, width - 1)), np.empty(rows)
            start = 0
            for group in range(file.num_row_groups):
                table: Any = file.read_row_group(group, use_threads=False)
                stop = start + table.num_rows
                for at in range(width - 1):
                    X[start:stop, at] = table.column(at).to_numpy()
                y[start:stop] = table.column(width - 1).to_numpy()
                start = stop
                del table
                pa.default_memory_pool().release_unused()  # it would keep some groups' worth
    except (pa.ArrowException, OSError, ValueError):
        return None
    return sealed(X), sealed(y)
