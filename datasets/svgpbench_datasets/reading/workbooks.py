"""Reader of the first sheet of an Excel workbook: .xls by xlrd, .xlsx by openpyxl."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import reason, text_of
from svgpbench_datasets.reading.layout import Layout
from svgpbench_datasets.reading.table import Row, TableFile, check_unpacked, frames_of_rows
from svgpbench_datasets.reading.text import looks_like_data


def workbook_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read the first sheet of a workbook; empty rows, and empty cells at the end of rows, are ignored."""
    sheet = _sheet(stream.read(), where)
    rows: Iterator[Row] = islice(_filled(sheet, where), layout.skip_lines, None)
    first, names = next(rows, None), None
    if first is None:
        raise DataError(f"{where} has no rows in its first sheet")
    if layout.header or (layout.header is None and not looks_like_data(first[1])):
        names = tuple(text_of(cell) for cell in first[1])
    else:
        rows = chain([first], rows)
    width = len(names) if names else layout.width or len(first[1])
    full = ((number, [*cells, *[None] * (width - len(cells))]) for number, cells in rows)
    return TableFile(names, lambda _: frames_of_rows(full, where, "row", width))


def _filled(sheet: Iterator[Sequence[Any]], where: str) -> Iterator[Row]:
    """Yield the number, from 1, and the cells of each row that is not empty, without empty cells at its end.

    Raises `DataError` for a cell that is neither text nor a number.
    """
    for number, cells in enumerate(sheet, start=1):
        width = max((column for column, cell in enumerate(cells, 1) if text_of(cell)), default=0)
        for column, cell in enumerate(cells[:width], start=1):
            if isinstance(cell, bool) or not isinstance(cell, str | int | float | None):
                raise DataError(
                    f"{where}: row {number}, column {column} holds a date, a truth value or an error, "
                    "not a number"
                )
        if width:
            yield number, cells[:width]


def _sheet(raw: bytes, where: str) -> Iterator[Sequence[Any]]:
    """Yield the rows of the first sheet; any error becomes a one-line `DataError`."""
    try:
        if not raw.startswith(b"PK"):
            yield from _xls(raw)
            return
        import openpyxl

        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            check_unpacked(archive)
        book = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # the declared size may be wrong
        yield from sheet.iter_rows(values_only=True)
    except Exception as error:  # the parsers fail in many ways on damaged files
        raise DataError(f"{where} is not a workbook that can be read ({reason(error)})") from None


def _xls(raw: bytes) -> Iterator[Sequence[Any]]:
    import xlrd

    read: dict[int, Callable[[Any], object]] = {
        xlrd.XL_CELL_EMPTY: text_of,
        xlrd.XL_CELL_BLANK: text_of,
        xlrd.XL_CELL_TEXT: str,
        xlrd.XL_CELL_NUMBER: float,
    }
    # ragged: otherwise a cell in a far row makes xlrd fill all rows before it
    book = xlrd.open_workbook(file_contents=raw, logfile=io.StringIO(), ragged_rows=True)
    for row in book.sheet_by_index(0).get_rows():
        # any other cell becomes a truth value, which `_filled` refuses
        yield [read.get(cell.ctype, bool)(cell.value) for cell in row]
