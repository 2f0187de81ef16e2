"""Figure of curves of a computed frame, with one panel per value of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from svgpbench.output.figure_and_table_types import ComputedFigure
from svgpbench.output.palette import LineStyle, line_styles
from svgpbench.output.panel import finish, grid, legend, plain_powers


class Lines(ComputedFigure):
    """`y` against `x`: one curve per value of `curve` and one panel per value of `panel`.

    Rows are joined in their order. `at`: a column whose value in a panel is marked on the horizontal axis.
    `points` marks every row, with a hollow mark for the first of a curve.
    """

    x: str
    y: str
    curve: str = "method"
    at: str = ""
    x_label: str
    y_label: str
    log: tuple[Literal["x", "y"], ...] = ()
    y_limits: tuple[float, float] | None = None
    points: bool = False

    def draw(self, frame: pd.DataFrame) -> Figure:
        panels = self.panels(frame, self.x, self.y, self.curve, self.at)
        styles = line_styles(frame[self.curve].unique())
        figure, axes = grid(1, len(panels), width=1.9, height=2.1)
        for axis, (title, rows) in zip(axes[0], panels, strict=True):
            self._draw_panel(axis, rows, styles)
            axis.set_title(title)
            axis.set_xlabel(self.x_label)
        axes[0][0].set_ylabel(self.y_label)
        legend(figure, styles)
        return figure

    def _draw_panel(self, axis: Axes, rows: pd.DataFrame, styles: dict[str, LineStyle]) -> None:
        for rank, (name, style) in enumerate(styles.items()):
            curve = rows[rows[self.curve] == name]
            # dashed lines above solid ones, which would hide them
            order = 2.5 if style.dash == "-" else 3 + len(styles) - rank
            axis.plot(
                curve[self.x], curve[self.y], color=style.colour, linestyle=style.dash,
                linewidth=1.3, zorder=order, marker="o" if self.points else None, markersize=2.5,
            )  # fmt: skip
            if self.points:
                first = curve.iloc[:1]
                axis.plot(
                    first[self.x], first[self.y], color="black", marker="o", markersize=4.5,
                    markerfacecolor="white", zorder=20,
                )  # fmt: skip
        finish(axis)
        for name, ticks in (("x", axis.xaxis), ("y", axis.yaxis)):
            if name in self.log:
                axis.set(**{f"{name}scale": "log"})
                plain_powers(ticks)
        if self.y_limits:
            axis.set_ylim(self.y_limits)
        if self.at:
            axis.axvline(float(rows[self.at].iloc[0]), color="0.3", linewidth=0.8, linestyle=":")

    def remarks(self, frame: pd.DataFrame) -> Sequence[str]:
        """Return sentences on hollow marks, and on curves that leave the panel."""
        sentences = ["Hollow: where they start."] if self.points else []
        if self.y_limits and frame[self.y].min() < self.y_limits[0]:
            sentences.append(f"Curves go below the panel, to {frame[self.y].min():.4g}.")
        return sentences
