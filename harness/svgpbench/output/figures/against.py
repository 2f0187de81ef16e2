"""Figure of a final metric against a setting, a size of the data or another metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import PositiveFloat

from svgpbench.errors import unknown
from svgpbench.metrics import METRICS, Better, Metric, loss
from svgpbench.output.figure_and_table_types import FigureKind, MetricName
from svgpbench.output.palette import LineStyle, line_styles
from svgpbench.output.panel import Label, finish, grid, label, legend, logarithmic, plain, title_of
from svgpbench.output.plot_data import PlotData, listed
from svgpbench.results.mixtures import dotted_settings
from svgpbench.stats.means import WHICH_ERROR, mean_and_error

FACTS = ("n_train", "dimensions")
"""Sizes of the data. Against these, each curve goes through all data sets."""

BESIDE_THE_BEST: dict[Better, tuple[float, float]] = {"higher": (1.0, 0.125), "lower": (0.125, 1.0)}
"""Range of the axis below and above the best mean, as multiples of `depth`."""


class Against(FigureKind):
    """Final metrics against `x`: one row per metric and one column per data set.

    `x`: a setting such as "inducing.count", a metric such as "seconds", "n_train" or "dimensions".
    `curves`: labels of curves, each with the labels of its methods. Without it, methods of one name form a
    curve if `x` is a setting; otherwise each label is a curve. The caption lists methods without records.
    """

    metrics: tuple[MetricName, ...] = ("nlpd",)
    x: str = "inducing.count"
    curves: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - a field, which pydantic copies
    scale: Literal["linear", "log"] = "linear"
    depth: PositiveFloat | None = None  # of the vertical axis, from the best mean

    def draw(self, plot_data: PlotData) -> Figure:
        """Return the figure. Raises `UserError` if no record has a metric, or `x` is not known."""
        metrics = [METRICS[name] for name in self.metrics]
        plot_data.check_recorded(metrics, plot_data.finals)
        cells = plot_data.finals.assign(
            x=self._positions(plot_data), curve=self._curves_of(plot_data)
        )
        cells = cells[cells["curve"] != ""]
        styles = line_styles(cells["curve"].unique())
        panels = [""] if self.x in FACTS else plot_data.data
        figure, axes = grid(len(metrics), len(panels))
        for column, name in enumerate(panels):
            shown = cells[cells["data"] == name] if name else cells
            for row, metric in enumerate(metrics):
                self._draw_panel(axes[row][column], shown, styles, metric)
                if column == 0:
                    axes[row][column].set_ylabel(metric.label)
            if name:
                axes[0][column].set_title(title_of(name, shown))
            axes[-1][column].set_xlabel(self._x_label())
        figure.align_ylabels(list(axes[:, 0]))
        legend(figure, styles)
        return figure

    def _draw_panel(
        self, panel: Axes, cells: pd.DataFrame, styles: dict[str, LineStyle], metric: Metric
    ) -> None:
        labels, means = [], []
        for curve, style in styles.items():
            points = []  # x, mean and standard error of each method and data set
            shown = cells[(cells["curve"] == curve) & (cells["status"] == "ok")]
            for _, group in shown.groupby(["data", "method"], sort=False):
                mean, error = mean_and_error(group, metric.name)
                if not np.isnan(mean):
                    points.append((float(group["x"].mean()), mean, error))
            if not points:
                labels.append(Label(f"{plain(curve)}: none", style.colour, "top"))
                continue
            x, y, errors = np.array(sorted(points)).T
            means += list(y)
            panel.errorbar(
                x, y, np.nan_to_num(errors), color=style.colour, linestyle=style.dash,
                linewidth=1.2, marker="o", markersize=3, capsize=2,
            )  # fmt: skip
        finish(panel)
        if self.depth is not None and means:
            best = min(means, key=lambda mean: loss(mean, metric.better))
            # a metric with a target, such as coverage, is missed on both sides
            below, above = BESIDE_THE_BEST.get(metric.better, (1.0, 1.0))
            panel.set_ylim(best - below * self.depth, best + above * self.depth)
        if self.scale == "log":
            logarithmic(panel)
        label(panel, labels)

    def _positions(self, plot_data: PlotData) -> list[Any]:
        """Return the position of each cell on the horizontal axis."""
        if self.x in METRICS:
            return list(plot_data.finals[self.x])
        if self.x in FACTS:
            return [record.data.get(self.x) for record in plot_data.records]
        settings = [dict(dotted_settings(record)) for record in plot_data.records]
        numeric = {
            key
            for cell in settings
            for key, value in cell.items()
            # True is an int to Python, but no position on an axis
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        if self.x not in numeric:
            raise unknown("x of a figure", self.x, numeric | METRICS.keys() | set(FACTS))
        return [cell.get(self.x) for cell in settings]

    def _curves_of(self, plot_data: PlotData) -> list[str]:
        """Return the label of each cell's curve, empty for a cell on no curve."""
        methods = [record.config.method for record in plot_data.records]
        if not self.curves:
            by_label = self.x in METRICS or self.x in FACTS
            return [method.title if by_label else method.name for method in methods]
        curve_of = {title: curve for curve, titles in self.curves.items() for title in titles}
        if len(self._without_records(plot_data)) == len(curve_of):
            raise unknown("method in these records", next(iter(curve_of)), plot_data.styles)
        return [curve_of.get(method.title, "") for method in methods]

    def _without_records(self, plot_data: PlotData) -> list[str]:
        """Return the methods of `curves` that have no record."""
        titles = (title for of_curve in self.curves.values() for title in of_curve)
        return [title for title in titles if title not in plot_data.styles]

    def _x_label(self) -> str:
        return METRICS[self.x].label if self.x in METRICS else self.x

    def caption(self, plot_data: PlotData) -> str:
        """Return a sentence on the points and bars."""
        phrases = listed([f"of {METRICS[name].phrase}" for name in self.metrics])
        return (
            f"mean over {plot_data.cells} cells (folds × seeds) {phrases}, at the end, against "
            f"{self._x_label()}; bars: standard error, {WHICH_ERROR}."
            + (f" Beyond the axis: more than {self.depth:g} from the best." if self.depth else "")
        )

    def remarks(self, plot_data: PlotData) -> Sequence[str]:
        """Return sentences on methods without records, and on times."""
        missing = self._without_records(plot_data)
        sentences = [f"Without records here: {listed(missing)}."] if missing else []
        if "seconds" in (self.x, *self.metrics):
            sentences += plot_data.warning_of_times
        return sentences
