"""Readers of array files: idx (MNIST), NumPy's .npy and .npz, MATLAB's .mat."""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping
from math import prod
from typing import IO, Any, TypeAlias, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import quoted, reason
from svgpbench_datasets.reading.mat5 import mat_arrays
from svgpbench_datasets.reading.table import CELLS_AT_ONCE, Layout, TableFile, check_unpacked

Array: TypeAlias = NDArray[Any]

_UNSIGNED_BYTE = 0x08


def idx_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read an idx file of unsigned bytes; the first axis gives the rows, the others are flattened."""
    raw = stream.read()
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
    return _table(None, values.reshape(shape[0], prod(shape[1:])))


def numpy_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read an .npy file, or arrays of an .npz file; nothing is unpickled."""
    raw = stream.read()
    try:
        if not raw.startswith(b"PK"):
            return table_of_arrays({"": _checked_npy(raw)}, where, Layout(layout.reader))
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            check_unpacked(archive)
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            arrays = {name.removesuffix(".npy"): _checked_npy(archive.read(name)) for name in names}
    except DataError:
        raise
    except Exception as error:  # NumPy evaluates the header, which can fail in many ways
        raise DataError(f"{where} is not a NumPy file that can be read ({reason(error)})") from None
    return table_of_arrays(arrays, where, layout)


def mat_table(stream: IO[bytes], where: str, layout: Layout) -> TableFile:
    """Read arrays of a MATLAB 5 file; other variables are ignored."""
    try:
        variables = mat_arrays(stream.read(), layout.arrays)
    except DataError as error:
        raise DataError(f"{where} is a MATLAB file that cannot be read: {error}") from None
    return table_of_arrays(variables, where, layout)


def table_of_arrays(variables: Mapping[str, Array | str], where: str, layout: Layout) -> TableFile:
    """Make a table of the arrays that the layout names, or of all that are tables of numbers.

    `variables` has the arrays by name; a text describes a variable that is no array of numbers. A single
    array gives a table without column names. Several must have the same number of rows: the columns of
    X [N, D] are named X1..XD, that of y [N], [N, 1] or [1, N] is named y. Scalars are skipped unless
    the layout names them.
    """
    kinds = {
        name: value if isinstance(value, str) else f"{list(value.shape)} {value.dtype}"
        for name, value in variables.items()
    }
    listed = ", ".join(f"{quoted(name)}: {kind}" for name, kind in kinds.items()) or "nothing"
    if {"data", "shape", "format"} <= variables.keys():  # what scipy.sparse.save_npz writes
        raise DataError(f"{where} holds a sparse matrix; save it dense, such as `X.toarray()`")
    for name in layout.arrays:
        if name not in variables:
            raise DataError(f"{where} has no array {name!r} (it holds {listed})")
        if not _is_table(variables[name]):
            dense = "; save it dense, by `full`" if kinds[name] == "a sparse" else ""
            raise DataError(f"{where}: {name!r} is {kinds[name]}, not a table of numbers{dense}")
    tables = {
        name: value
        for name, value in variables.items()
        if _is_table(value) and (name in layout.arrays if layout.arrays else value.size > 1)
    }
    if not tables:
        raise DataError(f"{where} has no array that is a table of numbers (it holds {listed})")
    for name, array in tables.items():
        alike = any(array.shape == other.shape for key, other in tables.items() if key != name)
        if not layout.arrays and array.dtype.kind == "b" and "mask" in name.lower() and alike:
            raise DataError(
                f"{where}: {name!r} looks like a mask of missing values; name the arrays to read with "
                "`arrays`, without those values"
            )
    if len(tables) == 1:
        (array,) = tables.values()
        return _table(None, array if array.ndim == 2 else array[:, None])
    heights = [len(array) for array in tables.values() if array.ndim == 2 and 1 not in array.shape]
    rows = heights[0] if heights else max(array.size for array in tables.values())
    tables = {
        name: array.reshape(-1, 1) if array.ndim == 1 or array.shape == (1, rows) else array
        for name, array in tables.items()
    }
    if any(len(array) != rows for array in tables.values()):
        raise DataError(
            f"{where} holds arrays that do not stand side by side: {listed}; name those to read "
            "with `arrays`"
        )
    names = [
        name if array.shape[1] == 1 else f"{name}{number}"
        for name, array in tables.items()
        for number in range(1, array.shape[1] + 1)
    ]
    return _table(tuple(names), *tables.values())


def _is_table(value: Array | str) -> TypeGuard[Array]:
    return not isinstance(value, str) and value.ndim in (1, 2) and value.dtype.kind in "biufU"


def _checked_npy(raw: bytes) -> Array:
    """Parse an .npy file; raise `ValueError` if bytes follow the array, or a text is not Unicode."""
    stream = io.BytesIO(raw)
    array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    if more := len(raw) - stream.tell():
        raise ValueError(f"{more} bytes follow the array")
    if array.size > len(raw):  # strings of width 0 take no bytes, so any number of them fits
        raise ValueError(f"it announces {array.size:,} values in {len(raw)} bytes")
    if array.dtype.kind == "U":
        codes = np.frombuffer(array.tobytes(), np.dtype("u4").newbyteorder(array.dtype.byteorder))
        # NumPy takes any number for a character, and fails once it makes a text of it
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any():
            raise ValueError("a text in it has a character that is not Unicode")
    return array


def _table(names: tuple[str, ...] | None, *columns: Array) -> TableFile:
    """Make a table of arrays side by side: truth values become 0 and 1, and text becomes objects."""
    kinds = {"b": np.dtype(np.uint8), "U": np.dtype(object)}
    parts = []
    for array in columns:
        # pandas cannot take arrays of the other byte order
        dtype = kinds.get(array.dtype.kind, array.dtype.newbyteorder("="))
        parts.append(pd.DataFrame(array.astype(dtype, copy=False), dtype=dtype))
    table = parts[0] if len(parts) == 1 else pd.concat(parts, axis=1, ignore_index=True)
    table.index = pd.RangeIndex(1, len(table) + 1, name="row")
    rows = max(1, CELLS_AT_ONCE // max(1, table.shape[1]))

    def frames(
        indices: Collection[int] | None, spelled: Collection[int] = ()
    ) -> Iterator[pd.DataFrame]:
        for start in range(0, len(table), rows):
            yield table.iloc[start : start + rows]

    return TableFile(names, frames)
