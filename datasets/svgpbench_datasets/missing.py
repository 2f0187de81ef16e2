"""Missing values as they stand in the files, before what is declared is done to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.reading.tables import Open, rows_as_written
from svgpbench_datasets.reading.treatments import missing_cells


@dataclass(frozen=True)
class Missing:
    """How many values of the features and the target are missing."""

    rows: int = 0  # with one or more
    cells: dict[str, int] = field(default_factory=dict)  # of each column that lacks some, in order


def count_missing(entry: DatasetEntry, open_file: Open) -> Missing:
    """Count what the files of an entry lack; where missing values are refused they were read without one.

    Raises:
        DataError: as `read_blocks`.
    """
    if entry.missing == "refuse":
        return Missing()
    cells: Counter[Hashable] = Counter()
    rows = 0
    for frame in rows_as_written(entry, open_file):
        lacking = missing_cells(frame, entry)
        cells.update({name: int(column.sum()) for name, column in lacking.items()})
        rows += int(lacking.any(axis=1).sum())
    return Missing(rows, {str(name): count for name, count in cells.items() if count})
