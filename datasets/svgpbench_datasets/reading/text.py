"""Readers of separated text and ARFF.

Blocks of plain numbers are parsed by pandas. From the first block with other cells on, they are parsed
row by row.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import IO, Any

import numpy as np
import pandas as pd

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import EXACT, is_missing, is_numeral, quoted, text_of
from svgpbench_datasets.reading.table import Layout, Row, TableFile, frames_of_rows

SEPARATORS = {"whitespace": None, "csv": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Separator of cells by reader; None for runs of spaces and tabs."""
BYTES_AT_ONCE = 1 << 21
_NUMBER_BYTES = b"0123456789+-.eE \t\r\n"
COMMENTS = ("#", "%")
"""Marks of comment lines above the rows of a text."""
_SAID_TO_EXCEL = re.compile(r'"?sep=.?"?', re.I)
"""Line above the header that tells Excel the separator."""
SAMPLE = 1000
"""Number of rows among which a word of the first row is looked for."""
_QUOTED = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\""""
_ATTRIBUTE = re.compile(rf"""@attribute\s+({_QUOTED}|[^\s'"{{}}%,]+)[\s{{].*""", re.I)
_ARFF_CELL = re.compile(rf"(?:\s*({_QUOTED})\s*|([^,]*?))(?:(,)|(?:(?<!\S)%.*)?$)")
_ESCAPE = re.compile(r"\\(.)|''|\"\"")


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
    separator, names = SEPARATORS[layout.reader], layout.names
    lines = TextLines(stream, where, layout.skip_lines)
    if layout.header:
        first = next(text_rows(lines, where, separator), None)
        if first is None:
            raise DataError(f"{where} is empty where a header line is expected")
        names = tuple(str(cell).strip() for cell in first[1])
    width = len(names) if names else layout.width
    return _table(names, _Body(stream, lines.number, where, separator, width), layout)


def arff_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read Weka's ARFF: a header that names the columns, then rows of comma-separated text.

    Quotes around a name or a value, `'` or `"`, are no part of it; a backslash escapes a character.
    """
    # not by scipy.io.arff (1.17.1): it drops surplus cells of a row, reads 2**53 + 1 as 2**53 and `1_0`
    # as 10, has no columns of text, and names no line in an error
    names: list[str] = []
    lines = TextLines(stream, where, comment="%")
    for line in lines:
        text = line.strip()
        word = text.split(maxsplit=1)[0].lower() if text else ""
        if match := _ATTRIBUTE.fullmatch(text):
            names.append(_unquoted(match[1]))
        elif word == "@data" and names:
            body = _Body(stream, lines.number, where, ",", len(names), arff=True)
            return _table(tuple(names), body, layout)
        elif word not in ("", "@relation"):
            raise DataError(
                f"{where}: line {lines.number} holds {quoted(text)} where an @attribute or, after "
                "the last one, @data is expected"
            )
    raise DataError(f"{where} has no @data line, so it is not a whole ARFF file")


def detect_layout(stream: IO[bytes], where: str, header: bool | None = None) -> Layout:
    """Detect the layout of a text from its first lines; those that are blank or comments are skipped.

    The separator is the first of tab, semicolon, comma and | that occurs outside quotes in the first row,
    else blanks. With `header` None, the first row is a header if `is_header`. A comment above rows of
    numbers names the columns if it has as many words.

    Raises:
        DataError: all lines are blank or comments.
    """
    read: list[bytes] = []
    source = iter(stream)

    def recorded() -> Iterator[bytes]:
        for raw in source:
            # the line that ends the search is read again, those above it are not
            read[:] = [raw]
            yield raw

    lines, comments = TextLines(recorded(), where), [""]
    for line in lines:
        if _SAID_TO_EXCEL.fullmatch(line.strip()):
            continue
        if line.lstrip().startswith(COMMENTS):
            comments.append(line.lstrip("".join(COMMENTS) + " \t"))
        elif line.strip():
            break
    else:
        what = "comments and blank lines" if comments[1:] else "blank lines"
        raise DataError(f"{where} holds only {what}; give a header line and data rows")
    if "\r" in line.rstrip("\r\n") and "\n" not in line:
        why = "ends its lines with carriage returns alone; save it with line feeds"
        raise DataError(f"{where} {why}")
    unquoted = re.sub(r'"[^"]*"', '""', line)
    marks = ((name, SEPARATORS[name] or "") for name in ("tab", "semicolon", "csv", "pipe"))
    reader = next((name for name, mark in marks if mark in unquoted), "whitespace")
    skipped = lines.number - 1
    again = TextLines(chain(read, source), where, skipped)
    sample = [row for _, row in islice(text_rows(again, where, SEPARATORS[reader]), SAMPLE)]
    names = tuple(_names_in(comments[-1], SEPARATORS[reader]))
    if header is None and len(names) == len(sample[0]) > 1 and any(map(is_number, sample[0])):
        return Layout(reader, skipped, header=False, names=names)
    return Layout(reader, skipped, header=is_header(sample) if header is None else header)


def is_header(rows: Sequence[Sequence[object]]) -> bool:
    """Return True if the first of some rows has the names of columns.

    It has data if it `looks_like_data`, or if it has a number beside a word that occurs again in the word's
    column, such as a class.
    """
    first = rows[0]
    if looks_like_data(first) or not any(map(is_number, first)):
        return not looks_like_data(first)
    return not any(
        text_of(cell) and not is_number(cell) and any(cell in row[at : at + 1] for row in rows[1:])
        for at, cell in enumerate(first)
    )


def is_number(cell: object) -> bool:
    """Return True if a cell is a number in plain decimal notation."""
    return is_numeral(text_of(cell))


def looks_like_data(cells: Iterable[object]) -> bool:
    """Return True if a first row has a number, and all other cells are numbers or marks such as `nan`."""
    texts = [text_of(cell) for cell in cells]
    numbers = [is_numeral(text) for text in texts]
    return any(numbers) and all(
        number or (text and is_missing(text)) for number, text in zip(numbers, texts, strict=True)
    )


def _names_in(comment: str, separator: str | None) -> Iterator[str]:
    """Yield the names of columns in a comment; if blanks separate the rows, commas may separate the names."""
    for row in csv.reader([comment.strip()], delimiter=separator or ",", skipinitialspace=True):
        cells = row if separator or len(row) > 1 else _words(comment)
        yield from (cell.strip() for cell in cells)


def _words(line: str) -> list[str]:
    """Return the cells of a line that are separated by blanks; a cell in double quotes may hold blanks."""
    if '"' not in line:
        return line.split()
    return [word or other for word, other in re.findall(r'"([^"]*)"(?!\S)|(\S+)', line)]


def text_rows(lines: TextLines, where: str, separator: str | None) -> Iterator[Row]:
    """Yield the line number and the cells of each record; blank lines are skipped.

    A quoted cell may span lines; the number is that of the first.
    """
    if separator is None:
        for line in lines:
            if cells := _words(line):
                yield lines.number, cells
        return
    # strict: otherwise text behind a closing quote is taken into the cell without an error
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
    from 2**53 on. Otherwise the numbers equal those parsed one by one.
    """
    if raw.translate(None, _NUMBER_BYTES + (separator or "").encode()) or not raw.strip():
        return None
    if raw.count(b"\r") != raw.count(b"\r\n"):
        return None  # readers disagree on whether a lone carriage return ends a line
    try:
        numbers = _parsed(raw, separator, np.float64).to_numpy()
    except ValueError:
        return None
    # NaN and infinity too; larger ones are looked at digit by digit
    return numbers if (np.abs(numbers) < EXACT).all() else None


def _table(names: tuple[str, ...] | None, body: _Body, layout: Layout) -> TableFile:
    def frames(
        indices: Collection[int] | None, spelled: Collection[int] = ()
    ) -> Iterator[pd.DataFrame]:
        return body.row_by_row() if layout.words else body.block_by_block(spelled)

    return TableFile(names, frames, separator=body.separator)


@dataclass(frozen=True)
class _Body:
    """Rows of a text below its header."""

    stream: IO[bytes]
    line: int  # number of the last line of the header
    where: str
    separator: str | None
    width: int | None  # number of columns; None for that of the first row
    arff: bool = False  # True if `%` begins a comment and `{` a sparse row

    def block_by_block(self, spelled: Collection[int]) -> Iterator[pd.DataFrame]:
        """Yield frames of float64 as long as blocks are plain numbers, then those of `row_by_row`.

        The columns `spelled` are text.
        """
        line, width = self.line, self.width
        # up to the end of a line, so that no number is cut in two
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
            frame = pd.DataFrame(numbers, index=index.rename("line"))
            # without a header, the caller names a column before it knows how many there are
            for column in (x for x in spelled if x < width):
                cells = _parsed(text, self.separator, str, usecols=[column])
                frame[column] = np.array([cell.strip() for cell in cells[column]], dtype=object)
            yield frame
            line += len(lines)

    def row_by_row(self, lines: Iterable[bytes] | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of cells as text, from `lines` or else from the stream."""
        comment = "%" if self.arff else None
        counted = TextLines(lines or self.stream, self.where, self.line, comment)
        rows = (
            _arff_rows(counted, self.where)
            if self.arff
            else text_rows(counted, self.where, self.separator)
        )
        return frames_of_rows(rows, self.where, "line", self.width)


def _arff_rows(lines: TextLines, where: str) -> Iterator[Row]:
    """Yield the line number and the cells of each dense row; raise `DataError` for a sparse one."""
    for line in lines:
        text = line.rstrip("\r\n")
        if text.lstrip().startswith("{"):
            raise DataError(
                f"{where}: line {lines.number} is a sparse row, which is not read; save the file with "
                "dense rows"
            )
        cells: list[str] = []
        start, ended = 0, not text.strip()
        while not ended:
            match = _ARFF_CELL.match(text, start)
            if match is None or (match[2] or "").lstrip().startswith(("'", '"')):
                raise DataError(
                    f"{where}: line {lines.number} is not well-formed CSV (a quote is not closed, or "
                    "text follows it); check its quotes"
                )
            cells.append(match[2] if match[1] is None else _unquoted(match[1]))
            start, ended = match.end(), match[3] is None
        if cells:
            yield lines.number, cells


def _unquoted(text: str) -> str:
    """Return a name or value of an ARFF file without its quotes and escapes."""
    if text[0] not in "'\"":
        return text
    plain = {"n": "\n", "t": "\t", "r": "\r"}
    return _ESCAPE.sub(lambda m: plain.get(m[1], m[1]) if m[1] else m[0][0], text[1:-1])


def _parsed(raw: bytes, separator: str | None, dtype: Any, **options: Any) -> pd.DataFrame:
    """Parse separated text without quotes in compiled code; raises `ValueError` for ragged rows."""
    with warnings.catch_warnings(action="ignore"):  # round_trip: all that pandas 3 has
        table: pd.DataFrame = pd.read_csv(
            io.BytesIO(raw),
            sep=r"\s+" if separator is None else separator,
            header=None,
            dtype=dtype,
            engine="c",
            # before pandas 3.1 the default can be off in the last digit, and so a fingerprint
            float_precision="round_trip",
            # an empty cell has to fail here, so that it is named later, and not become NaN
            na_filter=False,
            quoting=csv.QUOTE_NONE,
            **options,
        )
    return table
