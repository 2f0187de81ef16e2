"""Layout of a table file."""

from __future__ import annotations

from typing import NamedTuple


class Layout(NamedTuple):
    """Format and structure of a table file."""

    reader: str  # format, see `formats.READERS`
    skip_lines: int = 0  # lines before the header or the first row
    header: bool | None = False  # True if a line names the columns; None to detect it
    arrays: tuple[str, ...] = ()  # names of the arrays to read; empty for all
    width: int | None = None  # number of columns; None if not known in advance
    words: bool = False  # True to keep cells as text, even if all are numbers
    names: tuple[str, ...] | None = None  # names from a comment above the rows
