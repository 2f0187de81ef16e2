"""The exception of this package, and helpers for its messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """Mistake in data or in a request for data; the message is one line: what, where, what to do."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest known name, or an empty string if none is close."""
    by_folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else ""


def listed(names: Iterable[str], most: int) -> str:
    """Join the first `most` names by commas; if there are more, append their total number."""
    every = list(names)
    return ", ".join(every[:most]) + f", ... {len(every)} in all" * (len(every) > most)
