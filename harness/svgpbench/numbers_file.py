"""Numbers in a file: an .npz of arrays and one text of JSON, never evaluated. NumPy alone reads it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from svgpbench.atomic import refuse_absent_folder, write_whole
from svgpbench.errors import UserError


def npz_path(path: str | Path) -> Path:
    """The path that such a file is written to; raises `UserError` for another ending, or without a folder."""
    file = Path(path)
    if file.suffix != ".npz":
        raise UserError(f"{file}: a posterior is kept in a file that ends in .npz")
    refuse_absent_folder(file)
    return file


def save_arrays(arrays: Mapping[str, Any], file: Path | IO[bytes]) -> None:
    """Write arrays for `np.load(file, allow_pickle=False)`; raises `TypeError` for an array of objects.

    NumPy before 2.1 stores `np.savez`'s `allow_pickle` as one more array, so that it is not given here.
    """
    whole: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    if objects := [name for name, array in whole.items() if array.dtype.hasobject]:
        raise TypeError(f"array {objects[0]!r} holds objects, which would be pickled")
    np.savez(file, **whole)


def write_numbers(
    file: Path, key: str, text: bytes, arrays: Mapping[str, npt.NDArray[np.float64]]
) -> None:
    """Write arrays and, under `key`, a text, whole or not at all; raises `UserError` where it cannot."""
    content = io.BytesIO()
    whole: dict[str, Any] = {key: np.frombuffer(text, dtype=np.uint8), **arrays}
    save_arrays(whole, content)
    write_whole(file, content.getvalue())


def read_numbers(file: Path, key: str, what: str) -> tuple[bytes, dict[str, npt.NDArray[Any]]]:
    """The text under `key` and the arrays; raises `UserError` where the file holds no `what` of these."""
    try:
        with np.load(file, allow_pickle=False) as kept:
            found = {name: kept[name] for name in kept.files}
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or f'no file of {what}'}") from None
    # a lone array has no `files`, a cut file no end, an odd archive a compression that zipfile has not
    except (ValueError, zipfile.BadZipFile, AttributeError, EOFError, NotImplementedError):
        raise UserError(f"{file} holds no {what}; give a file that was saved as one") from None
    if key not in found or found[key].dtype != np.uint8:
        raise UserError(f"{file} holds no {what}: it has no {key!r}")
    return found.pop(key).tobytes(), found
