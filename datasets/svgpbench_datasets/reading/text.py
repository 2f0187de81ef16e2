"""Readers of separated text and ARFF.

Blocks of plain numbers are parsed by pandas. From the first block with other cells on, they are parsed
row by row.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import IO, Any

import numpy as np
import pandas as pd

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import finite_number, is_missing, quoted
from svgpbench_datasets.reading.layout import Layout
from svgpbench_datasets.reading.table import Row, TableFile, frames_of_rows

SEPARATORS = {"whitespace": None, "csv": ",", "semicolon": ";", "tab": "\t"}
"""Separator of cells by reader; None for runs of spaces and tabs."""
BYTES_AT_ONCE = 1 << 21
_NUMBER_BYTES = b"0123456789+-.eE \t\r\n"
_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']+)'|"([^"]+)"|([^\s'"{}%,]+))[\s{].*""", re.I)


class TextLines:
    """Iterator over the lines of UTF-8 bytes, without byte order mark and comment lines.

    `number` is the number of the last line read, from 1.
    """

    def __init__(
        self, lines: Iterable[bytes], where: str, number: int = 0, comment: str | None = None
    ) -> None:
        self._lines, self._where = iter(lines), where
        self.number, self._comment = number, comment

    def __iter__(self) -> TextLines:
        return self

    def __next__(self) -> str:
        for raw in self._lines:
            self.number += 1
            try:
                text = raw.decode("utf-8-sig" if self.number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{self._where}: line {self.number}, byte {error.start + 1} is not UTF-8 text; "
                    "save the file as UTF-8"
                ) from None
            if self._comment is None or not text.lstrip().startswith(self._comment):
                return text
        raise StopIteration


def text_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read separated text."""
    for _ in range(layout.skip_lines):
        stream.readline()
    separator, names = SEPARATORS[layout.reader], None
    lines = TextLines(stream, where, layout.skip_lines)
    if layout.header:
        first = next(text_rows(lines, where, separator), None)
        if first is None:
            raise DataError(f"{where} is empty where a header line is expected")
        names = tuple(str(cell).strip() for cell in first[1])
    width = len(names) if names else layout.width
    return _table(names, _Body(stream, lines.number, where, separator, width), layout)


def arff_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read Weka's ARFF: a header that names the columns, then rows of comma-separated text."""
    names: list[str] = []
    lines = TextLines(stream, where, comment="%")
    for line in lines:
        text = line.strip()
        word = text.split(maxsplit=1)[0].lower() if text else ""
        if match := _ATTRIBUTE.fullmatch(text):
            names.append(match[1] or match[2] or match[3])
        elif word == "@data" and names:
            body = _Body(stream, lines.number, where, ",", len(names), arff=True)
            return _table(tuple(names), body, layout)
        elif word not in ("", "@relation"):
            raise DataError(
                f"{where}: line {lines.number} holds {quoted(text)} where an @attribute or, after "
                "the last one, @data is expected"
            )
    raise DataError(f"{where} has no @data line, so it is not a whole ARFF file")


def detect_layout(stream: IO[bytes], where: str) -> Layout:
    """Detect the layout of a text from its first line that is not blank.

    The separator is the first of tab, semicolon and comma that occurs outside quotes, else blanks. The
    line is a header unless `looks_like_data`.

    Raises:
        DataError: all lines are blank.
    """
    lines = TextLines(stream, where)
    line = next((line for line in lines if line.strip()), None)
    if line is None:
        raise DataError(f"{where} holds only blank lines; give a header line and data rows")
    unquoted = re.sub(r'"[^"]*"', '""', line)
    marks = ((name, SEPARATORS[name] or "") for name in ("tab", "semicolon", "csv"))
    reader = next((name for name, mark in marks if mark in unquoted), "whitespace")
    cells = [cell.strip().strip('"') for cell in line.strip().split(SEPARATORS[reader])]
    return Layout(reader, lines.number - 1, header=not looks_like_data(cells))


def looks_like_data(cells: Iterable[object]) -> bool:
    """Return True if a first row has a number, and all other cells are numbers or marks such as `nan`."""
    texts = [str(cell) for cell in cells]
    numbers = [finite_number(text) is not None for text in texts]
    return any(numbers) and all(
        number or (text and is_missing(text)) for number, text in zip(numbers, texts, strict=True)
    )


def text_rows(lines: TextLines, where: str, separator: str | None) -> Iterator[Row]:
    """Yield the line number and the cells of each record; blank lines are skipped.

    A quoted cell may span lines; the number is that of the first.
    """
    if separator is None:
        for line in lines:
            if cells := line.split():
                yield lines.number, cells
        return
    reader = csv.reader(lines, strict=True, delimiter=separator)
    while True:
        before = reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error).split(" - ")[0]  # the rest of the message is for programmers
            first = lines.number - (reader.line_num - before) + 1
            raise DataError(
                f"{where}: line {first} is not well-formed CSV ({reason}); "
                "check its quotes and line ends"
            ) from None
        if len(cells) > 1 or any(cell.strip() for cell in cells):
            yield lines.number - (reader.line_num - before) + 1, cells


def plain_numbers(raw: bytes, separator: str | None) -> Floats | None:
    """Parse a table of finite decimal numbers [n, C] in compiled code.

    Returns None if cells have to be parsed one by one: for any other character, ragged rows, or a number
    too large. Otherwise the numbers equal those parsed one by one.
    """
    if raw.translate(None, _NUMBER_BYTES + (separator or "").encode()) or not raw.strip():
        return None
    if raw.count(b"\r") != raw.count(b"\r\n"):
        return None  # readers disagree on whether a lone carriage return ends a line
    try:
        with warnings.catch_warnings(action="ignore"):  # round_trip: all that pandas 3 has
            numbers = pd.read_csv(
                io.BytesIO(raw),
                sep=r"\s+" if separator is None else separator,
                header=None,
                dtype=np.float64,
                engine="c",
                float_precision="round_trip",
                na_filter=False,
                quoting=csv.QUOTE_NONE,
            ).to_numpy()
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _table(names: tuple[str, ...] | None, body: _Body, layout: Layout) -> TableFile:
    return TableFile(names, lambda _: body.row_by_row() if layout.words else body.block_by_block())


@dataclass(frozen=True)
class _Body:
    """Rows of a text below its header."""

    stream: IO[bytes]
    line: int  # number of the last line of the header
    where: str
    separator: str | None
    width: int | None  # number of columns; None for that of the first row
    arff: bool = False  # True if `%` begins a comment and `{` a sparse row

    def block_by_block(self) -> Iterator[pd.DataFrame]:
        """Yield frames of float64 as long as blocks are plain numbers, then those of `row_by_row`."""
        line, width = self.line, self.width
        while text := self.stream.read(BYTES_AT_ONCE) + self.stream.readline():
            numbers = plain_numbers(text, self.separator)
            if numbers is None or numbers.shape[1] != (width or numbers.shape[1]):
                remaining = chain(io.BytesIO(text), self.stream)
                yield from replace(self, line=line, width=width).row_by_row(remaining)
                return
            lines, width = text.splitlines(), numbers.shape[1]
            index: Any = pd.RangeIndex(line + 1, line + 1 + len(lines))
            if len(lines) > len(numbers):
                index = index[[bool(text_line.strip()) for text_line in lines]]
            yield pd.DataFrame(numbers, index=index.rename("line"))
            line += len(lines)

    def row_by_row(self, lines: Iterable[bytes] | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of cells as text, from `lines` or else from the stream."""
        comment = "%" if self.arff else None
        counted = TextLines(lines or self.stream, self.where, self.line, comment)
        rows = text_rows(counted, self.where, self.separator)
        if self.arff:
            rows = _dense(rows, self.where)
        return frames_of_rows(rows, self.where, "line", self.width)


def _dense(rows: Iterable[Row], where: str) -> Iterator[Row]:
    """Yield the rows; raise `DataError` for a sparse one."""
    for line, cells in rows:
        if str(cells[0]).lstrip().startswith("{"):
            raise DataError(f"{where}: line {line} is a sparse row, which is not read")
        yield line, cells
