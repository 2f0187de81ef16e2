"""Opening of table files: the reader of each format by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from svgpbench_datasets.reading.arrays import idx_table, mat_table, numpy_table
from svgpbench_datasets.reading.arrow import arrow_table
from svgpbench_datasets.reading.table import Layout, TableFile
from svgpbench_datasets.reading.text import arff_table, text_table
from svgpbench_datasets.reading.workbooks import workbook_table

READERS: dict[str, Callable[[IO[bytes], str, Layout], TableFile]] = {
    "whitespace": text_table,
    "csv": text_table,
    "semicolon": text_table,
    "tab": text_table,
    "pipe": text_table,
    "arff": arff_table,
    "idx": idx_table,
    "mat": mat_table,
    "numpy": numpy_table,
    "xls": workbook_table,
    "parquet": arrow_table,
    "feather": arrow_table,
}


def open_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Open a table from the uncompressed content of a file; `where` is its name, for messages.

    Raises:
        DataError: the file is not such a table, with line or row and column. It may also be raised
            later, while rows are read.
    """
    return READERS[layout.reader](stream, where, layout)
