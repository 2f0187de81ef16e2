"""Reader of full real numeric arrays in MATLAB 5 files.

It follows the format's description (MathWorks, MAT-File Format, "Level 5 MAT-File Format") in pure
Python, because `scipy.io.loadmat` can crash on a damaged file (scipy 1.17.1: a segmentation fault where
one byte is changed that tells the type of an array's values).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import EXACT, quoted

_HEADER = 128
_MATRIX, _COMPRESSED, _INT32, _UINT32 = 14, 15, 5, 6
_KINDS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
_CLASSES = (
    "unknown", "cell", "struct", "object", "char", "sparse", "double", "single", "int8", "uint8",
    "int16", "uint16", "int32", "uint32", "int64", "uint64", "function", "opaque",
)  # fmt: skip
_NUMERIC = frozenset(_CLASSES[6:16])
_COMPLEX = 0x0800


def mat_arrays(raw: bytes, names: Collection[str]) -> dict[str, NDArray[Any] | str]:
    """Return the variables of a file by name: numeric arrays, any other as a description.

    Arrays are float64, or integers where float64 may not hold one.

    `names` are the arrays to read; empty for all. Other arrays are only described.
    """
    order = {b"IM": "<", b"MI": ">"}.get(raw[_HEADER - 2 : _HEADER])
    if not raw.startswith(b"MATLAB 5.0 MAT-file") or order is None:
        raise DataError("it is not of version 5; save it with -v7, or as numbers in a .csv")
    variables: dict[str, NDArray[Any] | str] = {}
    tail = memoryview(raw)[_HEADER:]
    while len(tail):
        code, content, tail = _element(tail, order)
        if code == _COMPRESSED:
            code, content, _ = _element(_inflated(content, order), order)
        if code != _MATRIX:
            raise DataError(f"an element of type {code} where a variable is expected")
        name, value = _variable(content, order, names)
        variables[name] = value
    return variables


def _variable(
    content: memoryview, order: str, names: Collection[str]
) -> tuple[str, NDArray[Any] | str]:
    """Return the name of a variable and its array, or a description if it is not read."""
    code, flags, tail = _element(content, order)
    if code != _UINT32 or len(flags) != 8:
        raise DataError("a variable without flags")
    word = struct.unpack(f"{order}I", flags[:4])[0]
    number = word & 0xFF
    kind = _CLASSES[number] if number < len(_CLASSES) else "unknown"
    if kind in ("opaque", "unknown"):  # the layout of what follows is not documented
        return "", f"a variable of class {kind}"
    code, dimensions, tail = _element(tail, order)
    if code != _INT32 or len(dimensions) % 4 or len(dimensions) < 8:
        raise DataError("a variable without dimensions")
    shape = struct.unpack(f"{order}{len(dimensions) // 4}i", dimensions)
    if min(shape) < 0:
        raise DataError(f"a variable of the shape {shape}")
    _, characters, tail = _element(tail, order)
    name = bytes(characters).decode("latin-1")
    if kind not in _NUMERIC or word & _COMPLEX:
        return name, "complex" if kind in _NUMERIC else f"a {kind}"
    if names and name not in names:
        return name, f"{list(shape)} {kind}"
    code, values, _ = _element(tail, order)
    if code not in _KINDS:
        raise DataError(f"values of the unknown type {code}")
    dtype = np.dtype(order + _KINDS[code])
    if len(values) != prod(shape) * dtype.itemsize:
        raise DataError(f"{len(values)} bytes of {dtype} for the shape {shape}")
    # MATLAB stores an array column by column
    columns = np.frombuffer(values, dtype=dtype).reshape(shape, order="F")
    floats = np.array(columns, dtype=np.float64, order="C")
    if dtype.kind in "iu" and floats.size and np.abs(floats).max() >= EXACT:
        return name, columns.astype(dtype.newbyteorder("="), order="C")
    return name, floats


def _element(data: memoryview, order: str) -> tuple[int, memoryview, memoryview]:
    """Return the type and the content of the first element of some bytes, and the bytes after it."""
    if len(data) < 8:
        raise DataError("the end of the file inside a tag")
    code, length = struct.unpack(f"{order}II", data[:8])
    if code >> 16:  # up to four bytes are stored in the tag itself
        code, length = code & 0xFFFF, code >> 16
        if length > 4:
            raise DataError(f"a short element of {length} bytes")
        return code, data[4 : 4 + length], data[8:]
    if length > len(data) - 8:
        raise DataError(f"an element of {length} bytes where {len(data) - 8} are left")
    # a compressed element alone is not padded to a multiple of 8 bytes
    padded = length if code == _COMPRESSED else -(-length // 8) * 8
    return code, data[8 : 8 + length], data[8 + padded :]


def _inflated(content: memoryview, order: str) -> memoryview:
    """Decompress an element; raise `DataError` if it does not end where its tag says."""
    stream = zlib.decompressobj()
    try:
        # the tag first: it bounds what is inflated, whatever a damaged file would give
        tag = stream.decompress(content, 8)
        if len(tag) < 8:
            raise DataError("a compressed element without a tag")
        length = struct.unpack(f"{order}II", tag)[1]
        # + 1: a bound of 0 means none, and a buffer that is just full ends before zlib's checksum
        inside = stream.decompress(stream.unconsumed_tail, length + 1)
    except zlib.error as error:
        raise DataError(f"a compressed element that is damaged: {quoted(str(error))}") from None
    if not stream.eof:  # zlib verifies the checksum only at the end
        raise DataError(f"a compressed element that does not end after its {length} bytes")
    return memoryview(tag + inside)
