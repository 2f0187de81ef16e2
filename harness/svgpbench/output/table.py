"""One table for every command and page: columns that say how values are written, and rows of values.

`table_formats` renders tables as Markdown, LaTeX, CSV and JSON, `terminal` in a terminal, and
`site/templates/macros.html` as HTML.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from svgpbench.errors import without_controls

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

MISSING = "–"
"""Text of a missing number."""

Format: TypeAlias = str | Callable[[Any], str]
"""A format such as `.3g`, or a function that returns the text of a value."""


class Styled(NamedTuple):
    """A value with a style of rich, which a terminal alone shows."""

    value: Any
    style: str


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    format: Format = ""
    numeric: bool = False  # aligned right
    unit: str = ""
    wrap: bool | None = None  # whether a terminal may break its texts; None: unless numeric
    clip: bool = False  # a terminal cuts texts off by "…" rather than breaking them
    optional: bool = False  # left out in a terminal where the columns do not fit side by side
    style: str = ""  # of rich
    missing: str | None = None  # text of None and NaN; None: `MISSING` for a number, else empty

    @property
    def title(self) -> str:
        """The name with its unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def wraps(self) -> bool:
        """True if a terminal may break the texts of the column at blanks."""
        return not self.numeric if self.wrap is None else self.wrap

    def text(self, value: Any) -> str:
        """Return the text of a value; None and NaN are missing."""
        if isinstance(value, Styled):
            value = value.value
        if value is None or (isinstance(value, float) and math.isnan(value)):
            if self.missing is None:
                return MISSING if self.numeric else ""
            return self.missing
        return self.format(value) if callable(self.format) else format(value, self.format)


def columns(words: Sequence[str], numbers: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return columns of words, then columns of numbers, for values that are texts already."""
    return (*map(Column, words), *(number(name) for name in numbers))


def number(name: str, form: Format = "", unit: str = "") -> Column:
    """Return a column of numbers."""
    return Column(name, form, numeric=True, unit=unit)


@dataclass(frozen=True)
class Table:
    """A table of values, with a title and footnotes."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    notes: Sequence[str] = ()
    grouped: bool = False  # a terminal shows equal neighbours of the first column once

    @property
    def header(self) -> list[str]:
        """Titles of the columns, with control characters escaped."""
        return [without_controls(column.title) for column in self.columns]

    @property
    def texts(self) -> list[list[str]]:
        """Texts of all values, by row, with control characters escaped."""
        return [
            [without_controls(column.text(x)) for column, x in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table as wide as the terminal at most."""
        from svgpbench.output.terminal import fitted

        yield from fitted(self, options.max_width)
