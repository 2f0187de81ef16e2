"""Times of one method over those of another on the same backend: steps, iterations, and the crossover.

An iteration has k E-steps and an M-step. If the first method's E-step is shorter and its M-step longer, it
is the faster one from a number of E-steps per M-step on, the crossover. Only measured sizes are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np

from svgpbench.benchmarks.timing.problems import FAMILIES, Shape, shape_of
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.benchmarks.timing.rounds import OrderStatistics, spread
from svgpbench.errors import UserError
from svgpbench.output.figure import check_figure_path, write_figure
from svgpbench.output.palette import OTHER_STYLES
from svgpbench.output.panel import STYLE, grid, legend, plain_powers
from svgpbench.output.table import Column, Table, number

E_STEPS = (1, 4, 8)
"""Numbers of E-steps per M-step of the iterations that are shown."""

SUMS = {"E": (1, 0), "M": (0, 1), **{f"{k}E+1M": (k, 1) for k in E_STEPS}}
"""Numbers of E-steps and M-steps whose times, measured apart, are added."""

AS_ONE = "as one"
RATIOS = (*SUMS, AS_ONE)

SIZES = (25, 50, 100, 250, 500, 1000, 2000)
"""Numbers of inducing points that a comparison of two methods should have."""

LIKELIHOODS = {"reg": "Gaussian", "bern": "Bernoulli", "softmax10": "softmax, 10 classes"}


class MethodRatios(NamedTuple):
    """Times of the first method over those of the second on one problem and backend; below 1 it is faster."""

    record: str
    problem: str
    source: str
    device: str
    threads: int
    ratios: Mapping[str, OrderStatistics]  # by names of `RATIOS`
    crossover: float  # E-steps per M-step from which on the first is no slower; ∞ for none

    @property
    def shape(self) -> Shape:
        """Sizes of the problem."""
        return shape_of(self.problem)

    @property
    def family(self) -> str:
        """Name of the problem without its size."""
        return self.problem.partition("-")[0]


def ratios_of(report: SpeedReport, record: str, first: str, second: str) -> list[MethodRatios]:
    """Return the ratios of every problem and backend with times of both steps of both methods.

    A ratio is within a round in which all its steps were undisturbed.
    """
    cells = {(c.problem, c.source, c.method, c.step): c for c in report.cells if not c.untimed}
    rows = []
    for problem, source in dict.fromkeys(key[:2] for key in cells):
        apart, as_one = (
            _clean_rounds(
                [cells.get((problem, source, x, step)) for x in (first, second) for step in steps]
            )
            for steps in (("e_step", "m_step"), ("em_step",))
        )
        if not apart:
            continue
        E, M, E_second, M_second = np.array(apart).T
        ratios = {
            name: spread([*(e * E + m * M) / (e * E_second + m * M_second)])
            for name, (e, m) in SUMS.items()
        }
        ratios[AS_ONE] = spread([one / other for one, other in as_one])
        # differences within a round: what slows all of it slows both methods, and cancels in part
        saved, extra = float(np.median(E_second - E)), float(np.median(M - M_second))
        rows.append(
            MethodRatios(
                *(record, problem, source),
                *(str(report.settings["device"]), int(report.settings["threads"])),
                {name: ratio for name, ratio in ratios.items() if ratio},
                crossover(saved, extra),
            )
        )
    return rows


def crossover(saved: float, extra: float) -> float:
    """Return the E-steps per M-step from which on a method is no slower: `extra` / `saved`.

    `saved` is the time that its E-step takes less, `extra` the time that its M-step takes more. The result is
    0 if it is faster in both, and ∞ if its E-step is no faster: more E-steps then never pay.
    """
    return max(0.0, extra / saved) if saved > 0.0 else float("inf")


def _clean_rounds(cells: Sequence[TimedCell | None]) -> list[list[float]]:
    """Return the median seconds of each cell, by round undisturbed in all of them; none if a cell is None."""
    timed = [cell for cell in cells if cell is not None]
    if len(timed) < len(cells):
        return []
    turns = zip(*(cell.rounds for cell in timed), strict=False)
    return [[r.median_s for r in turn] for turn in turns if all(r.clean for r in turn)]


def missing_sizes(rows: Sequence[MethodRatios]) -> dict[str, list[int]]:
    """Return the sizes of `SIZES` that no record has, by family of problems."""
    measured = {(row.family, row.shape.M) for row in rows}
    return {family: [M for M in SIZES if (family, M) not in measured] for family in FAMILIES}


def notes_of(rows: Sequence[MethodRatios], first: str, second: str) -> list[str]:
    """Return lines on what the numbers mean, on sizes without a record, and how to measure them."""
    missing = {family: sizes for family, sizes in missing_sizes(rows).items() if sizes}
    rows_a_point = [row.shape.b / row.shape.M for row in rows]
    lines = [
        "E, M: a step; kE+1M: k E-steps and an M-step, the sum of steps timed apart; as one: 4E+1M, one call",
        f"crossover: E-steps per M-step from which on {first} is no slower",
        f"b/M is {min(rows_a_point):.2g} to {max(rows_a_point):.2g}",
    ]
    if missing:
        told = "; ".join(
            f"{LIKELIHOODS[family]}, M = {', '.join(map(str, sizes))}"
            for family, sizes in missing.items()
        )
        problems = (f"--problem {name}-M{M}" for name, sizes in missing.items() for M in sizes)
        lines[-1] += f"; no record has both methods at {told}"
        lines.append(
            f"to measure them: `svgpbench speed --backend jax --method {first} --method {second} "
            f"--step e_step --step m_step --step em_step {' '.join(problems)} --no-floor --out FILE`"
        )
    return lines


def ratios_table(rows: Sequence[MethodRatios], first: str, second: str) -> Table:
    """Return a table with a row per record, problem and backend: median ratios and the quartiles."""

    def quartiles(x: OrderStatistics) -> str:
        return f"{x.median:.2f} ({x.q1:.2f}–{x.q3:.2f})"

    columns = (
        *(Column("problem", wrap=False), Column("backend", wrap=False), Column("on", wrap=False)),
        *(number(name, quartiles) for name in RATIOS),
        number("crossover", _crossover_text),
        Column("record", wrap=False),
    )
    shown = [
        [
            row.problem,
            row.source,
            _machine(row),
            *map(row.ratios.get, RATIOS),
            *row[-1:],
            row.record,
        ]
        for row in _ordered(rows)
    ]
    return Table(columns, shown, f"Time of {first} over that of {second}, by backend")


def summary_table(rows: Sequence[MethodRatios], first: str, second: str) -> Table:
    """Return a table with a row per problem and machine: least and most over backends and records."""
    groups: dict[tuple[str, str], list[MethodRatios]] = {}
    for row in _ordered(rows):
        groups.setdefault((row.problem, _machine(row)), []).append(row)
    shown = []
    for (problem, machine), of_group in groups.items():
        shape = shape_of(problem)
        ratios = ([r.ratios[x].median for r in of_group if x in r.ratios] for x in RATIOS)
        shown.append(
            [
                *(LIKELIHOODS.get(of_group[0].family, problem), shape.M, shape.b, machine),
                ", ".join(dict.fromkeys(row.source for row in of_group)),
                *(_least_and_most([f"{x:.2f}" for x in sorted(of_name)]) for of_name in ratios),
                _least_and_most(
                    [_crossover_text(x) for x in sorted(r.crossover for r in of_group)]
                ),
            ]
        )
    columns = (
        *(Column("likelihood"), number("M"), number("b"), Column("on", wrap=False)),
        Column("backends", optional=True),
        *(number(name) for name in (*RATIOS, "crossover")),
    )
    return Table(columns, shown, f"Time of {first} over that of {second}")


def _ordered(rows: Sequence[MethodRatios]) -> list[MethodRatios]:
    families = list(dict.fromkeys([*FAMILIES, *(row.family for row in rows)]))
    return sorted(rows, key=lambda r: (families.index(r.family), r.shape.M, r.device, r.threads))


def _machine(row: MethodRatios) -> str:
    return f"{row.threads} thread{'s' * (row.threads > 1)}" if row.device == "cpu" else row.device


def _least_and_most(texts: Sequence[str]) -> str | None:
    return "–".join(dict.fromkeys((texts[0], texts[-1]))) if texts else None


def _crossover_text(value: float) -> str:
    return "never" if value == float("inf") else f"{value:.1f}" if value <= 10.0 else "> 10"


def draw_ratios(rows: Sequence[MethodRatios], first: str, second: str, path: Path) -> str:
    """Draw the ratios against M, a panel per family of problems, and return the caption.

    Raises `UserError` if the file cannot be written.
    """
    check_figure_path(path)
    families = list(dict.fromkeys(row.family for row in _ordered(rows)))
    styles = dict(zip(SUMS, OTHER_STYLES, strict=False))
    with matplotlib.rc_context(STYLE):
        figure, axes = grid(1, len(families), width=2.2, height=2.3)
        for panel, family in zip(axes[0], families, strict=True):
            panel.sharey(axes[0][0])
            of_family = [row for row in rows if row.family == family]
            sizes = np.array([row.shape.M for row in of_family])
            for name, (colour, dash) in styles.items():
                medians = np.array([row.ratios[name].median for row in of_family])
                middle = [np.median(medians[sizes == M]) for M in np.unique(sizes)]
                panel.plot(np.unique(sizes), middle, color=colour, linestyle=dash, linewidth=1.4)
                panel.plot(sizes, medians, "o", color=colour, markersize=2.2)
            panel.axhline(1.0, color="0.6", linewidth=0.6, zorder=0)
            panel.set_xscale("log")
            # logarithmic: twice as fast is as far from 1 as twice as slow
            panel.set_yscale("log")
            plain_powers(panel.yaxis)
            panel.set_xticks(np.unique(sizes), [f"{M}" for M in np.unique(sizes)])
            panel.set_xticks([], minor=True)
            panel.set_title(LIKELIHOODS.get(family, family))
            panel.set_xlabel("M")
        axes[0][0].set_ylabel(f"time of {first} / {second}")
        legend(figure, styles)
        write_figure(figure, path)
    return (
        f"Time of {first} over that of {second} on the same backend, against M; below 1 {first} is faster. "
        "A dot is a backend of a record, a line the median of the dots. kE+1M: k E-steps and an M-step, the "
        "sum of steps timed apart."
    )


def ratios_of_records(
    reports: Mapping[str, SpeedReport], first: str, second: str
) -> list[MethodRatios]:
    """Return the ratios of reports by name. Raises `UserError` if none has both steps of both methods."""
    rows = [row for name, x in reports.items() for row in ratios_of(x, name, first, second)]
    if not rows:
        raise UserError(f"no record has times of an E-step and an M-step of {first} and {second}")
    return rows
