"""Files of arrays and one JSON text as .npz; reading them needs only NumPy and executes no code."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from svgpbench.atomic import refuse_absent_folder, write_whole
from svgpbench.errors import UserError

DAMAGED = (
    TypeError,  # np.load gave a single array, which no `with` takes
    *(ValueError, EOFError, zipfile.BadZipFile, zlib.error),
    tokenize.TokenError,  # of an array's header
    RuntimeError,  # damage that reads as encryption, or as a compression that this Python does not have
)
"""Errors of NumPy on a file that is cut off, changed, or no .npz."""


def npz_path(path: str | Path) -> Path:
    """Return the path of a file to write; raises `UserError` if it is not .npz or has no existing folder."""
    file = Path(path)
    if file.suffix != ".npz":
        raise UserError(f"{file}: a posterior is kept in a file that ends in .npz")
    refuse_absent_folder(file)
    return file


def save_arrays(arrays: Mapping[str, Any], file: Path | IO[bytes]) -> None:
    """Write arrays for `np.load(file, allow_pickle=False)`; raises `TypeError` for an array of objects.

    `allow_pickle` is not passed to `np.savez`, because NumPy before 2.1 stores it as another array.
    """
    whole: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    if objects := [name for name, array in whole.items() if array.dtype.hasobject]:
        raise TypeError(f"array {objects[0]!r} holds objects, which would be pickled")
    np.savez(file, **whole)


def write_numbers(
    file: Path, key: str, text: bytes, arrays: Mapping[str, npt.NDArray[np.float64]]
) -> None:
    """Write arrays, and a text under `key`, atomically; raises `UserError` if the file cannot be written."""
    # in memory first: np.savez to a path could leave half a file, or add .npz to its name
    content = io.BytesIO()
    # bytes: a NumPy text takes four bytes a character and loses zeros at its end
    whole: dict[str, Any] = {key: np.frombuffer(text, dtype=np.uint8), **arrays}
    save_arrays(whole, content)
    write_whole(file, content.getvalue())


def read_numbers(file: Path, key: str, what: str) -> tuple[bytes, dict[str, npt.NDArray[Any]]]:
    """Read the text under `key` and the arrays.

    Raises `UserError`, which calls the content `what`, if the file cannot be read or has no such text.
    """
    try:
        with np.load(file, allow_pickle=False) as kept:
            found = {name: kept[name] for name in kept.files}
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or f'no file of {what}'}") from None
    except DAMAGED:
        raise UserError(f"{file} holds no {what}; give a file that was saved as one") from None
    if key not in found or found[key].dtype != np.uint8:
        raise UserError(f"{file} holds no {what}: it has no {key!r}")
    return found.pop(key).tobytes(), found
