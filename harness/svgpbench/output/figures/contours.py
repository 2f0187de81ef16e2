"""Figure of contours of a computed surface with curves on top, one panel per value of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field, PositiveFloat

from svgpbench.output.figure_and_table_types import ComputedFigure
from svgpbench.output.palette import line_styles
from svgpbench.output.panel import grid, plain_powers


class Contours(ComputedFigure):
    """Contours of `value` over `x` and `y` on logarithmic axes, at distances `below` its largest value.

    Rows with a name in the column `curve` are points of that curve. A curve of one point is a star, and the
    curves in `begun` start with a dot. `diagonal` draws the line on which x and y are equal.
    """

    x: str
    y: str
    value: str
    curve: str = "curve"
    x_label: str
    y_label: str
    begun: tuple[str, ...] = ()
    diagonal: str = ""  # its name in the caption
    below: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)]

    def draw(self, frame: pd.DataFrame) -> Figure:
        panels = self.panels(frame, self.x, self.y, self.value, self.curve)
        styles = line_styles(frame[self.curve].dropna().unique())
        figure, axes = grid(1, len(panels), width=1.5, height=2.0)
        for axis, (title, rows) in zip(axes[0], panels, strict=True):
            on_top = rows[self.curve].notna()
            self._draw_surface(axis, rows[~on_top])
            if self.diagonal:
                # by two points: on logarithmic axes Matplotlib refuses a slope
                axis.axline((1.0, 1.0), (2.0, 2.0), color="0.3", linewidth=0.8, linestyle=":")
            for name, style in styles.items():
                points = rows[rows[self.curve] == name]
                x, y = points[self.x], points[self.y]
                if len(points) == 1:
                    axis.plot(x, y, label=name, **STAR)
                    continue
                axis.plot(x, y, color=style.colour, linestyle=style.dash, linewidth=1.3, label=name)
                if name in self.begun:
                    axis.plot(x.iloc[0], y.iloc[0], **STAR | DOT)
            axis.set(xscale="log", yscale="log", xlabel=self.x_label, title=title)
            plain_powers(axis.xaxis)
            plain_powers(axis.yaxis)
        axes[0][0].set_ylabel(self.y_label)
        figure.legend(*axes[0][0].get_legend_handles_labels(), **LEGEND | {"ncols": len(styles)})
        return figure

    def _draw_surface(self, axis: Axes, rows: pd.DataFrame) -> None:
        table = rows.pivot(index=self.y, columns=self.x, values=self.value)
        values = table.to_numpy(float) - np.nanmax(table.to_numpy(float))
        levels = [-level for level in sorted(self.below, reverse=True)]
        shades = BLUES(np.linspace(0.02, 0.5, len(levels) + 1))  # one more below the lowest
        axis.contourf(
            table.columns, table.index, values, [*levels, 0.0], colors=shades, extend="min"
        )
        axis.contour(
            table.columns, table.index, values, levels, colors="#4C78A8", linewidths=0.5,
            linestyles="-",
        )  # fmt: skip

    def remarks(self, frame: pd.DataFrame) -> Sequence[str]:
        """Return sentences on the contour levels and the dotted line."""
        levels = ", ".join(f"{level:g}" for level in sorted(self.below))
        more = [f"Contours: {levels} below the largest value in the panel."]
        return [*more, f"Dotted: {self.diagonal}."] if self.diagonal else more


BLUES = matplotlib.colormaps["Blues"]
LEGEND: dict[str, Any] = {"loc": "outside lower center", "frameon": False}
STAR: dict[str, Any] = {
    "color": "black", "marker": "*", "markersize": 8, "markerfacecolor": "white",
    "markeredgewidth": 0.8, "linestyle": "none", "zorder": 20,
}  # fmt: skip
DOT = {"marker": "o", "markersize": 4.5}
