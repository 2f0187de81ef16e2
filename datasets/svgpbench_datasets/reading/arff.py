"""Weka's ARFF: a header that names the columns, then comma-separated rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import Row, csv_rows, shown

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'(?P<single>[^']+)'|"(?P<double>[^"]+)"|(?P<bare>[^\s'"{}%,]+))"""
    r"""\s*(?P<kind>\{[^{}]*\}|[a-z]+)\s*(?:%.*)?""",
    re.IGNORECASE,
)
_NUMERIC = frozenset({"real", "numeric", "integer"})


def arff_rows(lines: Iterable[str], where: str) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Read the header of an ARFF file and split its rows.

    Dense rows of numeric and nominal columns only: sparse rows, dates, text and relational columns
    are refused.

    Args:
        lines: the lines of the file.
        where: the file, for messages.

    Returns:
        the names of the columns, and the rows with their line numbers.

    Raises:
        DataError: a header that is not ARFF, with its line.
    """
    names: list[str] = []
    source = enumerate(lines, start=1)
    for number, line in source:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        word = text.split(maxsplit=1)[0].lower()
        if word == "@data":
            if not names:
                raise DataError(f"{where}: line {number}, @data before any @attribute")
            return tuple(names), _data_rows(source, number, where)
        if word == "@attribute":
            names.append(_attribute(text, f"{where}: line {number}"))
        elif word != "@relation":
            raise DataError(
                f"{where}: line {number} holds {shown(text)} where the ARFF header is expected"
            )
    raise DataError(f"{where} has no @data line, so it is not a whole ARFF file")


def _attribute(text: str, place: str) -> str:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise DataError(f"{place} holds {shown(text)}, not an ARFF attribute")
    kind = match["kind"].lower()
    if not kind.startswith("{") and kind not in _NUMERIC:
        raise DataError(f"{place}: attributes of kind {shown(kind)} are not read; use numeric ones")
    return match["single"] or match["double"] or match["bare"]


def _data_rows(source: Iterator[tuple[int, str]], first: int, where: str) -> Iterator[Row]:
    def plain() -> Iterator[str]:
        for number, line in source:
            text = line.lstrip()
            if text.startswith("{"):
                raise DataError(f"{where}: line {number} is a sparse row, which is not read")
            yield "\n" if text.startswith("%") else line  # keeps the count of lines

    return csv_rows(plain(), where, before=first)
