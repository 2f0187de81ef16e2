"""Parsing of single cells: numbers, missing values, labels, and the error text for bad cells."""

from __future__ import annotations

import math
import re

# stricter than float(): no underscores, no digits of other scripts, no hexadecimal
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_MISSING = frozenset({"", "nan", "+nan", "-nan", "na", "n/a", "<na>", "null", "none", "?"})
_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
EXACT = 2**53
"""Largest magnitude up to which float64 represents every integer."""


def text_of(cell: object) -> str:
    """Return a cell as text without surrounding blanks; the empty string for None."""
    return "" if cell is None else str(cell).strip()


def finite_number(cell: str) -> float | None:
    """Return the finite number that a cell holds in plain decimal notation, or None."""
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def is_missing(cell: object) -> bool:
    """Return True if a cell is empty, a usual mark of a missing value, or infinite."""
    text = text_of(cell).lower()
    return text in _MISSING or text in _INFINITE


def why_not_a_number(cell: object, *, predicted: bool = False) -> str:
    """Return the end of the error message `line 3, column 2 ...` for a cell without a finite number.

    `predicted` marks a cell of the target; the message then mentions the tasks that have labels.
    """
    text = text_of(cell)
    if not text:
        return "is empty; fill it in or remove the row"
    why = ", not a number; correct it or leave the column out"
    if predicted:
        why = (
            ", not a number; correct it or, of labels, choose task 'classification' or 'multiclass'"
        )
    if text.lower() in _MISSING:
        why = ", a missing value; fill it in or remove the row"
    elif text.lower() in _INFINITE:
        why = "; give a finite number or remove the row"
    elif finite_number(text) is not None:
        why = ", a whole number that float64 cannot hold exactly; rescale the column"
    elif _NUMBER.fullmatch(text):
        why = ", too large for float64; rescale the column"
    elif _DECIMAL_COMMA.fullmatch(text):
        why = ", a number with a decimal comma; write the file with decimal points"
    return f"holds {quoted(text)}{why}"


def canonical_label(text: str) -> str:
    """Return one spelling per label: `1`, `1.0` and `1.000e+00` are the same class."""
    value = finite_number(text)
    if value is None or abs(value) >= EXACT:
        return text.strip()
    return repr(value + 0.0).removesuffix(".0")


def reason(error: Exception) -> str:
    """Return the first line of an error's message, quoted and shortened."""
    return quoted((str(error) or type(error).__name__).split("\n", maxsplit=1)[0], width=120)


def quoted(text: str, width: int = 40) -> str:
    """Return text quoted on one line and shortened to `width` characters, for a message."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")
