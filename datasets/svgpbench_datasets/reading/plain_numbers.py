"""The fast way through a table that holds nothing but plain decimal numbers."""

from __future__ import annotations

import io
import warnings

import numpy as np

from svgpbench_datasets.dataset import Floats

_NUMBER_BYTES = b"0123456789+-.eE \t\r\n"


def plain_numbers(raw: bytes, delimiter: str | None) -> Floats | None:
    """Parse a table of finite decimal numbers in compiled code.

    It gives what the readers that go cell by cell would give, or None where they have to look: at
    any other character, ragged rows, a number too large. They then say what is wrong and where.

    Args:
        raw: the table without header lines.
        delimiter: one character between cells; None for runs of spaces and tabs.

    Returns:
        the numbers, [n, C], or None.
    """
    if raw.translate(None, _NUMBER_BYTES + (delimiter or "").encode()) or not raw.strip():
        return None
    if raw.count(b"\r") != raw.count(b"\r\n"):
        return None  # a lone carriage return is a line end to some readers and none to others
    try:
        with warnings.catch_warnings(action="error"):
            numbers = np.loadtxt(io.BytesIO(raw), delimiter=delimiter, comments=None, ndmin=2)
    except (ValueError, Warning):
        return None
    return numbers if np.isfinite(numbers).all() else None
