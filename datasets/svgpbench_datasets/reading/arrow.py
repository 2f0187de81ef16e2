"""Reading and writing of Parquet and Feather by row groups; pyarrow is imported on first use."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import reason
from svgpbench_datasets.reading.table import Layout, TableFile
from svgpbench_datasets.whole_files import whole_file


def arrow_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read a Parquet file, or a Feather file of version 2."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # both formats have their index at the end of the file
    stream = stream if stream.seekable() else io.BytesIO(stream.read())
    with _in_one_line(where, layout):
        if layout.reader == "feather":
            source: Any = pa.ipc.open_file(stream)
            schema, count = source.schema, source.num_record_batches
        else:
            source = pq.ParquetFile(stream, page_checksum_verification=True)
            schema, count = source.schema_arrow, source.num_row_groups
        names = tuple(schema.names)

    def group(number: int, columns: Collection[str]) -> Any:
        if layout.reader == "feather":
            batch = source.get_batch(number)
            batch.validate(full=True)  # offsets in a damaged file may be out of bounds
            return pa.Table.from_batches([batch])
        return source.read_row_group(number, columns=list(columns), use_threads=False)

    def frames(
        indices: Collection[int] | None, spelled: Collection[int] = ()
    ) -> Iterator[pd.DataFrame]:
        names_read = {i: name for i, name in enumerate(names) if indices is None or i in indices}
        start = 1
        for number in range(count):
            with _in_one_line(where, layout):
                table = group(number, names_read.values())
                columns = {
                    i: _column(table.column(name), f"{where}: column {i + 1} ({name!r})")
                    for i, name in names_read.items()
                }
            del table
            frame = pd.DataFrame(columns)
            del columns
            pa.default_memory_pool().release_unused()  # otherwise it keeps the memory of several groups
            frame.index = pd.RangeIndex(start, start + len(frame), name="row")
            start += len(frame)
            yield frame

    return TableFile(names, frames, row_index(schema))


def row_index(schema: Any) -> tuple[str, ...]:
    """Return the columns of an Arrow schema that pandas saved as the index of the rows.

    The metadata names them; an index that counts the rows has no column.
    """
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", ())
    except (ValueError, AttributeError, RecursionError):  # no JSON, not an object, or far too deep
        return ()
    names = index if isinstance(index, list) else ()
    return tuple(name for name in names if isinstance(name, str) and name in schema.names)


def write_numbers(
    path: Path,
    groups: Iterable[Mapping[str, Floats]],
    metadata: Mapping[str, str] | None = None,
    advice: str = "",
) -> None:
    """Write row groups, each a mapping from name to column [n], as a Parquet file.

    The file gets its name when it is complete, replacing an existing one. Without row groups nothing is
    written. Raises `DataError`, which ends with `advice`, if the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with whole_file(path, advice) as unfinished, ExitStack() as closed:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer: Any = None
        for group in groups:
            arrays = {name: pa.array(np.ascontiguousarray(x)) for name, x in group.items()}
            table = pa.table(arrays, metadata=dict(metadata or {}))
            if writer is None:
                writer = closed.enter_context(
                    pq.ParquetWriter(
                        unfinished, table.schema, use_dictionary=False, write_page_checksum=True
                    )
                )
            writer.write_table(table)


@contextmanager
def _in_one_line(where: str, layout: Layout) -> Iterator[None]:
    """Turn errors of Arrow into a one-line `DataError`."""
    import pyarrow as pa

    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        kind = layout.reader.capitalize()
        why = f"{where} is not a {kind} file that can be read ({reason(error)})"
        raise DataError(why) from None


def _column(column: Any, where: str) -> pd.Series[Any]:
    """Return a numeric column without missing values unchanged, any other as objects.

    Raises `DataError` for cells that are neither text nor numbers.
    """
    import pyarrow as pa

    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return pd.Series(column.to_numpy())
    cells = column.to_pylist()
    if not all(isinstance(cell, str | int | float | Decimal | None) for cell in cells):
        raise DataError(f"{where} holds {kind}, neither text nor numbers; convert it")
    return pd.Series(cells, dtype=object)
