"""Missing values as they stand in the files, before what is declared is done to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.reading.tables import Open, rows_as_written
from svgpbench_datasets.reading.treatments import missing_cells


@dataclass(frozen=True)
class Missing:
    """How much is missing.

    Attributes:
        rows: rows with a missing value in a feature or the target.
        cells: the missing values of each such column, in the order of the columns.
    """

    rows: int
    cells: dict[str, int]


NONE_MISSING = Missing(0, {})


def count_missing(entry: DatasetEntry, open_file: Open) -> Missing:
    """Count what the files of an entry lack.

    An entry that refuses missing values was read without one: its files are not read again.

    Args:
        entry: what is declared.
        open_file: opens the uncompressed content of a file.

    Returns:
        the counts.

    Raises:
        DataError: as `read_entry`.
    """
    if entry.missing == "refuse":
        return NONE_MISSING
    cells: Counter[Hashable] = Counter()
    rows = 0
    for frame in rows_as_written(entry, open_file):
        lacking = missing_cells(frame, entry)
        cells.update({name: int(column.sum()) for name, column in lacking.items()})
        rows += int(lacking.any(axis=1).sum())
    return Missing(rows, {str(name): count for name, count in cells.items() if count})
