"""Whether a file of which no checksum is known reads as its entry declares."""

from __future__ import annotations

from pathlib import Path

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.files import UnseenFile


def check_form(entry: DatasetEntry, file: UnseenFile, path: Path) -> None:
    """Read all of an uncompressed file: its header, its rows, and every column, input or not."""
    from svgpbench_datasets.reading.tables import read_blocks

    at = entry.files.index(file)  # one file makes one part: the entry says so
    alone = {
        "files": (file,),
        "parts": (),
        "rows": entry.part_rows[at],
        "reader": entry.reader_of(at),
        "skip_lines": entry.skipped_of(at),
        "features": tuple(column for column in entry.columns if column != entry.target),
    }
    for _ in read_blocks(entry.model_copy(update=alone), lambda _: path.open("rb")):
        pass
