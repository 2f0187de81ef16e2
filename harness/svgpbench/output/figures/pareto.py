"""Figure of a score against the cost of training, with the front of methods that are not dominated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pydantic import PositiveFloat, field_validator

from svgpbench.metrics import METRICS, Metric, loss
from svgpbench.output.figure_and_table_types import FigureKind, MetricName
from svgpbench.output.number_formats import PREFIXES
from svgpbench.output.palette import LineStyle
from svgpbench.output.panel import (
    STEP,
    Label,
    finish,
    grid,
    label,
    legend_of,
    logarithmic,
    plain,
    plain_powers,
    title_of,
)
from svgpbench.output.plot_data import PlotData, listed
from svgpbench.results.pareto import (
    COSTS,
    SIMILAR_COST,
    Cost,
    Point,
    costs_of,
    known_score,
    points,
)
from svgpbench.stats.means import WHICH_ERROR

MARKERS: Final = "osD^vP<X>ph*"
FEW_TICKS: Final = 5.0
"""Axes that span more than this ratio have at least two ticks at 1, 2 or 5 times a power of ten."""

OFF_SCALE: Final = 3.0
"""Dominated methods farther from the best than `OFF_SCALE` times the spread of the others are not drawn."""


class Pareto(FigureKind):
    """Score against cost: one row per cost, one column per data set, and one mark per method.

    A line goes through the methods that are not dominated. The vertical axis ends at a distance of `depth`
    from the best mean. Without `depth`, dominated methods that are far off leave the panel.
    """

    metric: MetricName = "nlpd"
    costs: tuple[Cost, ...] = ("flops", "seconds")
    depth: PositiveFloat | None = None

    @field_validator("metric")
    @classmethod
    def _is_judged(cls, name: str) -> str:
        return known_score(name)

    @field_validator("costs")
    @classmethod
    def _are_some(cls, costs: tuple[Cost, ...]) -> tuple[Cost, ...]:
        if not costs or len(set(costs)) < len(costs):
            raise ValueError("names each cost once, and at least one")
        return costs

    def draw(self, plot_data: PlotData) -> Figure:
        """Return the figure. Raises `UserError` if no record has the metric or one of the costs."""
        metric = METRICS[self.metric]
        plot_data.check_recorded([metric], plot_data.finals)
        spent, _ = costs_of(plot_data.records)
        figure, axes = grid(len(self.costs), len(plot_data.data), height=1.6, share_x=False)
        marks = dict(zip(plot_data.styles, MARKERS * len(plot_data.styles), strict=False))
        for row, cost in enumerate(self.costs):
            marked = points(plot_data.with_replicas, spent, self.metric, cost)
            costs = [point.cost for point in marked if not math.isnan(point.cost)]
            if not costs:
                raise plot_data.none_of(COSTS[cost])
            power = 0  # of 1000, in which the axis counts
            if cost == "flops":
                # of the median: one costly method must not leave the others with leading zeros
                power = max(0, math.floor(math.log10(float(np.median(costs))) / 3))
                power = min(power, len(PREFIXES) - 1)
            marked = [replace(point, cost=point.cost / 1000.0**power) for point in marked]
            for column, name in enumerate(plot_data.data):
                panel = axes[row][column]
                of_data = [point for point in marked if point.data == name]
                self._draw_panel(panel, of_data, plot_data.styles, marks, metric)
                panel.set_xlabel(f"{PREFIXES[power]}{COSTS[cost]}")
                if not row:
                    panel.set_title(
                        title_of(name, plot_data.finals[plot_data.finals["data"] == name])
                    )
                if not column:
                    panel.set_ylabel(metric.label)
        figure.align_ylabels(list(axes[:, 0]))
        legend_of(
            figure,
            [
                Line2D(
                    [], [], color=plot_data.styles[name].colour, marker=mark, linestyle="none",
                    markersize=5, label=plain(name),
                )
                for name, mark in marks.items()
            ],
        )  # fmt: skip
        return figure

    def _draw_panel(
        self,
        panel: Axes,
        panel_points: Sequence[Point],
        styles: dict[str, LineStyle],
        marks: dict[str, str],
        metric: Metric,
    ) -> None:
        shown = [p for p in panel_points if p.place not in ("failed", "uncounted")]
        low, high = self._limits(shown, metric)
        edge: Literal["top", "bottom"] = "bottom" if metric.better == "higher" else "top"
        labels = [
            Label(f"{plain(p.method)}: {p.place}", styles[p.method].colour, "top")
            for p in panel_points if p not in shown
        ]  # fmt: skip
        for point in shown:
            colour, dominated = styles[point.method].colour, point.place == "dominated"
            if not low <= point.mean <= high:
                arrow = r"$\uparrow$" if point.mean > high else r"$\downarrow$"
                labels.append(
                    Label(f"{arrow} {plain(point.method)} {point.mean:.3g}", colour, edge)
                )
                continue
            panel.errorbar(
                point.cost, point.mean, np.nan_to_num(point.error), color=colour,
                fmt=marks[point.method], markersize=3.5 if dominated else 5.5,
                markerfacecolor=colour if point.place == "front" else "white",
                markeredgewidth=0.8, elinewidth=0.8, capsize=1.5, alpha=0.45 if dominated else 1.0,
                zorder=3 if dominated else 4,
            )  # fmt: skip
        _draw_front(panel, shown, metric)
        room = STEP * len(labels) * (high - low)  # space for the labels, off the error bars
        panel.set_ylim(low - room * (edge == "bottom"), high + room * (edge == "top"))
        finish(panel)
        panel.margins(x=0.12)
        logarithmic(panel)
        low_cost, high_cost = panel.get_xlim()
        if FEW_TICKS * low_cost < high_cost < 100 * low_cost:
            plain_powers(panel.xaxis)
        label(panel, labels)

    def _limits(self, shown: Sequence[Point], metric: Metric) -> tuple[float, float]:
        """Return limits of the vertical axis that show methods not dominated, and dominated ones near them.

        With `depth`, they show only methods within `depth` of the best mean.
        """
        best_points = [p for p in shown if p.place != "dominated"] or list(shown)
        if not best_points:
            return 0.0, 1.0
        best = min(best_points, key=lambda p: loss(p.mean, metric.better)).mean
        means = [p.mean for p in best_points]
        # `best` besides, since `max` and `min` of a single number would want a sequence
        spread = max(*means, best) - min(*means, best)
        # one method on one split has neither spread nor error, and the axis needs a height
        reach = max(spread, *(float(np.nan_to_num(p.error)) for p in best_points), 1e-9 * abs(best))
        depth = self.depth or OFF_SCALE * reach
        near = [p for p in shown if p in best_points or abs(p.mean - best) <= depth]
        if self.depth:
            near = [p for p in near if abs(p.mean - best) <= depth]
        ends = [p.mean + sign * float(np.nan_to_num(p.error)) for p in near for sign in (-1, 1)]
        air = 0.12 * (max(ends) - min(ends)) or 0.1 * reach
        return min(ends) - air, max(ends) + air

    def caption(self, plot_data: PlotData) -> str:
        """Return a sentence on the axes and error bars."""
        against = listed([COSTS[cost] for cost in self.costs])
        return (
            f"mean over {plot_data.cells} cells (folds × seeds) of {METRICS[self.metric].phrase}, "
            f"at the end, against {against} (FLOPs counted, of all steps; medians); bars: standard error, "
            f"{WHICH_ERROR}. Paired differences, which decide, vary less."
        )

    def remarks(self, plot_data: PlotData) -> Sequence[str]:
        """Return sentences on marks, on costs that are not counted, and on times."""
        _, notes = costs_of(plot_data.records)
        times = plot_data.warning_of_times if "seconds" in self.costs else ()
        return (
            f"Filled: on the front, no method at up to {SIMILAR_COST} times its cost is better, or as good "
            "for less, or undecided against it (paired 95 % intervals). Hollow: open, one is undecided. "
            "Small and faint: dominated. Line: the best mean so far among those not dominated. "
            "Arrows: out of the panel, "
            "at the value beside the arrow.",
            *(f"{note[0].upper()}{note[1:]}." for note in notes),
            *times,
        )


def _draw_front(panel: Axes, shown: Sequence[Point], metric: Metric) -> None:
    """Draw a step line from the cheapest method to the best one, over those that are not dominated."""
    x: list[float] = []
    y: list[float] = []
    for point in sorted((p for p in shown if p.place != "dominated"), key=lambda p: p.cost):
        if not y or loss(point.mean, metric.better) < loss(y[-1], metric.better):
            x.append(point.cost)
            y.append(point.mean)
    if x:
        x.append(max(p.cost for p in shown))
        y.append(y[-1])
        # post: a budget between two methods buys the score of the cheaper one
        panel.step(x, y, where="post", color="0.6", linewidth=0.9, zorder=2)
