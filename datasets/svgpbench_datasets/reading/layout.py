"""How a file of a table is laid out."""

from __future__ import annotations

from typing import NamedTuple


class Layout(NamedTuple):
    """How a file is laid out."""

    reader: str  # its format
    skip_lines: int = 0  # before the header or the first row
    header: bool | None = False  # a line names the columns; None: if it is more than numbers
    arrays: tuple[str, ...] = ()  # of a file of several, those to read
    width: int | None = None  # how many columns it has; None where only the file says so
    words: bool = False  # cells are wanted as they are written, even where all are numbers
