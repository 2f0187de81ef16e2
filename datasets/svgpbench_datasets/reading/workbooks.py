"""Reader of the first sheet of an Excel workbook: .xls by xlrd, .xlsx by openpyxl."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

import pandas as pd

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import reason, text_of
from svgpbench_datasets.reading.table import Layout, Row, TableFile, check_unpacked, frames_of_rows
from svgpbench_datasets.reading.text import SAMPLE, is_header

FORMULA = object()
"""Value of a cell whose formula no program has computed."""


def workbook_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read the first sheet of a workbook; empty rows, and empty cells at the end of rows, are ignored."""
    sheet = _sheet(stream.read(), where)
    rows: Iterator[Row] = islice(_filled(sheet, where), layout.skip_lines, None)
    sample, names = list(islice(rows, SAMPLE)), None
    if not sample:
        raise DataError(f"{where} has no rows in its first sheet")
    first = sample[0][1]
    if is_header([cells for _, cells in sample]) if layout.header is None else layout.header:
        names = tuple(text_of(cell) for cell in first)
        del sample[0]
    width = len(names) if names else layout.width or len(first)
    full = (
        (number, [*cells, *[None] * (width - len(cells))]) for number, cells in chain(sample, rows)
    )

    def frames(
        indices: Collection[int] | None, spelled: Collection[int] = ()
    ) -> Iterator[pd.DataFrame]:
        return frames_of_rows(full, where, "row", width)

    return TableFile(names, frames)


def _filled(sheet: Iterator[Sequence[Any]], where: str) -> Iterator[Row]:
    """Yield the number, from 1, and the cells of each row that is not empty, without empty cells at its end.

    Raises `DataError` for a cell that is neither text nor a number.
    """
    for number, cells in enumerate(sheet, start=1):
        filled = (column for column, cell in enumerate(cells, 1) if text_of(cell))
        width = max(filled, default=0)
        for column, cell in enumerate(cells[:width], start=1):
            if cell is FORMULA:
                raise DataError(
                    f"{where}: row {number}, column {column} holds a formula without a stored "
                    "result; open the file in Excel or LibreOffice and save it"
                )
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
            sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
            formulas = any(b"<f" in archive.read(name) for name in sheets)

        def rows(*, results: bool) -> Iterator[Sequence[Any]]:
            book = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=results)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # the declared size may be wrong
            return iter(sheet.iter_rows(values_only=True))

        if not formulas:
            yield from rows(results=True)
            return
        # openpyxl gives None for an uncomputed formula and for an empty cell:
        # only a second reading tells them apart
        for cells, written in zip(rows(results=True), rows(results=False), strict=True):
            pairs = zip(cells, written, strict=True)
            yield [FORMULA if a is None and b is not None else a for a, b in pairs]
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
