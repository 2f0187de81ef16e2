"""One thing that the numbers of a data set give away."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """One thing to know before trusting a result.

    Attributes:
        kind: a short name.
        leak: whether it hands test targets to the model; else it is a note.
        text: what was found, with its numbers.
    """

    kind: str
    leak: bool
    text: str
