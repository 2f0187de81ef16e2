"""Conversion of text, rich and Markdown tables to rows of texts for a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rich.table import Table as RichTable

from svgpbench.output.table_formats import TextTable

RULE = re.compile(r"\|( ?-+:? ?\|)+")


class Grid(NamedTuple):
    """Rows of texts with a header; `numeric` marks the columns of numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    title: str = ""


def of_text(table: TextTable, title: str = "") -> Grid:
    """Convert a `TextTable`; its first `words` columns are not numeric."""
    numeric = tuple(at >= table.words for at in range(len(table.header)))
    return Grid(tuple(table.header), tuple(map(tuple, table.rows)), numeric, title)


def of_rich(table: RichTable) -> Grid:
    """Convert a rich table. Right-justified columns are numeric; if there are none, all but the first."""
    right = tuple(column.justify == "right" for column in table.columns)
    numeric = right if any(right) else tuple(at > 0 for at in range(len(right)))
    columns = [tuple(map(str, column.cells)) for column in table.columns]
    header = tuple(" ".join(str(column.header).split()) for column in table.columns)
    return Grid(header, tuple(zip(*columns, strict=True)), numeric, str(table.title or ""))


def of_markdown(text: str) -> tuple[tuple[Grid, ...], tuple[str, ...]]:
    """Return the pipe tables of a Markdown text, as svgpbench writes them, and its other lines."""
    grids: list[Grid] = []
    others: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.splitlines()
        if len(lines) > 1 and RULE.fullmatch(lines[1].strip()):
            grids.append(_grid(lines))
        else:
            others += [line.removeprefix("- ") for line in lines]
    return tuple(grids), tuple(others)


def _grid(lines: list[str]) -> Grid:
    header, rule, *rows = (tuple(_cells(line)) for line in lines)
    return Grid(header, tuple(rows), tuple(cell.endswith(":") for cell in rule))


def _cells(line: str) -> Iterator[str]:
    for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1]):
        yield cell.strip().replace(r"\|", "|")
