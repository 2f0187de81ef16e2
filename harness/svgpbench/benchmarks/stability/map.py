"""Stability map as tables and a figure: one row per method, one column per value of an axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from svgpbench.benchmarks.records import LABELS, Status
from svgpbench.benchmarks.stability.libraries import title
from svgpbench.benchmarks.stability.plan import AxisPoint, StabilityCell, StabilityPlan
from svgpbench.benchmarks.stability.records import StabilityRecord
from svgpbench.output.table import Column, Table

AXES = {"rate": "rate γ", "dtype": "dtype", "jitter": "jitter", "inducing": "M"}
# palette of Okabe and Ito for colour-blind readers; every cell has text too
COLOURS: dict[Status, str] = {
    "ok": "#56B4E9",
    "not_pd": "#D55E00",
    "negative_variance": "#E69F00",
    "nan": "#CC79A7",
    "diverged": "#F0E442",
}
NO_VERDICT = "#BBBBBB"
SHORT: dict[Status, str] = {"not_pd": "not PD", "negative_variance": "v < 0"}
Row = tuple[str, str]
"""Library and method."""


def columns(plan: StabilityPlan) -> Iterator[tuple[str, str, AxisPoint]]:
    """Yield axis, value as text, and point of every column. Every axis includes the centre."""
    for axis in AXES:
        for value in plan.along(axis):
            text = value if isinstance(value, str) else f"{value:g}"
            yield axis, text, plan.centre.model_copy(update={axis: value})


def rows(
    plan: StabilityPlan, ended: Mapping[StabilityCell, StabilityRecord], problem: str
) -> list[Row]:
    """Return the methods that have records of a problem of the plan, in the order of the records."""
    cells = (c for c in ended if c.problem == problem)
    own = (c for c in cells if c.plan == plan.digest(problem, c.library))
    return list(dict.fromkeys((c.library, c.method) for c in own))


def words(record: StabilityRecord | None) -> str:
    """Return the step and cause of a failure, `completed`, or "–" if there is no record."""
    if record is None:
        return "–"
    if record.status == "ok":
        return record.label
    return f"{record.step}: {SHORT.get(record.status, record.label)}"


def tables(plan: StabilityPlan, ended: Mapping[StabilityCell, StabilityRecord]) -> Iterator[Table]:
    """Yield one table per problem that has records. The cells are those of `words`."""
    for problem in plan.problems:
        values = [
            [title(*row), *map(words, _records_of(plan, ended, problem, row))]
            for row in rows(plan, ended, problem)
        ]
        if not values:
            continue
        header = [Column(f"{AXES[axis]} {text}") for axis, text, _ in columns(plan)]
        yield Table(
            [Column("method", wrap=False), *header], values, f"{problem}, {plan.steps} steps"
        )


def _records_of(
    plan: StabilityPlan, ended: Mapping[StabilityCell, StabilityRecord], problem: str, row: Row
) -> list[StabilityRecord | None]:
    """Return the record of a row in every column, or None where there is none."""
    return [ended.get(plan.cell(problem, *row, point, plan.seed)) for _, _, point in columns(plan)]


def draw_map(
    plan: StabilityPlan, ended: Mapping[StabilityCell, StabilityRecord], out: Path
) -> None:
    """Draw the map. A cell that completed all steps shows its last bound, in nats per datum.

    Raises `UserError` if the file cannot be written.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from svgpbench.output.figure import write_figure
    from svgpbench.output.panel import plain

    methods = {problem: names for problem in plan.problems if (names := rows(plan, ended, problem))}
    heights = [len(names) for names in methods.values()]
    width, height = 0.72 * len(list(columns(plan))) + 2.2, 0.42 * sum(heights) + 1.1 * len(methods)
    figure = Figure((width, height), layout="constrained")
    axes = figure.subplots(len(methods), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, (problem, names) in zip(axes, methods.items(), strict=True):
        ax.set_title(problem, loc="left", fontsize=10, pad=26)
        _draw_rows(ax, plan, [_records_of(plan, ended, problem, row) for row in names])
        ax.set_yticks(range(len(names)), [plain(title(*row)) for row in names], fontsize=8)
    seen = {record.status for record in ended.values()}
    handles = [
        Patch(color=colour, label=LABELS.get(status, status))
        for status, colour in COLOURS.items()
        if status in seen
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8
    )
    write_figure(figure, out, dpi=150)


def _draw_rows(ax: Any, plan: StabilityPlan, grid: list[list[StabilityRecord | None]]) -> None:
    """Draw the cells of one problem as boxes, with names of axes above and values below.

    A box has the bound per datum of a run that completed, or the step and the cause of a failure.
    """
    from matplotlib.patches import Rectangle

    positions, last_axis = [-1.35], ""
    for axis, _, _ in columns(plan):
        # a gap before a new axis
        positions.append(positions[-1] + (1.0 if axis == last_axis else 1.35))
        if axis != last_axis:
            ax.text(positions[-1] - 0.45, -0.95, AXES[axis], fontsize=8, va="bottom", weight="bold")
        last_axis = axis
    positions = positions[1:]
    for y, records_of_row in enumerate(grid):
        for x, (_, _, point), record in zip(positions, columns(plan), records_of_row, strict=True):
            if record is None:
                continue
            colour = COLOURS.get(record.status, NO_VERDICT)
            edge = "black" if point == plan.centre else "white"
            ax.add_patch(
                Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, facecolor=colour, edgecolor=edge)
            )
            text = f"step {record.step}\n{SHORT.get(record.status, record.label)}"
            if record.status == "ok":
                text = f"{record.bound_a_datum:.3g}"
            ax.text(x, y, text, ha="center", va="center", fontsize=6.5)
    ax.set_xlim(-0.8, positions[-1] + 0.6)
    ax.set_ylim(len(grid) - 0.4, -0.6)
    ax.set_xticks(positions, [text for _, text, _ in columns(plan)], fontsize=7)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
