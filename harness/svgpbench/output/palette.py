"""One style for a method in every figure: a colour that colour-blind readers know, and a dash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

Dash: TypeAlias = Any
"""A matplotlib line style: `-`, or an offset and lengths on and off."""


class LineStyle(NamedTuple):
    """How the line of a method is drawn."""

    colour: str
    dash: Dash


# Okabe and Ito's colours; lines that lie on one another stay visible by their dashes
KNOWN = {
    "t-SVGP": LineStyle("#0072B2", "-"),
    "q-SVGP natgrad": LineStyle("#D55E00", (0, (4, 2))),
    "q-SVGP Adam": LineStyle("#009E73", (0, (1, 1.3))),
    "q-SVGP Adam (fair)": LineStyle("#CC79A7", (0, (5, 1.5, 1, 1.5))),
    "t-SVGP untied": LineStyle("#56B4E9", (0, (2.5, 1.2))),
    "t-SVGP tied-projected": LineStyle("#0072B2", "-"),
    "t-SVGP tied": LineStyle("#CC79A7", (0, (5, 1.5, 1, 1.5))),
    "whitened q-SVGP": LineStyle("#D55E00", (0, (4, 2))),
    "q-SVGP": LineStyle("#009E73", (0, (1, 1.3))),
}
OTHERS = (
    LineStyle("#E69F00", "-"),
    LineStyle("#000000", (0, (4, 2))),
    LineStyle("#8C564B", (0, (1, 1.3))),
    LineStyle("#999999", (0, (5, 1.5, 1, 1.5))),
    LineStyle("#882255", "-"),  # these two are Tol's
    LineStyle("#44AA99", (0, (4, 2))),
)


def line_styles(methods: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each method; those of unknown methods follow their order, sixteen of them apart."""
    others = 0
    found = {}
    for method in methods:
        if method in KNOWN:
            found[method] = KNOWN[method]
        else:
            found[method] = _other(others)
            others += 1
    return found


def _other(place: int) -> LineStyle:
    """Colours in their order, each round of them with the dash of the next."""
    rounds, at = divmod(place, len(OTHERS))
    return LineStyle(OTHERS[at].colour, OTHERS[(at + rounds) % len(OTHERS)].dash)
