"""Figure of metrics against iteration or time, one column per data set, as Adam et al. 2021, Fig. 3."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import PositiveFloat

from svgpbench.metrics import Metric, of_a_trace
from svgpbench.output.curves import Curve, curves, leaves, limits
from svgpbench.output.figure_and_table_types import FigureKind, TracedName
from svgpbench.output.palette import LineStyle
from svgpbench.output.panel import (
    Label,
    finish,
    grid,
    label,
    legend,
    logarithmic,
    plain,
    title_of,
    whole_numbers,
)
from svgpbench.output.plot_data import PlotData, listed
from svgpbench.stats.means import WHICH_ERROR


class Convergence(FigureKind):
    """Metrics during training: one row per metric, one column per data set and one curve per method.

    A curve is the mean over cells, with a band of its standard error. `scale = "log"` makes the horizontal
    axis logarithmic, without iteration 0. For a metric that is better when higher, the vertical axis starts
    `depth` below the best mean. `width` and `height` are those of a panel, in inches.
    """

    metrics: tuple[TracedName, ...] = ("elbo", "nlpd")
    x: Literal["iteration", "seconds"] = "iteration"
    scale: Literal["linear", "log"] = "linear"
    depth: PositiveFloat | None = None
    width: PositiveFloat = 1.36
    height: PositiveFloat = 1.4

    def draw(self, plot_data: PlotData) -> Figure:
        """Return the figure. Raises `UserError` if no record has a trace, or none has one of the metrics."""
        if plot_data.traces.empty:
            raise plot_data.none_of("a trace")
        metrics = [of_a_trace(name) for name in self.metrics]
        plot_data.check_recorded(metrics, plot_data.traces)
        figure, axes = grid(len(metrics), len(plot_data.data), self.width, self.height)
        for column, name in enumerate(plot_data.data):
            traces = plot_data.traces[plot_data.traces["data"] == name]
            dead = failed_at_once(plot_data.finals[plot_data.finals["data"] == name], traces)
            for row, metric in enumerate(metrics):
                panel = axes[row][column]
                recorded = traces.groupby("method", sort=False)[metric.name].count()
                without = [str(method) for method in recorded.index[recorded == 0]]
                lines = curves(traces[~traces["method"].isin(without)], metric.name, dead, self.x)
                shown = limits(lines, metric.better)
                depth = self.depth if metric.better == "higher" else None
                bests = [float(line.mean.max()) for line in lines if len(line.mean)]
                if depth is not None and bests:
                    shown = max(bests) - depth, max(bests) + 0.06 * depth
                # under a declared depth the caption says what is below the axis
                arrows = depth is None
                _draw_panel(panel, lines, plot_data.styles, metric, without, shown, arrows=arrows)
                if self.scale == "log":
                    logarithmic(panel)
                elif self.x == "iteration":
                    whole_numbers(panel)
                if column == 0:
                    panel.set_ylabel(metric.label)
            axes[0][column].set_title(title_of(name, traces))
            axes[-1][column].set_xlabel(self._x_label(plot_data))
        figure.align_ylabels(list(axes[:, 0]))
        legend(figure, plot_data.styles)
        return figure

    def _x_label(self, plot_data: PlotData) -> str:
        if self.x == "seconds":
            return "seconds of training"
        online = any(r.config.training.kind == "online" for r in plot_data.records)
        return "iteration" if online else "EM iteration"

    def caption(self, plot_data: PlotData) -> str:
        """Return a sentence on the curves and bands."""
        phrases = listed([f"of {of_a_trace(name).phrase}" for name in self.metrics])
        return (
            f"mean over {plot_data.cells} cells (folds × seeds) {phrases}, "
            f"against {self._x_label(plot_data)}; band: standard error, {WHICH_ERROR}."
            + (f" Below the axis: more than {self.depth:g} from the best." if self.depth else "")
        )

    def remarks(self, plot_data: PlotData) -> Sequence[str]:
        """Return sentences on crosses (if a cell failed), arrows and times."""
        more = ["Arrows: a curve leaves the panel, to the value beside the arrow."]
        if self.x == "seconds":
            more += plot_data.warning_of_times
        if plot_data.failures:
            return (f"A cross ends a curve where a cell failed ({plot_data.failures}).", *more)
        return more


def failed_at_once(finals: pd.DataFrame, traces: pd.DataFrame) -> list[str]:
    """Return the methods with a replicate that failed before its first trace point."""
    keys = ["split_seed", "fold", "seed"]
    traced = traces.groupby("method")[keys].apply(lambda cells: len(cells.drop_duplicates()))
    # a cell that failed at once has a row in `finals` and none in `traces`
    ran = finals.groupby("method").size()
    return [str(method) for method, n in ran.items() if int(traced.get(method, 0)) < int(n)]


def _draw_panel(
    panel: Axes,
    lines: list[Curve],
    styles: dict[str, LineStyle],
    metric: Metric,
    without: Sequence[str],
    shown: tuple[float, float],
    *,
    arrows: bool,
) -> None:
    low, high = shown
    edge: Literal["top", "bottom"] = "bottom" if metric.better == "higher" else "top"
    labels = [
        Label(f"{plain(name)}: no {metric.title}", styles[name].colour, edge) for name in without
    ]
    if not lines and labels:
        labels = [Label(f"no {metric.title}", "0.4", edge)]
    for rank, line in enumerate(lines):
        style = styles[line.method]
        if not len(line.mean):
            labels.append(Label(f"{plain(line.method)}: failed", style.colour, edge))
            continue
        x, mean, error = line.x, line.mean, line.error
        # dashed lines above solid ones, the first method on top, so that coinciding lines stay visible
        order = 3 + len(lines) - rank if style.dash != "-" else 2.5
        panel.plot(x, mean, color=style.colour, linestyle=style.dash, linewidth=1.4, zorder=order)
        panel.fill_between(
            x, mean - error, mean + error, color=style.colour, alpha=0.16, linewidth=0
        )
        if line.broke_at is not None and low <= line.last <= high:
            panel.plot(x[-1], line.last, marker="x", color=style.colour, markersize=5, zorder=9)
        if arrows and (farthest := leaves(line, low, high)) is not None:
            arrow = r"$\uparrow$" if farthest > high else r"$\downarrow$"
            labels.append(Label(f"{arrow} {_label_number(farthest)}", style.colour, edge))
    panel.set_ylim(low, high)
    finish(panel)
    # bounds rise and densities fall, so the corner at the right end of the curves is empty
    label(panel, labels)


def _label_number(value: float) -> str:
    """Return a number for a label: `−412`, or with a power of ten from 10⁴ on."""
    if abs(value) < 1e4:
        return f"{value:.3g}".replace("-", "−") if abs(value) < 1e3 else f"${value:.0f}$"
    power = math.floor(math.log10(abs(value)))
    return rf"${value / 10**power:.1f}\times10^{{{power}}}$"
