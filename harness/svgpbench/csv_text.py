"""CSV for other programs: every digit, and no cell that a spreadsheet computes."""

from __future__ import annotations

from typing import Any

import pandas as pd

COMPUTED = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that a spreadsheet takes for a formula."""


def as_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV. Texts that begin as a formula get an apostrophe; numbers stay as they are."""
    safe = frame.map(_inert).rename(columns=_inert)
    return str(safe.to_csv(index=False))


def _inert(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(COMPUTED):
        return cell
    # a number written as text, such as -1.5, is no formula
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
