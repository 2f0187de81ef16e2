"""Tables in a terminal: as narrow as it is, and never at the expense of a number; and a bar of progress.

Words wrap, or are cut off in a column that says so. Where the columns do not fit side by side, optional ones
are left out; if that is not enough, the table continues below, with its first columns repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from svgpbench.errors import without_controls
from svgpbench.output.table import Column, Styled, Table

GAP = 2
"""Blanks between columns."""

LONGEST_WORD = 16
"""Characters of a word that no terminal breaks."""

LEAST_CLIPPED = 24
"""Characters that are left of a text that is cut off."""


def fitted(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield the table in as many blocks of columns as the width needs, then its notes."""
    texts, columns = table.texts, table.columns
    column_texts = [[row[index] for row in texts] for index in range(len(columns))]
    least = list(map(_least_width, columns, column_texts))
    full = list(map(_full_width, columns, column_texts))
    if table.title:
        yield Text(table.title, style="bold")
    indices = list(range(len(columns)))
    if sum(least) + GAP * (len(least) - 1) > width:
        indices = [index for index in indices if not columns[index].optional]
    # every block repeats the columns before the first number, or the first one
    numeric = (position for position, index in enumerate(indices) if columns[index].numeric)
    keys = range(next(numeric, 1))
    for number, positions in enumerate(_blocks([least[x] for x in indices], keys, width)):
        block = [indices[position] for position in positions]
        if number:
            yield ""
        widths = _widths([least[x] for x in block], [full[x] for x in block], width)
        yield _rich_table(table, texts, dict(zip(block, widths, strict=True)))
    yield from (Text(without_controls(note), style="dim") for note in table.notes)


def _least_width(column: Column, texts: Sequence[str]) -> int:
    """Return the least width of a column: its longest number or word."""
    if column.clip:
        return min(LEAST_CLIPPED, _full_width(column, texts))
    words = [word for word in column.title.split() if len(word) <= LONGEST_WORD]
    for text in texts:
        words += text.split() if column.wraps else text.splitlines()
    longest = max(map(cell_len, words), default=1)
    return min(longest, LONGEST_WORD) if column.wraps else longest


def _full_width(column: Column, texts: Sequence[str]) -> int:
    """Return the width of a column in which nothing wraps."""
    # in cells of the terminal: an East Asian character takes two
    lines = [column.title, *(line for text in texts for line in text.splitlines())]
    return max(map(cell_len, lines))


def _blocks(least: Sequence[int], keys: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the columns of each block. Each block has at least one column besides the keys."""
    block = list(keys)
    for index in range(len(keys), len(least)):
        if len(block) > len(keys) and sum(least[x] + GAP for x in [*block, index]) - GAP > width:
            yield block
            block = list(keys)
        block.append(index)
    yield block


def _widths(least: Sequence[int], full: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns side by side. If they do not fit, the widest that wrap are narrowed."""
    widths = list(map(max, least, full))
    # one character at a time, so that columns of one width shrink alike
    for _ in range(sum(widths) + GAP * (len(widths) - 1) - width):
        wider = [index for index, minimum in enumerate(least) if widths[index] > minimum]
        if not wider:
            break
        widths[max(wider, key=lambda index: widths[index])] -= 1
    return widths


def _rich_table(table: Table, texts: Sequence[Sequence[str]], widths: dict[int, int]) -> RichTable:
    """Return the columns in `widths`, which maps their indices to their widths."""
    rich_table = RichTable(
        header_style="dim",
        box=None,
        padding=(0, GAP, 0, 0),
        pad_edge=False,
        show_header=any(table.header),
    )
    for index, width in widths.items():
        column = table.columns[index]
        rich_table.add_column(
            # not a str, in which rich would take brackets for markup
            Text(without_controls(column.title)),
            justify="right" if column.numeric else "left",
            vertical="top",
            width=width,
            no_wrap=column.clip,
            overflow="ellipsis" if column.clip else "fold",
            style=column.style,
        )
    previous = None
    for row, values in zip(texts, table.rows, strict=True):
        again = table.grouped and row[0] == previous
        if table.grouped and previous is not None and not again:
            rich_table.add_row()
        styles = [value.style if isinstance(value, Styled) else "" for value in values]
        cells = [Text(row[index], style=styles[index]) for index in widths]
        rich_table.add_row(*(["", *cells[1:]] if again else cells))
        previous = row[0]
    return rich_table


def progress_bar(console: Console) -> Progress:
    """Return a bar with counts, elapsed and remaining time, and a description; it vanishes at the end."""
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Progress(*columns, console=console, transient=True)
