"""Small workbooks: .xlsx by openpyxl; .xls, one sheet in a compound document, written byte by byte."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence

import openpyxl

_SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_STREAM_SECTORS = 8  # a shorter stream would stand in sectors of another size


def xlsx(rows: Sequence[Sequence[object]]) -> bytes:
    """A workbook of one sheet with these cells."""
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(file)
    return file.getvalue()


def workbook(rows: Sequence[Sequence[float | str]]) -> bytes:
    """A workbook of one sheet named t with these cells."""
    globals_ = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0))
    sheet_at = len(globals_) + 4 + 6 + 2 + 1 + 4
    globals_ += _record(0x85, struct.pack("<IHBB", sheet_at, 0, 1, 0) + b"t") + _record(0x0A, b"")
    cells = b"".join(
        _cell(at, column, value) for at, row in enumerate(rows) for column, value in enumerate(row)
    )
    sheet = _record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0)) + cells
    return _compound(globals_ + sheet + _record(0x0A, b""))


def _cell(row: int, column: int, value: float | str) -> bytes:
    place = struct.pack("<HHH", row, column, 0)
    if isinstance(value, str):
        text = struct.pack("<HB", len(value), 0) + value.encode("latin-1")
        return _record(0x204, place + text)
    return _record(0x203, place + struct.pack("<d", value))


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _compound(stream: bytes) -> bytes:
    """A compound document: header, sector table, directory, the stream `Workbook`."""
    size = _STREAM_SECTORS * _SECTOR
    assert len(stream) <= size
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, _END, 0, _END, 0)
    header += struct.pack("<I", 0) + struct.pack("<I", _FREE) * 108
    chain = [_FAT, _END, *range(3, 2 + _STREAM_SECTORS), _END]
    table = struct.pack("<128I", *chain, *[_FREE] * (128 - len(chain)))
    directory = _entry("Root Entry", 5, child=1, start=_END, size=0)
    directory += _entry("Workbook", 2, child=_FREE, start=2, size=size)
    return header + table + directory.ljust(_SECTOR, b"\0") + stream.ljust(size, b"\0")


def _entry(name: str, kind: int, *, child: int, start: int, size: int) -> bytes:
    text = (name + "\0").encode("utf-16-le")
    head = text.ljust(64, b"\0") + struct.pack("<HBB", len(text), kind, 1)
    return head + struct.pack("<III36xIII", _FREE, _FREE, child, start, size, 0)
