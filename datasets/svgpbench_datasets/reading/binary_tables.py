"""Formats that are not text: idx (MNIST), MATLAB's .mat, and .xls workbooks."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import Row, shown
from svgpbench_datasets.reading.mat5 import is_numeric, variables

_UNSIGNED_BYTE = 0x08
_MAT_5 = b"MATLAB 5.0 MAT-file"


def idx_table(raw: bytes, where: str) -> NDArray[np.uint8]:
    """Read an idx file of unsigned bytes: the first axis are the rows, the others are flattened.

    Returns:
        the bytes, [n, C].

    Raises:
        DataError: another magic number, or a length that is not that of the declared shape.
    """
    if len(raw) < 4 or raw[:2] != b"\0\0":
        raise DataError(f"{where} does not start as an idx file does")
    kind, axes = raw[2], raw[3]
    if kind != _UNSIGNED_BYTE or not 1 <= axes <= 4:
        raise DataError(f"{where} is an idx file of kind {kind} with {axes} axes; bytes are read")
    if len(raw) < 4 + 4 * axes:
        raise DataError(f"{where} ends inside its header")
    shape = struct.unpack(f">{axes}I", raw[4 : 4 + 4 * axes])
    if not all(shape):
        raise DataError(f"{where} announces no values: its shape is {shape}")
    expected = 4 + 4 * axes + prod(shape)
    if len(raw) != expected:
        raise DataError(f"{where} has {len(raw)} bytes where its header announces {expected}")
    values = np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * axes)
    return values.reshape(shape[0], prod(shape[1:]))


def mat_table(raw: bytes, where: str, variable: str | None) -> Floats:
    """Read one real matrix of a MATLAB 5 file; nothing else in it is looked at.

    Args:
        raw: the file.
        where: the file, for messages.
        variable: its name; None for the only one there is.

    Returns:
        the matrix, [n, C] float64.

    Raises:
        DataError: a file that is not MATLAB 5, a variable that is not there or not a full real
            numeric matrix, a number that is not finite, with its row and column.
    """
    if not raw.startswith(_MAT_5):
        raise DataError(f"{where} is not a MATLAB 5 file")
    try:
        listed = {one.name: one for one in variables(raw)}
        name = variable if variable is not None else next(iter(listed), "")
        if name not in listed:
            found = ", ".join(shown(one) for one in listed) or "nothing"
            raise DataError(f"no variable {name!r} (it holds {found})")
        chosen = listed[name]
        if not is_numeric(chosen.kind):
            raise DataError(f"variable {name!r} is a {chosen.kind}, not a number matrix")
        if not chosen.real or len(chosen.shape) != 2:
            raise DataError(f"variable {name!r} is not a real matrix")
        numbers = chosen.matrix()
    except DataError as error:
        raise DataError(f"{where} is a MATLAB file that cannot be read: {error}") from None
    if not np.isfinite(numbers).all():
        row, column = np.argwhere(~np.isfinite(numbers))[0] + 1
        raise DataError(f"{where}: row {row}, column {column} of {name!r} is not finite")
    return numbers


def xls_rows(raw: bytes, where: str) -> Iterator[Row]:
    """Read the first sheet of an .xls workbook: its rows, numbers spelled in full.

    Raises:
        DataError: a file that is not such a workbook; a cell that is a date, a truth value or an
            error, with its row and column.
    """
    import xlrd

    try:
        # ragged: a cell in a far row, true or damaged, must not fill all rows before it
        book = xlrd.open_workbook(file_contents=raw, logfile=io.StringIO(), ragged_rows=True)
        sheet = book.sheet_by_index(0)
        width = sheet.ncols
        table = [
            (at + 1, [(cell.ctype, cell.value) for cell in sheet.row(at)])
            for at in range(sheet.nrows)
            if sheet.row_len(at)
        ]
    except Exception as error:  # the parser fails in as many ways as a file can be damaged
        raise DataError(
            f"{where} is not an .xls workbook that can be read ({_reason(error)})"
        ) from None
    for row, cells in table:
        texts = [
            _cell(*cell, f"{where}: line {row}, column {at}") for at, cell in enumerate(cells, 1)
        ]
        if any(texts):
            yield row, texts + [""] * (width - len(texts))


def _cell(kind: int, value: Any, place: str) -> str:
    import xlrd

    if kind == xlrd.XL_CELL_NUMBER:
        return repr(float(value))
    if kind in (xlrd.XL_CELL_TEXT, xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK):
        return str(value)
    raise DataError(f"{place} holds a date, a truth value or an error, not a number")


def _reason(error: Exception) -> str:
    return shown((str(error) or type(error).__name__).split("\n", maxsplit=1)[0], width=80)
