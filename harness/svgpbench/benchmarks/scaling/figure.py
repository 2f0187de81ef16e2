"""Figure of time per step against each size, on log axes, with the slope of the counted FLOPs."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from svgpbench.benchmarks.scaling.laws import FittedExponent, exponents_of
from svgpbench.benchmarks.scaling.measure import ScalingReport, title_of
from svgpbench.errors import UserError
from svgpbench.output.figure import check_figure_path, write_figure
from svgpbench.output.palette import OTHER_STYLES, LineStyle
from svgpbench.output.panel import STYLE, grid, legend, plain_powers

MEASURED = LineStyle(OTHER_STYLES[1].colour, "-")
COUNTED = LineStyle(OTHER_STYLES[0].colour, (0, (4, 2)))


def draw_scaling(report: ScalingReport, path: Path) -> str:
    """Draw one row of panels per step and one column per axis, and return the caption.

    Raises `UserError` if the file cannot be written, or if no ladder has three cells with a time.
    """
    check_figure_path(path)
    exponents = exponents_of(report)
    if not exponents:
        raise UserError("no ladder of this record has three cells with a time: nothing to draw")
    steps = list(dict.fromkeys(exponent.step for exponent in exponents))
    axes = list(dict.fromkeys(exponent.axis for exponent in exponents))
    with matplotlib.rc_context(STYLE):
        figure, panels = grid(len(steps), len(axes))
        width, height = figure.get_size_inches()
        figure.set_size_inches(1.2 * width + 0.4, 1.2 * height + 0.5)
        for exponent in exponents:
            panel = panels[steps.index(exponent.step)][axes.index(exponent.axis)]
            _draw_panel(panel, report, exponent)
        for row, step in zip(panels, steps, strict=True):
            row[0].set_ylabel(f"{step}, ms")
        for panel, axis in zip(panels[-1], axes, strict=True):
            panel.set_xlabel(axis)
        legend(figure, {"measured": MEASURED, "slope of counted FLOPs": COUNTED})
        write_figure(figure, path)
    settings = report.speed.settings
    return (
        f"{settings['method']} on {settings['backend']}, {report.centre.likelihood}: median and quartiles of "
        f"the seconds of a step as one size grows, the others at {title_of(report.centre)}. Titles: measured "
        "exponent with its 95 % interval, and that of the FLOPs counted at the same sizes."
    )


def _draw_panel(panel: Axes, report: ScalingReport, exponent: FittedExponent) -> None:
    sizes = np.array(exponent.sizes, dtype=np.float64)
    spreads = [
        times for _, cell in report.ladder(exponent.axis, exponent.step) if (times := cell.times())
    ]
    middle = np.array([s.median for s in spreads])
    bars = [[s.median - s.q1 for s in spreads], [s.q3 - s.median for s in spreads]]
    panel.errorbar(
        sizes, 1000 * middle, 1000 * np.array(bars), color=MEASURED.colour, linewidth=0,
        elinewidth=0.8, marker="o", markersize=3,
    )  # fmt: skip
    centre, height = np.exp(np.log(sizes).mean()), np.exp(np.log(middle).mean())
    for slope, style in ((exponent.measured, MEASURED), (exponent.counted, COUNTED)):
        line = 1000 * height * (sizes / centre) ** slope.slope
        panel.plot(sizes, line, color=style.colour, linestyle=style.dash, linewidth=1.0)
    panel.set_yscale("log")
    panel.set_xscale("log")
    plain_powers(panel.yaxis)
    panel.set_xticks(sizes, [f"{size:g}" for size in sizes], fontsize=6)
    panel.set_xticks([], minor=True)
    slope = exponent.measured
    panel.set_title(
        f"${exponent.axis}^{{{slope.slope:.2f}}}$ ({slope.low:.2f} to {slope.high:.2f}), "
        f"counted {exponent.counted.slope:.2f}",
        fontsize=6.5,
    )
