"""Large tables parsed once: their numbers kept as Parquet beside the downloaded files."""

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
"""Numbers in a table from which on parsing its text costs more than looking a copy up."""
_READING = {
    "parts", "reader", "skip_lines", "header", "number_rows", "rows", "columns", "features",
    "target", "categories", "split_cells", "missing", "labels",
}  # fmt: skip


def is_large(entry: DatasetEntry) -> bool:
    """Whether a data set is worth keeping parsed: each part is one large file of separated text."""
    alone = len(entry.files) == len(entry.part_rows)
    text = all(entry.reader_of(at) in SEPARATORS for at in range(len(entry.files)))
    return alone and text and entry.rows * len(entry.features) >= LARGE


def parsed_path(entry: DatasetEntry, hashes: Sequence[str], cache: Path) -> Path:
    """Where the numbers are kept: named by the sha256 of each file and by how they are read."""
    digest = hashlib.sha256(entry.model_dump_json(include=_READING).encode())
    digest.update(" ".join(hashes).encode())
    return cache / "parsed" / f"{entry.name.replace(':', '.')}-{digest.hexdigest()[:16]}.parquet"


def read_or_parse(path: Path, parse: Callable[[], Iterable[Block]]) -> tuple[Floats, Floats]:
    """X [N, D] and y [N] that are kept at a path, sealed; parsed and kept where none are, or damaged ones.

    Block after block goes from the text to the file, and row group after row group from the file to the
    arrays: they are held once.
    """
    with suppress(DataError):  # nothing is kept yet, or the file is damaged
        return read_numbers(path, target="y", features=None)
    try:
        write_numbers(path, map(_columns, parse()))
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}); name another folder with "
            "SVGPBENCH_DATA"
        ) from None
    return read_numbers(path, target="y", features=None)


def _columns(block: Block) -> dict[str, Floats]:
    X, y = block
    return {**{f"x{at}": column for at, column in enumerate(X.T)}, "y": y}
