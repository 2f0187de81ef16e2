"""A cell as it is written: a number, a missing value, a label, or the words that say why it is none."""

from __future__ import annotations

import math
import re

# stricter than float(): no underscores, no digits of other scripts, no hexadecimal
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_MISSING = frozenset({"", "nan", "+nan", "-nan", "na", "n/a", "<na>", "null", "none", "?"})
_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
EXACT = 2**53
"""Beyond it two whole numbers can share one float64."""


def text_of(cell: object) -> str:
    """A cell as text without blanks around it; nothing for one that no value stands in."""
    return "" if cell is None else str(cell).strip()


def finite_number(cell: str) -> float | None:
    """The finite number that a cell spells in plain decimal notation, or None."""
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def is_missing(cell: object) -> bool:
    """Whether a cell is empty, one of the usual marks of a missing value, or infinite."""
    text = text_of(cell).lower()
    return text in _MISSING or text in _INFINITE


def why_not_a_number(cell: object, *, predicted: bool = False) -> str:
    """The end of the sentence `line 3, column 2 ...` for a cell that holds no finite number.

    A word that is to be `predicted` may be a label.
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
    return f"holds {shown(text)}{why}"


def canonical_label(text: str) -> str:
    """One spelling for each label: `1`, `1.0` and `1.000e+00` are the same class."""
    value = finite_number(text)
    if value is None or abs(value) >= EXACT:
        return text.strip()
    return repr(value + 0.0).removesuffix(".0")


def reason(error: Exception) -> str:
    """What a library says of a file that it refuses, as one short quoted line."""
    return shown((str(error) or type(error).__name__).split("\n", maxsplit=1)[0], width=120)


def shown(text: str, width: int = 40) -> str:
    """Text as one short quoted line, fit for a message."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")
