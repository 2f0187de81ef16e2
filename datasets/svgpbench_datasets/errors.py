"""The one kind of failure of this package: a mistake in what it was given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """A mistake in data or in how it was asked for: one line saying what, where and what to do."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The words `; did you mean 'x'?` for the nearest known name, or nothing where none is near."""
    by_folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else ""


def listed(names: Iterable[str], most: int) -> str:
    """The first names, and how many there are in all where that is more."""
    every = list(names)
    return ", ".join(every[:most]) + f", ... {len(every)} in all" * (len(every) > most)
