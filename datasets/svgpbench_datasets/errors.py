"""The exception of this package, and helpers for its messages."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable


class DataError(ValueError):
    """Mistake in data or in a request for data; the message is one line: what, where, what to do.

    Names in files and answers of servers may be hostile: what is not printable is escaped.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    r"""Escape the characters of a text that are not printable, as in `a\x1b[31m`; blanks stay."""
    return "".join(
        x if x.isprintable() or unicodedata.category(x) == "Zs" else ascii(x)[1:-1] for x in text
    )


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest candidate, or an empty string if none is close."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else ""


def join_names(names: Iterable[str], most: int) -> str:
    """Join the first `most` names by commas; if there are others, append how many."""
    all_names = list(names)
    others = len(all_names) - most
    return ", ".join(all_names[:most]) + f" and {others} more" * (others > 0)
