"""Parts of a figure: the grid of panels, axes, titles, legends, and labels that overlap no curve."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    ScalarFormatter,
)
from matplotlib.transforms import Bbox

from svgpbench.output.palette import LineStyle

STYLE: dict[Any, Any] = {
    "font.family": "serif",
    "font.serif": ["STIX Two Text", "STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
}
FIRST, STEP = 0.03, 0.1
"""Margin of the first label of a panel, and distance between labels, as shares of the height."""
TITLE = 26
"""Most characters on a line of a panel's title."""
PADDING = 2.0
"""Least distance between a label and a curve, in pixels at 100 per inch."""


@dataclass(frozen=True)
class Label:
    """A short text within a panel, at its upper or lower edge if there is room."""

    text: str
    colour: str
    edge: Literal["top", "bottom"]


def grid(
    rows: int, columns: int, width: float = 1.36, height: float = 1.4, *, share_x: bool = True
) -> tuple[Figure, Any]:
    """Return a figure and its axes [rows, columns]. Six columns are readable at a journal's width.

    Args:
        rows: number of rows.
        columns: number of columns.
        width: of a panel, in inches.
        height: of a panel, in inches.
        share_x: share one horizontal axis among the panels of a column.
    """
    size = (max(3.6, width * columns + 0.4), max(2.4, height * rows + 0.4))
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex="col" if share_x else False)


def plain(text: str) -> str:
    r"""Return a text that Matplotlib draws with its `$`, instead of reading a formula between two."""
    return text.replace("$", r"\$")


def title_of(name: str, rows: pd.DataFrame) -> str:
    """Return the name of a data set, followed by its size if the records have it."""
    name = plain(textwrap.fill(name, TITLE, break_long_words=False, break_on_hyphens=False))
    if rows.empty or pd.isna(rows["n_train"].iloc[0]):
        return name
    n, d = int(rows["n_train"].iloc[0]), int(rows["dimensions"].iloc[0])
    return f"{name}\n" + rf"$n={n}$, $D={d}$"


def legend(figure: Figure, styles: dict[str, LineStyle]) -> None:
    """Add a legend with the line of each method below all panels."""
    legend_of(
        figure,
        [
            Line2D(
                [], [], color=style.colour, linestyle=style.dash, linewidth=1.5, label=plain(name)
            )
            for name, style in styles.items()
        ],
    )


def legend_of(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Add a legend below all panels, with as many rows as its width requires."""
    # inches of the line and its label
    widths = [0.62 + 0.062 * len(str(handle.get_label())) for handle in handles]
    columns = len(handles)
    while columns > 1:
        # Matplotlib fills a legend column by column
        width = sum(float(max(column)) for column in np.array_split(widths, columns))
        if width <= figure.get_figwidth():
            break
        columns -= 1
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)


def finish(panel: Axes) -> None:
    """Set the ticks and the grid of the vertical axis."""
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    formatter = ScalarFormatter(useMathText=True)
    formatter.set_powerlimits((-3, 5))
    panel.yaxis.set_major_formatter(formatter)
    panel.grid(axis="y", linewidth=0.4, color="0.9")
    panel.set_axisbelow(True)


def whole_numbers(panel: Axes) -> None:
    """Set integer ticks on the horizontal axis."""
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))


def logarithmic(panel: Axes) -> None:
    """Make the horizontal axis logarithmic, with plain numbers if it spans less than a factor of ten."""
    panel.set_xscale("log")
    low, high = panel.get_xlim()
    if high < 10 * low:
        panel.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        panel.xaxis.set_major_formatter(ScalarFormatter())
    panel.xaxis.set_minor_formatter(NullFormatter())


def plain_powers(axis: Axis) -> None:
    """Set ticks of a logarithmic axis: plain numbers at 1, 2 and 5 times a power of ten."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def label(panel: Axes, labels: Sequence[Label]) -> None:
    """Write labels into a panel, one per line from its edge. `unhide_labels` moves those on curves."""
    for row, entry in enumerate(labels):
        top = entry.edge == "top"
        panel.text(
            0.98,
            1.0 - FIRST - STEP * row if top else FIRST + STEP * row,
            entry.text,
            transform=panel.transAxes,
            color=entry.colour,
            fontsize=7,
            ha="right",
            va=entry.edge,
            zorder=10,
        )


def unhide_labels(figure: Figure) -> None:
    """Move each label that overlaps a curve or a label to the nearest free place of its panel.

    If there is none, it stays and gets a white background.
    """
    figure.draw_without_rendering()  # sets the layout, which text sizes depend on
    for panel in figure.axes:
        boxes: list[Bbox] = []  # of labels that have their place
        for text in [text for text in panel.texts if text.get_transform() == panel.transAxes]:
            x, y = text.get_position()
            steps = STEP * np.arange(9)
            heights = FIRST + steps if y < 0.5 else 1.0 - FIRST - steps  # to the other edge
            sides = ((0.98, "right"), (0.5, "center"), (0.02, "left"))
            positions = [(y, (x, "right")), *product(heights, sides)]
            for height, (across, side) in positions:
                text.set(x=across, y=height, ha=side)
                if _is_free(panel, text.get_window_extent(), boxes):
                    break
            else:
                text.set(x=x, y=y, ha="right")
                text.set_bbox({"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5})
            boxes.append(text.get_window_extent())


def _is_free(panel: Axes, text: Bbox, boxes: list[Bbox]) -> bool:
    """Return True if a text is inside the panel, overlaps no other label and is near no line."""
    inside = panel.bbox.x0 <= text.x0 and text.x1 <= panel.bbox.x1
    inside = inside and panel.bbox.y0 <= text.y0 and text.y1 <= panel.bbox.y1
    if not inside or any(text.overlaps(box) for box in boxes):
        return False
    padded = text.padded(PADDING)
    # not filled: a label may lie inside the bend of a curve, which as a path would enclose it
    paths = (line.get_transform().transform_path(line.get_path()) for line in panel.lines)
    return not any(path.intersects_bbox(padded, filled=False) for path in paths if len(path))
