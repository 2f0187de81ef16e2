"""Splits as a file of masks: a line a row of the data set, a column a split, 1 for a test row."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.text import plain_numbers
from svgpbench_datasets.splits import Split

Masks: TypeAlias = NDArray[np.bool_]

_ZERO, _COMMA, _END = np.frombuffer(b"0,\n", dtype=np.uint8)


def read_masks(raw: bytes, rows: int, count: int, where: str) -> Masks:
    """Read masks, [rows, count].

    Raises:
        DataError: text that is not so many rows and columns of 0 and 1.
    """
    table = plain_numbers(raw, ",")
    if table is None or table.shape != (rows, count) or not np.isin(table, (0, 1)).all():
        shape = "not a table of numbers" if table is None else f"of shape {table.shape}"
        raise DataError(f"{where} is {shape}; masks of 0 and 1, [{rows}, {count}], are declared")
    return np.asarray(table == 1)


def write_masks(path: Path, splits: Sequence[Split]) -> None:
    """Write splits that each take every row of one data set; a file that is there is replaced.

    Raises:
        DataError: the file cannot be written.
    """
    rows = len(splits[0].train) + len(splits[0].test)
    text = np.full((rows, 2 * len(splits)), _COMMA)
    text[:, ::2], text[:, -1] = _ZERO, _END
    for at, split in enumerate(splits):
        text[split.test, 2 * at] += 1
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(text.tobytes())
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror or error})") from None
    finally:
        unfinished.unlink(missing_ok=True)
