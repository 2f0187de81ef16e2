"""Parsing of single cells: numbers, missing values, labels, and the error text for bad cells."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal

# stricter than float(): no underscores, no digits of other scripts, no hexadecimal
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
# groups of three digits, by commas, points, apostrophes or blanks, and perhaps a fraction
_THOUSANDS = re.compile(
    r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+(?:\.[0-9]*)?|(?:\.[0-9]{3})+,[0-9]*|(?:\.[0-9]{3}){2,}"
    r"|(?:['\u2019 \u00a0\u202f][0-9]{3})+(?:[.,][0-9]*)?)"
)
_THOUSANDS_OR_DECIMALS = re.compile(r"[+-]?[0-9]{1,3},[0-9]{3}")
_ERRORS = frozenset({"#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"})
_NEVER_A_WORD = frozenset({"", "?", "<na>", "n/a", "#n/a n/a", "#na"}) | _ERRORS
_MISSING = _NEVER_A_WORD | {"nan", "+nan", "-nan", "na", "nat", "null", "none"}
_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
EXACT = 2**53
"""Largest magnitude up to which float64 represents every integer."""
_DIGITS = 15
"""Significant digits that float64 always gives back."""


def text_of(cell: object) -> str:
    """Return a cell as text without surrounding blanks; the empty string for None."""
    return "" if cell is None else str(cell).strip()


def finite_number(cell: str) -> float | None:
    """Return the finite number that a cell holds in plain decimal notation, or None.

    An integer beyond 2**53 of more than 15 digits, such as an id, is None: float64 would change digits.
    """
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) and _is_held(text, value) else None


def is_numeral(cell: str) -> bool:
    """Return True if a cell is a number in plain decimal notation, even one that float64 cannot hold."""
    return bool(_NUMBER.fullmatch(cell.strip()))


def _is_held(text: str, value: float) -> bool:
    """Return True unless `text` is a long integer, such as an id, of which float64 may change a digit."""
    if abs(value) < EXACT or "e" in text.lower():
        return True
    digits = text.lstrip("+-0").partition(".")[0].rstrip("0")
    if len(digits) <= _DIGITS or abs(Decimal(text)) <= EXACT:
        return True
    return "." in text and Decimal(text) == Decimal(value)  # as programs write float64


def is_missing(cell: object) -> bool:
    """Return True if a cell is empty, a usual mark of a missing value, or infinite."""
    text = text_of(cell).lower()
    return text in _MISSING or text in _INFINITE


def is_never_a_word(cell: object) -> bool:
    """Return True if a cell is a missing value in a column of text too; `NA` and `None` may be words."""
    return text_of(cell).lower() in _NEVER_A_WORD or (
        not isinstance(cell, str) and is_missing(cell)
    )


def control_character(text: str) -> str | None:
    """Return the first character of a name that no terminal or page may get as it is, or None.

    These are the control characters, line and paragraph separators, lone surrogates, and those that turn
    the direction of what follows.
    """
    for character in text:
        bidirectional = unicodedata.bidirectional(character)
        if unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") or bidirectional in _TURNS:
            return character
    return None


_TURNS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def why_not_a_number(cell: object, *, predicted: bool = False, by_commas: bool = False) -> str:
    """Return the end of the error message `line 3, column 2 ...` for a cell without a finite number.

    `predicted` marks a cell of the target; the message then mentions the tasks that have labels. With
    `by_commas`, commas separate the cells, so that one inside a cell is no decimal comma.
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
    elif _NUMBER.fullmatch(text):
        why = ", too large for float64; rescale the column"
        if math.isfinite(float(text)):
            why = ", a whole number that float64 cannot hold exactly; rescale the column"
    elif not by_commas and _THOUSANDS_OR_DECIMALS.fullmatch(text):
        why = (
            ", whose comma may separate thousands or decimals; write it with a decimal point alone"
        )
    elif _THOUSANDS.fullmatch(text):
        why = ", a number with thousands separators; write it without them, with a decimal point"
    elif _DECIMAL_COMMA.fullmatch(text):
        why = ", a number with a decimal comma; write the file with decimal points"
    return f"holds {quoted(text)}{why}"


def canonical_label(text: str) -> str:
    """Return one spelling per number: that of `1`, `1.0`, `01` and `1.000e+00` is `1`."""
    value = finite_number(text)
    # from 2**53 on, two ids could become one label
    if value is None or abs(value) >= EXACT:
        return text.strip()
    # plus 0.0, or `-0` and `0` would be two labels
    return repr(value + 0.0).removesuffix(".0")


def reason(error: Exception) -> str:
    """Return the first line of an error's message, quoted and shortened."""
    return quoted((str(error) or type(error).__name__).split("\n", maxsplit=1)[0], width=120)


def quoted(text: str, width: int = 40) -> str:
    """Return text quoted on one line and shortened to `width` characters, for a message."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")
