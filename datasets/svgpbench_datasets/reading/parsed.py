"""Cache of parsed numbers: large text tables are parsed once and stored as Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.arrow import write_numbers
from svgpbench_datasets.reading.columns import read_numbers
from svgpbench_datasets.reading.numbers import Block
from svgpbench_datasets.reading.text import SEPARATORS

LARGE = 5_000_000
"""Fewest numbers in a table for which parsing its text is slower than reading a copy."""
_READING = {
    "parts", "reader", "skip_lines", "header", "number_rows", "rows", "columns", "features",
    "target", "categories", "split_cells", "missing", "labels",
}  # fmt: skip
"""Keys of an entry on which its parsed numbers depend."""


def is_large(entry: DatasetEntry) -> bool:
    """Return True if a data set is large and each of its parts is one file of separated text."""
    alone = len(entry.files) == len(entry.part_rows)
    text = all(entry.reader_of(index) in SEPARATORS for index in range(len(entry.files)))
    return alone and text and entry.rows * len(entry.features) >= LARGE


def parsed_path(entry: DatasetEntry, hashes: Sequence[str], cache: Path) -> Path:
    """Return the path of the parsed numbers; its name depends on the file hashes and how they are read."""
    digest = hashlib.sha256(entry.model_dump_json(include=_READING).encode())
    digest.update(" ".join(hashes).encode())
    return cache / "parsed" / f"{entry.name.replace(':', '.')}-{digest.hexdigest()[:16]}.parquet"


def read_or_parse(path: Path, parse: Callable[[], Iterable[Block]]) -> tuple[Floats, Floats]:
    """Read X [N, D] and y [N], read-only, from `path`; if it is missing or damaged, parse and store them.

    Blocks are written one at a time and row groups are read one at a time, so that the numbers are held
    in memory once.

    Raises:
        DataError: the path cannot be written; or as raised by `parse`.
    """
    with suppress(DataError):  # no file yet, or a damaged one
        return read_numbers(path, target="y", features=None)
    groups = ({**{f"x{i}": x for i, x in enumerate(X.T)}, "y": y} for X, y in parse())
    write_numbers(path, groups, advice="; name another folder with SVGPBENCH_DATA")
    return read_numbers(path, target="y", features=None)
