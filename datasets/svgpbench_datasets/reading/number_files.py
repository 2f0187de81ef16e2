"""Numbers kept as Parquet: written row group after row group, read into arrays that are held once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench_datasets.dataset import Floats, sealed
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import shown
from svgpbench_datasets.reading.columns import choose_features


def write_numbers(
    path: Path, groups: Iterable[Mapping[str, Floats]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a new file that takes its name when it is whole; nothing is left of one that fails.

    Args:
        path: of the file; one that is there is replaced, unless there is no row group.
        groups: the columns of each row group by name, [n] each.
        metadata: of the schema.

    Raises:
        OSError: it cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    writer: Any = None
    try:
        for group in groups:
            columns = {name: pa.array(np.ascontiguousarray(one)) for name, one in group.items()}
            table = pa.table(columns, metadata=dict(metadata or {}))
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


def read_numbers(
    file: Path, *, target: str, features: Sequence[str] | None
) -> tuple[Floats, Floats]:
    """Fill arrays row group by row group; columns that are not wanted are not read.

    Args:
        file: the path.
        target: the column to predict.
        features: the inputs; None for every other column.

    Returns:
        X [N, D] and y [N], sealed.

    Raises:
        DataError: a file that cannot be read or is damaged, a column that is not there or holds no numbers.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = str(file)
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            names = source.schema_arrow.names
            chosen = choose_features(names, target=target, features=features, where=where)
            rows = source.metadata.num_rows
            X, y, start = np.empty((rows, len(chosen))), np.empty(rows), 0
            for group in range(source.num_row_groups):
                table: Any = source.read_row_group(
                    group, columns=[*chosen, target], use_threads=False
                )
                stop = start + table.num_rows
                for at, name in enumerate(chosen):
                    X[start:stop, at] = table.column(name).to_numpy()
                y[start:stop] = table.column(target).to_numpy()
                start = stop
                del table
                pa.default_memory_pool().release_unused()  # it would keep some groups' worth
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = shown(str(error).split("\n", maxsplit=1)[0], width=120)
        raise DataError(f"{where} holds no numbers that can be read ({reason})") from None
    return sealed(X), sealed(y)
