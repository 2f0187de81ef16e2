"""Measure what a floor needs, after the steps were timed: rates, dispatch, and the work of each step.

Every backend of the run measures in a fresh process pinned as the timed ones were, and so do BLAS and
LAPACK. A measurement that other processes disturbed is repeated a few times; the best of each rate and the
fastest step stand, for noise only ever slows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from svgpbench.benchmarks.timing.cases import STEPS
from svgpbench.benchmarks.timing.floor import work_of
from svgpbench.benchmarks.timing.problems import (
    SHAPES,
    Problem,
    make_problem,
    save_problem,
    shape_of,
)
from svgpbench.benchmarks.timing.process import ProcessFailed, TimedProcess
from svgpbench.benchmarks.timing.rates import Rates, Sizes, best_of
from svgpbench.benchmarks.timing.report import Cell, SpeedReport
from svgpbench.errors import UserError
from svgpbench.runs.cores import job_cores

BLAS = "BLAS"
"""Who measured through NumPy and SciPy, under the rates of a report."""

TRIES = 3


def add_floor(report: SpeedReport, on_progress: Callable[[str], None] = lambda text: None) -> None:
    """Add rates, work and dispatch to the report of a run that has just been timed.

    What cannot be counted or does not answer stays without a floor, and the report says why. After Ctrl-C it
    is marked `interrupted` and holds what had been measured; of an interrupted run nothing is measured.
    """
    if report.interrupted:
        return
    cells = [cell for cell in report.cells if not cell.peer and not cell.error]
    sources = list(dict.fromkeys(cell.source for cell in cells))
    problems = list(dict.fromkeys(cell.problem for cell in cells))
    for problem in problems:
        made = make_problem(problem)
        for cell in cells:
            if cell.problem == problem:
                _count(report, cell, made)
    try:
        for source in [BLAS, *sources] if cells else []:
            on_progress(f"floor: {source}")
            try:
                with _process(report, source) as process:
                    for problem in problems:
                        found = _rates(process, source, make_problem(problem), report.settings)
                        report.rates.setdefault(problem, {})[source] = found
                    _add_dispatch(process, [cell for cell in cells if cell.source == source])
            except ProcessFailed as failure:
                report.without_floor[source] = str(failure)
    except KeyboardInterrupt:
        report.interrupted = True


def _count(report: SpeedReport, cell: Cell, problem: Problem) -> None:
    try:
        cell.work = work_of(problem, cell.method, cell.step)
    except (
        UserError,
        NotImplementedError,
    ) as error:  # a method decides by numbers, which shapes lack
        report.without_floor[f"{cell.problem} {cell.step} {cell.method}"] = str(error)


@contextmanager
def _process(report: SpeedReport, source: str) -> Iterator[TimedProcess]:
    threads, device = report.settings["threads"], report.settings["device"]
    backend, device = ("numpy", "cpu") if source == BLAS else (source, device)
    with TimedProcess.of_backend(backend, device, threads, job_cores(1, threads)[0]) as process:
        process.wait_until_ready()
        yield process


def _rates(process: TimedProcess, source: str, problem: Problem, settings: dict[str, Any]) -> Rates:
    rows = max(len(problem.y), len(problem.y_new))  # more columns are never slower
    request = {
        "do": "rates",
        "through": "blas" if source == BLAS else "ops",
        "sizes": Sizes(len(problem.Z), rows, problem.model().latents),
    }
    found = []
    for _ in range(TRIES):
        answer, load = process.ask_metered(request)
        found.append(Rates(**answer["rates"]))
        if load.other_cores <= settings["max_other_cores"]:
            break
    return best_of(found)


def _add_dispatch(process: TimedProcess, cells: Sequence[Cell]) -> None:
    """The fastest call of each step where M, b and D are a few; None where there is no such problem."""
    seconds: dict[tuple[str, str, str], float | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cell in cells:
            tiny = tiny_problem(cell.problem)
            if tiny is None:
                continue
            key = (tiny, cell.method, cell.step)
            if key not in seconds:
                path = Path(folder) / f"{tiny}.npz"
                save_problem(make_problem(tiny), path)
                seconds[key] = _fastest(process, path, cell)
            cell.dispatch_s = seconds[key]


def _fastest(process: TimedProcess, path: Path, cell: Cell) -> float | None:
    request = {"do": "prepare", "problem": str(path), "method": cell.method, "step": cell.step}
    try:
        return float(process.ask(request)["call_s"]) / STEPS[cell.step]
    except ProcessFailed:
        return None  # the step itself was timed: what it spends on dispatch stays in the rest


def tiny_problem(name: str) -> str | None:
    """The problem of the same likelihood at shapes of a few; None where there is none."""
    likelihood = shape_of(name).likelihood
    return next(
        (n for n, s in SHAPES.items() if n.startswith("tiny") and s.likelihood == likelihood), None
    )
