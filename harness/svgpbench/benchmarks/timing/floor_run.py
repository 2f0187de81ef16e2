"""Measurements for the floor, made after the steps were timed: rates, dispatch, and work of each step.

Every backend of the run is measured in a fresh process, pinned as the timed ones, and so are BLAS and
LAPACK. Rates that other processes disturbed are measured again, up to `TRIES` times. The best rates and the
fastest step are kept, because noise only slows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from svgpbench.benchmarks.timing.cases import STEPS
from svgpbench.benchmarks.timing.floor import work_of
from svgpbench.benchmarks.timing.problems import (
    SHAPES,
    TimedProblem,
    make_problem,
    save_problem,
    shape_of,
)
from svgpbench.benchmarks.timing.process import ProcessFailed, StepRefused, TimedProcess
from svgpbench.benchmarks.timing.rates import Rates, Sizes, best_of
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.errors import UserError
from svgpbench.runs.core_locks import timing_cores

BLAS = "BLAS"
"""Source of the rates in a report that were measured through NumPy and SciPy."""

TRIES = 3


def add_floor(report: SpeedReport, on_progress: Callable[[str], None] = lambda text: None) -> None:
    """Add rates, work and dispatch to the report of a run that has just been timed.

    A cell that cannot be counted and a source that fails get no floor, and the report has the reason. After
    Ctrl-C the report is marked `interrupted` and holds what was measured so far. Nothing is measured for a
    run that was interrupted before.
    """
    if report.interrupted:
        return
    cells = [cell for cell in report.cells if not cell.peer and not cell.error]
    sources = list(dict.fromkeys(cell.source for cell in cells))
    problems = list(dict.fromkeys(cell.problem for cell in cells))
    threads = report.settings["threads"]
    try:
        for problem in problems:
            arrays = make_problem(problem)
            for cell in (cell for cell in cells if cell.problem == problem):
                try:
                    cell.work = work_of(arrays, cell.method, cell.step)
                except (UserError, NotImplementedError) as error:
                    # the method needs numbers, and there are only shapes
                    report.without_floor[f"{cell.problem} {cell.step} {cell.method}"] = str(error)
        for source in [BLAS, *sources] if cells else []:
            on_progress(f"floor: {source}")
            backend, device = (source, report.settings["device"])
            if source == BLAS:
                backend, device = "numpy", "cpu"
            try:
                with (
                    timing_cores(threads) as reserved,
                    TimedProcess.of_backend(backend, device, threads, reserved.cores) as process,
                ):
                    report.note_cores(reserved.note)
                    process.wait_until_ready()
                    for problem in problems:
                        rates = _rates(process, source, make_problem(problem), report.settings)
                        report.rates.setdefault(problem, {})[source] = rates
                    _add_dispatch(process, [cell for cell in cells if cell.source == source])
            except ProcessFailed as failure:
                report.without_floor[source] = str(failure)
    except KeyboardInterrupt:
        report.interrupted = True


def _rates(
    process: TimedProcess, source: str, problem: TimedProblem, settings: dict[str, Any]
) -> Rates:
    rows = max(len(problem.y), len(problem.y_new))  # more columns are never slower
    request = {
        "do": "rates",
        "through": "blas" if source == BLAS else "ops",
        "sizes": Sizes(len(problem.Z), rows, problem.model().latents),
    }
    measured = []
    for _ in range(TRIES):
        answer, load = process.ask_metered(request)
        measured.append(Rates(**answer["rates"]))
        if load.other_cores <= settings["max_other_cores"]:
            break
    return best_of(measured)


def _add_dispatch(process: TimedProcess, cells: Sequence[TimedCell]) -> None:
    """Add the seconds of the fastest step at tiny M, b and D to each cell that has such a problem."""
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
                request = {"problem": str(path), "method": cell.method, "step": cell.step}
                try:
                    answer = process.ask({"do": "prepare", **request})
                    seconds[key] = float(answer["call_s"]) / STEPS[cell.step]
                except (ProcessFailed, StepRefused):
                    seconds[key] = None  # its dispatch then counts as rest
            cell.dispatch_s = seconds[key]


def tiny_problem(name: str) -> str | None:
    """Return the name of the tiny problem with the same likelihood, or None."""
    likelihood = shape_of(name).likelihood
    return next(
        (n for n, s in SHAPES.items() if n.startswith("tiny") and s.likelihood == likelihood), None
    )
