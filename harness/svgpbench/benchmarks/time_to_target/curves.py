"""Curves of bound and test NLPD against seconds of training.

There is one curve per seed and one line per target. A cross marks where a run failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns
from svgpbench.benchmarks.time_to_target.plan import LearningPlan, TrainingProblem
from svgpbench.output.figure import write_figure
from svgpbench.output.palette import METHOD_STYLES, OTHER_STYLES, LineStyle
from svgpbench.output.panel import STYLE, finish, legend

AXES = {"nlpd": "test NLPD", "elbo": "ELBO"}


def draw_learning(
    plan: LearningPlan, entries: Mapping[str, Sequence[ContestantRuns]], *paths: Path
) -> None:
    """Draw one column per problem and one row for each of the plan's `curves`, to every path.

    Raises `UserError` if a file cannot be written.
    """
    styles = styles_of(entries)
    with matplotlib.rc_context(STYLE):
        size = (max(4.6, 3.6 * len(entries)), 0.4 + 2.8 * len(plan.curves))
        figure = Figure(size, layout="constrained")
        panels = figure.subplots(len(plan.curves), len(entries), squeeze=False, sharex="col")
        for row, curve in zip(panels, plan.curves, strict=True):
            for ax, (problem, problem_entries) in zip(row, entries.items(), strict=True):
                _draw(ax, curve, plan.problems[problem], problem_entries, styles)
            row[0].set_ylabel(AXES[curve])
        for ax, problem in zip(panels[0], entries, strict=True):
            ax.set_title(problem, loc="left")
        for ax in panels[-1]:
            ax.set_xlabel("seconds of training")
        legend(figure, styles)
        for path in paths:
            write_figure(figure, path)


def styles_of(entries: Mapping[str, Sequence[ContestantRuns]]) -> dict[str, LineStyle]:
    """Return a line style for each contestant that trained on a problem, by title."""
    trained = (x for problem_entries in entries.values() for x in problem_entries if x.trained)
    titles = dict.fromkeys(x.contestant.title for x in trained)
    distinct_styles = dict.fromkeys((*METHOD_STYLES.values(), *OTHER_STYLES))
    return dict(zip(titles, cycle(distinct_styles), strict=False))


def _draw(
    ax: Axes,
    curve: str,
    settings: TrainingProblem,
    entries: Sequence[ContestantRuns],
    styles: Mapping[str, LineStyle],
) -> None:
    drawn: list[float] = []
    finished: list[float] = []  # those of runs that did not fail
    for entry in entries:
        for record in entry.trained:
            style = styles[entry.contestant.title]
            looks = [look for look in record.looks if look.seconds > 0.0]  # the axis is logarithmic
            x = [look.seconds for look in looks]
            y = [look.elbo if curve == "elbo" else look.nlpd or 0.0 for look in looks]
            ax.plot(x, y, color=style.colour, linestyle=style.dash, linewidth=1.0)
            drawn += y
            if record.status == "error" and x:
                ax.plot(x[-1:], y[-1:], "x", color=style.colour)
            else:
                finished += y
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    # limits that diverging runs do not stretch
    if curve == "elbo":
        finish(ax)
        # one evaluation has no range
        if finished and (low := min(finished)) < (high := max(finished)):
            ax.set_ylim(low, high + 0.05 * (high - low))
        return
    for target in settings.targets:
        ax.axhline(target, color="#999999", linewidth=0.6)
    if drawn:
        low, high = min((*drawn, *settings.targets)), max(settings.targets)
        room = max(high - low, 0.1)
        top = max((*drawn, high))
        ax.set_ylim(low - 0.1 * room, min(top + 0.1 * room, high + 3.0 * room))
