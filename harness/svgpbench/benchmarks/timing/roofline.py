"""Roofline of timed steps: FLOP/s against FLOPs per byte, below the most that the machine reaches.

Source: Williams, Waterman and Patterson 2009, Communications of the ACM 52(4). The bytes that a step really
moves lie between two bounds. Its mark counts only arguments and results. The line from the mark ends where
every operation reads and writes without fusing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from svgpbench.benchmarks.timing import SpeedReport
from svgpbench.benchmarks.timing.rates import Rates, best_of
from svgpbench.benchmarks.timing.report import TimedCell
from svgpbench.errors import UserError
from svgpbench.output.figure import check_figure_path, write_figure
from svgpbench.output.palette import line_styles
from svgpbench.output.panel import STYLE, grid, legend_of, plain_powers

MARKS = "osD^vP*X<>ph8d"
CAPTION = (
    "Roofline: FLOPs as counted over the median time of a step, against FLOPs per byte of its arguments and "
    "results; the line from a mark ends at FLOPs per byte without fusion. Roofs: bandwidth of a copy from "
    "memory (dashed) and of the problem's own arrays, and the best rates seen of each kind of arithmetic at "
    "the problem's shapes."
)
ROOFS = {"products": "products", "choleskys": "Choleskys", "solves": "triangular solves"}


def draw_roofline(reports: Sequence[SpeedReport], path: Path) -> str:
    """Draw one panel per problem, and return the caption.

    Each pair of step and method has its own mark, and each backend its own colour. Raises `UserError` if the
    file cannot be written, and for records without rates.
    """
    check_figure_path(path)
    problems = {
        problem: (machine, timed)
        for problem in dict.fromkeys(name for report in reports for name in report.rates)
        if (timed := [mark for report in reports for mark in _timed(report, problem)])
        for machine in [
            best_of([r for report in reports for r in report.rates.get(problem, {}).values()])
        ]
    }
    if not problems:
        raise UserError("these records have no rates of the machine: time again, then draw")
    cells = [cell for _, timed in problems.values() for cell, _ in timed]
    colours = {
        who: s.colour for who, s in line_styles(dict.fromkeys(c.source for c in cells)).items()
    }
    kinds = dict.fromkeys(f"{cell.step} {cell.method}" for cell in cells)
    marks = {kind: MARKS[i % len(MARKS)] for i, kind in enumerate(kinds)}
    with matplotlib.rc_context(STYLE):
        columns = min(len(problems), 2)
        figure, axes = grid(-(-len(problems) // columns), columns)
        # a single panel is as wide as its legend
        figure.set_size_inches(max(3.4 * columns, 5.2), 2.6 * len(axes) + 0.8)
        panels = list(axes.flat)
        for panel, (problem, (machine, timed)) in zip(panels, problems.items(), strict=False):
            _draw_panel(panel, machine, timed, colours, marks)
            panel.set_title(problem)
        for panel in panels[len(problems) :]:
            panel.set_visible(False)
        for row in axes:
            row[0].set_ylabel("GFLOP/s")
        for column in range(columns):  # the last column may have one panel fewer
            lowest = panels[: len(problems)][column::columns][-1]
            lowest.set_xlabel("FLOPs per byte that must move")
            lowest.tick_params(labelbottom=True)
        handles = [
            Line2D([], [], color="0.4", marker=mark, linestyle="", markersize=4, label=kind)
            for kind, mark in marks.items()
        ] + [
            Line2D([], [], color=colour, marker="s", linestyle="", markersize=4, label=who)
            for who, colour in colours.items()
        ]
        legend_of(figure, handles)
        write_figure(figure, path)
    return CAPTION


def _timed(report: SpeedReport, problem: str) -> list[tuple[TimedCell, tuple[float, float]]]:
    """Return the cells of a problem with their coordinates: FLOPs per byte, FLOP/s."""
    timed = []
    for cell in report.cells:
        spent = report.spent(cell)
        if cell.problem == problem and spent is not None and cell.work is not None:
            timed.append((cell, (cell.work.intensity, cell.work.flops / spent.seconds)))
    return timed


def _draw_panel(
    panel: Axes,
    machine: Rates,
    timed: Sequence[tuple[TimedCell, tuple[float, float]]],
    colours: dict[str, str],
    marks: dict[str, str],
) -> None:
    intensities = [x for _, (x, _) in timed]
    # the limits below include the ridges, top / bandwidth, left of which memory bounds a step
    top = machine.products
    low = min(*intensities, top / max(machine.cached, machine.memory)) / 3
    x = np.geomspace(low, max(*intensities, top / machine.memory) * 3, 200)
    for bandwidth, dash in ((machine.memory, "--"), (machine.cached, "-")):
        panel.plot(
            x, np.minimum(bandwidth * x, top) / 1e9, color="0.3", linestyle=dash, linewidth=0.8
        )
    for kind, name in ROOFS.items():
        rate = getattr(machine, kind)
        panel.axhline(rate / 1e9, color="0.7", linewidth=0.5, zorder=0)
        panel.text(x[-1], rate / 1e9, name, fontsize=6, color="0.4", ha="right", va="bottom")
    for cell, (intensity, speed) in timed:
        colour = colours[cell.source]
        unfused = cell.work.flops / cell.work.unfused_bytes if cell.work else intensity
        panel.plot([unfused, intensity], [speed / 1e9] * 2, color=colour, linewidth=0.5, alpha=0.6)
        panel.plot(
            intensity, speed / 1e9, marks[f"{cell.step} {cell.method}"],
            color=colour, markersize=4, markeredgewidth=0,
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale("log")
    plain_powers(panel.yaxis)
    panel.set_xlim(x[0], x[-1])
