"""Tables in a terminal: as narrow as it is, and never at the expense of a number.

Words wrap. Where the columns do not fit side by side, the table continues below, with its first columns
repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from svgpbench.output.table import Column, Styled, Table

GAP = 2
"""Blanks between columns."""

LONGEST_WORD = 16
"""Characters of a word that no terminal breaks."""


def fitted(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield the table in as many blocks of columns as the width needs, then its notes."""
    texts = table.texts
    by_column = [[row[at] for row in texts] for at in range(len(table.columns))]
    needs = [_need(*both) for both in zip(table.columns, by_column, strict=True)]
    wants = [_want(*both) for both in zip(table.columns, by_column, strict=True)]
    if table.title:
        yield Text(table.title, style="bold")
    for place, block in enumerate(_blocks(needs, _keys(table.columns), width)):
        if place:
            yield ""
        widths = _widths([needs[at] for at in block], [wants[at] for at in block], width)
        yield _drawn(table, texts, dict(zip(block, widths, strict=True)))
    yield from (Text(note, style="dim") for note in table.notes)


def _need(column: Column, texts: Sequence[str]) -> int:
    """Return the least width of a column: its longest number or word."""
    words = [word for word in column.title.split() if len(word) <= LONGEST_WORD]
    for text in texts:
        words += text.split() if column.wraps else text.splitlines()
    longest = max(map(cell_len, words), default=1)
    return min(longest, LONGEST_WORD) if column.wraps else longest


def _want(column: Column, texts: Sequence[str]) -> int:
    """Return the width of a column in which nothing wraps."""
    lines = [column.title, *(line for text in texts for line in text.splitlines())]
    return max(map(cell_len, lines))


def _keys(columns: Sequence[Column]) -> list[int]:
    """Return the columns that every block repeats: those before the first number, or the first one."""
    first = next((at for at, column in enumerate(columns) if column.numeric), 1)
    return list(range(first))


def _blocks(needs: Sequence[int], keys: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the columns of each block; a block has one column besides the keys at least."""
    block = list(keys)
    for at in range(len(keys), len(needs)):
        if len(block) > len(keys) and sum(needs[x] + GAP for x in [*block, at]) - GAP > width:
            yield block
            block = list(keys)
        block.append(at)
    yield block


def _widths(needs: Sequence[int], wants: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns side by side; what is missing is taken from the widest that wrap."""
    widths = [max(both) for both in zip(needs, wants, strict=True)]
    for _ in range(sum(widths) + GAP * (len(widths) - 1) - width):
        wider = [at for at, need in enumerate(needs) if widths[at] > need]
        if not wider:
            break
        widths[max(wider, key=lambda at: widths[at])] -= 1
    return widths


def _drawn(table: Table, texts: Sequence[Sequence[str]], widths: dict[int, int]) -> RichTable:
    drawn = RichTable(
        header_style="dim",
        box=None,
        padding=(0, GAP, 0, 0),
        pad_edge=False,
        show_header=any(table.header),
    )
    for at, width in widths.items():
        column = table.columns[at]
        drawn.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            vertical="top",
            width=width,
            overflow="fold",
            style=column.style,
        )
    previous = None
    for row, values in zip(texts, table.rows, strict=True):
        again = table.grouped and row[0] == previous
        if table.grouped and previous is not None and not again:
            drawn.add_row()
        cells = [_cell(row[at], values[at]) for at in widths]
        drawn.add_row(*(["", *cells[1:]] if again else cells))
        previous = row[0]
    return drawn


def _cell(text: str, value: object) -> Text:
    return Text(text, style=value.style if isinstance(value, Styled) else "")
