"""Runs of the suite: those that its board lacks, those of a new entrant, and timed iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from svgpbench.atomic import refuse_unwritable
from svgpbench.backends import check_backend
from svgpbench.cli.clusters import cluster_executor
from svgpbench.cli.printing import FAILED, INTERRUPTED, show, tell
from svgpbench.cli.progress import cell_title, reporter
from svgpbench.errors import UserError

if TYPE_CHECKING:
    from svgpbench.config import CellConfig
    from svgpbench.runs.events import Event
    from svgpbench.runs.slots import Executor
    from svgpbench.suite.cells import Budgets, SuiteRun
    from svgpbench.suite.outcomes import Outcomes
    from svgpbench.suite.schema import Entrant, Suite, SuiteFiles, SuiteProblem


class Workers(NamedTuple):
    """Workers that compute the runs: processes of this machine, or those of a Dask scheduler."""

    jobs: int | None
    dask: str | None


def run_missing(
    suite: Suite,
    budgets: Budgets,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
    results: Path,
    workers: Workers,
) -> None:
    """Run what the protocol still lacks in a folder of records.

    Raises `UserError` if no problem has its numbers of iterations, or if the backend is not installed;
    `typer.Exit` if it was interrupted.
    """
    from svgpbench.runs.events import Noticed
    from svgpbench.suite.protocol import RecordFinder, run_protocol

    problems = _with_iterations(suite, budgets, problems, entrants)
    if workers.dask is None:  # on a cluster only its workers need the backend
        check_backend(suite.protocol.backend.partition(":")[0])
    find_record = RecordFinder(results)
    with (
        reporter() as on_event,
        cluster_executor(
            workers.dask, None, None, lambda line: on_event(Noticed(line))
        ) as executor,
    ):
        place = {problem.title: number for number, problem in enumerate(problems, 1)}

        def execute(tasks: list[SuiteRun]) -> bool:
            tell(_described(tasks, place))
            cells = [task.cell for task in tasks]
            is_whole = _run_cells(cells, results, workers.jobs, executor, on_event)
            # a run that failed for its machine counts from now on; it would be missing for ever
            find_record.try_all(tasks)
            return is_whole

        # one problem after the other on this machine, so that problems are finished one by one
        at_once = 1 if executor is None else len(problems)
        is_whole = run_protocol(
            suite, budgets, problems, entrants, find_record, execute, at_once=at_once
        )
    if not is_whole:
        tell("stopped; the same command goes on from here")
        raise typer.Exit(INTERRUPTED)


def _with_iterations(
    suite: Suite, budgets: Budgets, problems: Sequence[SuiteProblem], entrants: Sequence[Entrant]
) -> list[SuiteProblem]:
    """Return the problems that can run, and print a line on the others.

    Raises `UserError` if an entrant lacks its number of iterations on every problem.
    """
    lacking = {
        problem.title: entrant.label
        for problem in problems
        for entrant in entrants
        if suite.takes_part(entrant, problem) and (problem.title, entrant.label) not in budgets
    }
    if len(lacking) == len(problems):
        title, label = next(iter(lacking.items()))
        raise UserError(
            f"entrant {label!r} has no number of iterations on problem {title!r} yet; "
            "--step-times measures it"
        )
    if lacking:
        # now, and not after hours of runs of the problems before
        listed = "; ".join(lacking)
        tell(f"left out without a number of iterations, which --step-times measures: {listed}")
    return [x for x in problems if x.title not in lacking]


def _described(tasks: Sequence[SuiteRun], place: Mapping[str, int]) -> str:
    """Return a line of progress: the problems and stages of tasks."""
    counts = Counter((task.problem.title, task.stage) for task in tasks)
    return "; ".join(
        f"{title} ({place[title]} of {len(place)}), {stage}: {count} to run"
        for (title, stage), count in counts.items()
    )


def _run_cells(
    cells: list[CellConfig],
    results: Path,
    jobs: int | None,
    executor: Executor | None,
    on_event: Callable[[Event], None],
) -> bool:
    from svgpbench.runs.pool import run_cells

    summary = run_cells(cells, results=results, jobs=jobs, on_event=on_event, executor=executor)
    return not summary.interrupted


class JoinedEntrant(NamedTuple):
    """A new entrant that ran: its label, its budgets, and the outcomes of the suite with its own."""

    label: str
    budgets: Budgets
    outcomes: Outcomes


def run_new_entrant(
    suite: Suite,
    shipped: Outcomes,
    entrant: Entrant,
    problems: Sequence[SuiteProblem],
    results: Path,
    workers: Workers,
) -> JoinedEntrant:
    """Check a new entrant, time its iterations, and run it on the problems.

    Raises `UserError` if it takes part in none of them, or failed on all while it was timed; `typer.Exit` if
    its steps are wrong, or if it was interrupted.
    """
    from svgpbench.checks import quick_check
    from svgpbench.suite.joining import entrants_file, own_iterations, with_entrant

    problems = [x for x in problems if suite.takes_part(entrant, x)]
    if not problems:
        raise UserError(
            f"{entrant.label} takes part in none of these problems: its likelihoods or rows_below say so"
        )
    tell(f"checking {entrant.name} on {suite.protocol.backend}")
    # before any run: the rank of a method whose steps are wrong would mean nothing
    report = quick_check([suite.protocol.backend], methods=[entrant.name])
    if not report.ok:
        show(*report.tables(), notes=report.lines())
        raise typer.Exit(FAILED)
    # before the timing, whose times would be lost
    refuse_unwritable(results, "records")
    try:
        budgets, ms = own_iterations(
            suite,
            problems,
            entrant,
            entrants_file(results, suite.experiment),
            _run_timed(_tell_of_failure),
            tell,
        )
    except KeyboardInterrupt:
        tell("stopped while timing; the same command times anew")
        raise
    # without a budget are those whose timed runs failed
    timed = [x for x in problems if (x.title, entrant.label) in budgets]
    if not timed:
        raise UserError(f"{entrant.label} failed on every problem while it was timed; see above")
    run_missing(suite, budgets, timed, [entrant], results, workers)
    outcomes = with_entrant(suite, shipped, problems, entrant, budgets, ms, results)
    return JoinedEntrant(entrant.label, budgets, outcomes)


def _tell_of_failure(event: Event) -> None:
    """Print a line for a timed run that failed; the scores of the others mean nothing."""
    from svgpbench.runs.events import Finished

    if isinstance(event, Finished) and event.record.status != "ok":
        record = event.record
        tell(f"{cell_title(record.config)}: {record.status} {record.message}".rstrip())


def time_iterations(
    files: SuiteFiles, suite: Suite, problems: Sequence[SuiteProblem], entrants: Sequence[Entrant]
) -> None:
    """Time iterations, and write the tables of times and iterations beside the suite's file.

    Raises `UserError` if these tables are damaged or cannot be written, or if the backend is not installed.
    """
    from svgpbench.suite.cells import read_iterations
    from svgpbench.suite.step_times import measured, read_step_times, write_times

    check_backend(suite.protocol.backend.partition(":")[0])
    # before the timing, whose times would be lost
    refuse_unwritable(files.suite.parent, f"step times beside {files.suite}")
    read_step_times(files.step_times)
    read_iterations(files.iterations)
    with reporter() as on_event:
        times = measured(suite, problems, entrants, _run_timed(on_event))
    write_times(suite, times, files)


def _run_timed(on_event: Callable[[Event], None]) -> Callable[[list[CellConfig], Path], bool]:
    """Return a function that runs cells in one worker.

    A second worker would take caches and memory bandwidth from the timed one.
    """
    return lambda cells, folder: _run_cells(cells, folder, 1, None, on_event)
