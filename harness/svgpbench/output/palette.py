"""Line styles of methods, the same in every figure: a colour-blind safe colour and a dash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

Dash: TypeAlias = Any
"""A matplotlib line style: `-`, or an offset with the lengths of dashes and gaps."""


class LineStyle(NamedTuple):
    """The colour and dash of a method's line."""

    colour: str
    dash: Dash


# colours of Okabe and Ito; dashes keep lines visible that coincide
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
    LineStyle("#882255", "-"),  # the last two are from Tol
    LineStyle("#44AA99", (0, (4, 2))),
)


def line_styles(methods: Iterable[str]) -> dict[str, LineStyle]:
    """Return a style for each method. Up to sixteen methods that are not in `KNOWN` get distinct styles."""
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
    """Return the style of the unknown method at a place. Each round of the colours shifts their dashes."""
    rounds, at = divmod(place, len(OTHERS))
    return LineStyle(OTHERS[at].colour, OTHERS[(at + rounds) % len(OTHERS)].dash)
