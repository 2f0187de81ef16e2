"""Figure of final metrics by method and data set, as points or bars with standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from svgpbench.metrics import METRICS, Metric
from svgpbench.output.figure_and_table_types import FigureKind, MetricName
from svgpbench.output.palette import LineStyle
from svgpbench.output.panel import Label, finish, grid, label, legend, title_of
from svgpbench.output.plot_data import Drawn, listed
from svgpbench.results.frames import count_by
from svgpbench.stats.means import WHICH_ERROR, mean_and_error


class Finals(FigureKind):
    """A row a metric, a column a data set; in each panel the methods side by side."""

    metrics: tuple[MetricName, ...] = ("nlpd",)
    marks: Literal["points", "bars"] = "points"

    def draw(self, drawn: Drawn) -> Figure:
        """Return the figure. Raises `UserError` if no record has one of the metrics."""
        metrics = [METRICS[name] for name in self.metrics]
        drawn.check_recorded(metrics, drawn.finals)
        figure, axes = grid(len(metrics), len(drawn.data))
        for column, name in enumerate(drawn.data):
            here = drawn.finals[drawn.finals["data"] == name]
            for row, metric in enumerate(metrics):
                self._draw_panel(axes[row][column], here, drawn.styles, metric)
                if column == 0:
                    axes[row][column].set_ylabel(metric.label)
            axes[0][column].set_title(title_of(name, here))
        figure.align_ylabels(list(axes[:, 0]))
        legend(figure, drawn.styles)
        return figure

    def _draw_panel(
        self, panel: Axes, cells: pd.DataFrame, styles: dict[str, LineStyle], metric: Metric
    ) -> None:
        labels = []
        for place, (method, style) in enumerate(styles.items()):
            mean, error = mean_and_error(_good(cells, method), metric.name)
            if math.isnan(mean):
                labels.append(Label(f"{method}: none", style.colour, "top"))
                continue
            if self.marks == "bars":
                panel.bar(place, mean, width=0.8, color=style.colour, alpha=0.6)
            marker = "o" if self.marks == "points" else "none"
            error = 0.0 if math.isnan(error) else error
            panel.errorbar(
                place, mean, error, color=style.colour, fmt=marker, markersize=4, capsize=2
            )
        panel.set_xlim(-0.7, len(styles) - 0.3)
        panel.set_xticks([])
        if isinstance(metric.better, float):
            panel.axhline(metric.better, color="0.4", linewidth=0.6, linestyle=":")
        finish(panel)
        label(panel, labels)

    def caption(self, drawn: Drawn) -> str:
        """Return a sentence on the marks and error bars."""
        phrases = listed([f"of {METRICS[name].phrase}" for name in self.metrics])
        return (
            f"mean over {drawn.cells} cells (folds × seeds) {phrases}, at the end; bars: standard error, "
            f"{WHICH_ERROR}."
        )

    def remarks(self, drawn: Drawn) -> Sequence[str]:
        """Return a sentence on failed cells, which are in no mean."""
        bad = drawn.finals[drawn.finals["status"] != "ok"]
        if bad.empty:
            return ()
        counts = count_by(bad, "data", "method", "status")
        failures = "; ".join(f"{d}, {m}: {n} {status}" for (d, m, status), n in counts.items())
        return (f"In no mean: {failures}.",)


def _good(cells: pd.DataFrame, method: str) -> pd.DataFrame:
    return cells[(cells["method"] == method) & (cells["status"] == "ok")]
