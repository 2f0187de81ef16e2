"""Missing values as they stand in the files, before what is declared is done to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import is_missing
from svgpbench_datasets.reading.tables import Open, rows_as_written


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
        open_file: gives the uncompressed content of a file.

    Returns:
        the counts.

    Raises:
        DataError: as `read_entry`.
    """
    if entry.missing == "refuse":
        return NONE_MISSING
    used = [
        (at, name)
        for at, name in enumerate(entry.columns)
        if name in {*entry.features, entry.target}
    ]
    cells: Counter[str] = Counter()
    rows = 0
    for line, row in rows_as_written(entry, open_file):
        if len(row) != len(entry.columns):
            raise DataError(
                f"{entry.name}: line {line} has {len(row)} cells where {len(entry.columns)} columns "
                "are expected; check its separators"
            )
        lacking = [name for at, name in used if is_missing(row[at])]
        cells.update(lacking)
        rows += bool(lacking)
    return Missing(rows, {name: cells[name] for _, name in used if name in cells})
