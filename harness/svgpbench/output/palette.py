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
METHOD_STYLES = {
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
OTHER_STYLES = (
    LineStyle("#E69F00", "-"),
    LineStyle("#000000", (0, (4, 2))),
    LineStyle("#8C564B", (0, (1, 1.3))),
    LineStyle("#999999", (0, (5, 1.5, 1, 1.5))),
    LineStyle("#882255", "-"),  # the last two are from Tol
    LineStyle("#44AA99", (0, (4, 2))),
)


def line_styles(methods: Iterable[str]) -> dict[str, LineStyle]:
    """Return a style for each method, distinct for up to sixteen that are not in `METHOD_STYLES`."""
    others = 0
    styles = {}
    for method in methods:
        if method in METHOD_STYLES:
            styles[method] = METHOD_STYLES[method]
        else:
            # each round of the colours shifts their dashes
            rounds, index = divmod(others, len(OTHER_STYLES))
            dash = OTHER_STYLES[(index + rounds) % len(OTHER_STYLES)].dash
            styles[method] = LineStyle(OTHER_STYLES[index].colour, dash)
            others += 1
    return styles
