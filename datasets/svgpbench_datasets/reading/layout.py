"""How a file of a table is laid out."""

from __future__ import annotations

from typing import NamedTuple


class Layout(NamedTuple):
    """How a file is laid out.

    Attributes:
        reader: its format.
        skip_lines: lines before the header or the first row.
        header: whether a line names the columns; None for one that has anything but numbers.
        arrays: of a file of several arrays, those to read.
        width: how many columns it has; None where only the file says so.
        words: whether cells are wanted as they are written, even where all are numbers.
    """

    reader: str
    skip_lines: int = 0
    header: bool | None = False
    arrays: tuple[str, ...] = ()
    width: int | None = None
    words: bool = False
