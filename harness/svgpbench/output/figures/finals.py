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
from svgpbench.output.panel import Label, finish, grid, label, legend, plain, title_of
from svgpbench.output.plot_data import PlotData, listed
from svgpbench.stats.means import WHICH_ERROR, mean_and_error


class Finals(FigureKind):
    """Final metrics of methods side by side: one row per metric and one column per data set."""

    metrics: tuple[MetricName, ...] = ("nlpd",)
    marks: Literal["points", "bars"] = "points"

    def draw(self, plot_data: PlotData) -> Figure:
        """Return the figure. Raises `UserError` if no record has one of the metrics."""
        metrics = [METRICS[name] for name in self.metrics]
        plot_data.check_recorded(metrics, plot_data.finals)
        figure, axes = grid(len(metrics), len(plot_data.data))
        for column, name in enumerate(plot_data.data):
            cells = plot_data.finals[plot_data.finals["data"] == name]
            for row, metric in enumerate(metrics):
                self._draw_panel(axes[row][column], cells, plot_data.styles, metric)
                if column == 0:
                    axes[row][column].set_ylabel(metric.label)
            axes[0][column].set_title(title_of(name, cells))
        figure.align_ylabels(list(axes[:, 0]))
        legend(figure, plot_data.styles)
        return figure

    def _draw_panel(
        self, panel: Axes, cells: pd.DataFrame, styles: dict[str, LineStyle], metric: Metric
    ) -> None:
        labels = []
        cells = cells[cells["status"] == "ok"]
        for x, (method, style) in enumerate(styles.items()):
            mean, error = mean_and_error(cells[cells["method"] == method], metric.name)
            if math.isnan(mean):
                labels.append(Label(f"{plain(method)}: none", style.colour, "top"))
                continue
            if self.marks == "bars":
                panel.bar(x, mean, width=0.8, color=style.colour, alpha=0.6)
            marker = "o" if self.marks == "points" else "none"
            error = 0.0 if math.isnan(error) else error
            panel.errorbar(x, mean, error, color=style.colour, fmt=marker, markersize=4, capsize=2)
        panel.set_xlim(-0.7, len(styles) - 0.3)
        panel.set_xticks([])
        # a metric with a target instead of a direction, such as coverage
        if isinstance(metric.better, float):
            panel.axhline(metric.better, color="0.4", linewidth=0.6, linestyle=":")
        finish(panel)
        label(panel, labels)

    def caption(self, plot_data: PlotData) -> str:
        """Return a sentence on the marks and error bars."""
        phrases = listed([f"of {METRICS[name].phrase}" for name in self.metrics])
        return (
            f"mean over {plot_data.cells} cells (folds × seeds) {phrases}, at the end; bars: standard error, "
            f"{WHICH_ERROR}."
        )

    def remarks(self, plot_data: PlotData) -> Sequence[str]:
        """Return a sentence on failed cells, which are in no mean."""
        return (f"In no mean: {plot_data.failures}.",) if plot_data.failures else ()
