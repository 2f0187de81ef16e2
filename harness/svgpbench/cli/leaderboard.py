"""`svgpbench leaderboard`: the board of the suite, and the runs behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

import typer

from svgpbench.atomic import refuse_unwritable
from svgpbench.backends import check_backend
from svgpbench.cli.clusters import check_dask, cluster_executor
from svgpbench.cli.options import RESULTS, AsJson, DaskAddress, Jobs, RecordsFolder
from svgpbench.cli.printing import FAILED, INTERRUPTED, print_json, say, show, tell
from svgpbench.cli.progress import cell_title, reporter
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.output.figure import check_figure_path

if TYPE_CHECKING:
    from svgpbench.config import CellConfig
    from svgpbench.runs.events import Event
    from svgpbench.runs.slots import Executor
    from svgpbench.suite.board import Board
    from svgpbench.suite.cells import Budgets, SuiteRun
    from svgpbench.suite.outcomes import Outcomes
    from svgpbench.suite.schema import Entrant, Suite, SuiteFiles, SuiteProblem


class SuitePart(StrEnum):
    """Parts of the suite."""

    lite = "lite"
    full = "full"


def leaderboard_command(
    *,
    run: Annotated[
        bool, typer.Option("--run", help="Run what is missing; finished runs are kept.")
    ] = False,
    add: Annotated[
        str | None,
        typer.Option(
            "--add",
            metavar="METHOD|FILE.toml",
            help="Run a method of your own on the problems, and give it a place on the board.",
        ),
    ] = None,
    step_times: Annotated[
        bool,
        typer.Option("--step-times", help="Time an iteration of every entrant on this machine."),
    ] = False,
    preset: Annotated[
        SuitePart, typer.Option("--preset", help="All problems, or eight small ones.")
    ] = SuitePart.full,
    problem: Annotated[
        list[str] | None, typer.Option("--problem", help="Name of a problem; repeat for several.")
    ] = None,
    entrant: Annotated[
        list[str] | None, typer.Option("--entrant", help="Name of an entrant; repeat for several.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            help="Only problems of a likelihood, or of a size such as rows<2000, rows>=10000, "
            "inputs<10; repeat to narrow.",
        ),
    ] = None,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    results: RecordsFolder = None,
    file: Annotated[
        Path | None,
        typer.Option("--suite", metavar="FILE.toml", help="Suite of your own in place of ours."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="File for a figure of the board."),
    ] = None,
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all tables of the board as Markdown.")
    ] = False,
) -> None:
    """Show which method is best on the problems of the suite, or run them."""
    from svgpbench.suite.cells import read_iterations
    from svgpbench.suite.schema import SHIPPED, SuiteFiles, load_suite, of_groups
    from svgpbench.suite.step_times import read_step_times

    if as_json and as_markdown:
        raise UserError("--json and --markdown exclude each other; give one")
    check_dask(dask, jobs)
    if figure is not None:
        check_figure_path(figure)
    files = SuiteFiles(file or SHIPPED)
    suite = load_suite(files.suite)
    problems = _selected_problems(suite, preset, problem or ())
    refuse_unknown("entrant of the suite", entrant or (), [x.label for x in suite.entrants])
    entrants = [x for x in suite.entrants if not entrant or x.label in entrant]
    problems = of_groups(problems, group or ())
    added: AddedEntrant | None = None
    if add is not None:
        if run or step_times or entrant or file:
            raise UserError(
                "--add runs one new entrant: leave --run, --step-times, --entrant and --suite out"
            )
        if preset is SuitePart.lite:  # one fold of five
            protocol = suite.protocol.model_copy(update={"run_folds": 1})
            suite = suite.model_copy(update={"protocol": protocol})
        added = _added(suite, add, problems, results or RESULTS, jobs, dask)
        board = added.board
    else:
        if step_times:
            _measure(files, suite, problems, entrants)
        counts = read_iterations(files.iterations)
        if run:
            results = results or RESULTS
            # what is wrong with the times is told now, and not when all has run
            read_step_times(files.step_times)
            timed = _with_iterations(suite, counts, problems, entrants)
            if not _run(suite, counts, timed, entrants, results, jobs, dask):
                _stop()
        board = _board(files, suite, problems, entrants, results)
    if figure is not None:
        from svgpbench.suite.figure import draw_board

        draw_board(board, figure)
    _show(suite, board, added, as_json=as_json, as_markdown=as_markdown)


def _board(
    files: SuiteFiles,
    suite: Suite,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
    results: Path | None,
) -> Board:
    """Return the board of a folder of records, or that of this version if none is named."""
    from svgpbench.suite.board import Board
    from svgpbench.suite.outcomes import Outcomes, read_outcomes
    from svgpbench.suite.schema import SHIPPED_FILES

    candidates = [x.label for x in entrants if not x.reference]
    if not candidates:
        raise UserError("a reference has no rank: without --entrant it stands below the board")
    if is_shipped := results is None and files == SHIPPED_FILES:
        outcomes = Outcomes.read()
    else:
        results = results or RESULTS
        # all entrants, as the best known is theirs
        outcomes = read_outcomes(suite, problems, suite.entrants, results, files)
    # references are not ranked: they have no rates to search, and stand beside the board
    board = Board(outcomes, candidates, [x.title for x in problems])
    if board.silent and not board.problems:
        raise _no_vote(board)
    if not board.entrants and is_shipped:
        raise _not_on_the_board(outcomes)
    if not board.entrants:
        raise UserError(
            f"no entrant of the suite has finished a problem in {results}; `svgpbench leaderboard --run` "
            "runs them, and `--add METHOD` shows the row of one that was added"
        )
    return board


def _not_on_the_board(shipped: Outcomes) -> UserError:
    finished = "; ".join(sorted(set(shipped.runs["problem"])))
    return UserError(f"the board has none of these problems yet (it has: {finished})")


def _no_vote(board: Board) -> UserError:
    return UserError(f"no entrant gains on {'; '.join(board.silent)}: there is nothing to rank")


def _show(
    suite: Suite, board: Board, added: AddedEntrant | None, *, as_json: bool, as_markdown: bool
) -> None:
    from svgpbench.suite.findings import findings, findings_on
    from svgpbench.suite.tables import board_markdown, board_table, entrant_table, legend

    sentences = findings(board) if added is None else findings_on(board, added.label)
    own = [] if added is None else [entrant_table(board, added.label, added.budgets)]
    if as_json:
        print_json(board.to_json() | {"findings": sentences})
        return
    if as_markdown:
        typer.echo(board_markdown(suite, board, sentences, own))
        return
    for sentence in sentences:
        say(f"* {sentence}")
    typer.echo()
    show(*own, board_table(board))
    typer.echo()
    say(*legend(board))


def _selected_problems(suite: Suite, preset: SuitePart, names: Sequence[str]) -> list[SuiteProblem]:
    refuse_unknown("problem of the suite", names, [x.title for x in suite.problems])
    return [
        x
        for x in suite.problems
        if (x.title in names if names else preset is SuitePart.full or x.lite)
    ]


class AddedEntrant(NamedTuple):
    """A new entrant with its budgets, and the board with its row."""

    label: str
    budgets: Budgets
    board: Board


def _added(
    suite: Suite,
    text: str,
    problems: Sequence[SuiteProblem],
    results: Path,
    jobs: int | None,
    dask: str | None,
) -> AddedEntrant:
    """Check a new entrant, run it on the problems, and return the board with its row."""
    from svgpbench.checks import quick_check
    from svgpbench.suite.board import Board
    from svgpbench.suite.joining import (
        added_entrant,
        entrants_file,
        own_iterations,
        with_entrant,
    )
    from svgpbench.suite.outcomes import Outcomes

    shipped = Outcomes.read()
    entrant = added_entrant(suite, text)
    on_board = set(shipped.runs["problem"])
    # a share of the possible gain needs the best known NLPD, which these problems have
    problems = [x for x in problems if x.title in on_board]
    if not problems:
        raise _not_on_the_board(shipped)
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
            # one worker: a second would take caches and memory bandwidth from the timed one
            lambda cells, folder: _run_cells(cells, folder, 1, None, _tell_of_failure),
            tell,
        )
    except KeyboardInterrupt:
        tell("stopped while timing; the same command times anew")
        raise
    # without a budget are those whose timed runs failed
    timed = [x for x in problems if (x.title, entrant.label) in budgets]
    if not timed:
        raise UserError(f"{entrant.label} failed on every problem while it was timed; see above")
    if not _run(suite, budgets, timed, [entrant], results, jobs, dask):
        _stop()
    together = with_entrant(suite, shipped, problems, entrant, budgets, ms, results)
    candidates = [x.label for x in suite.entrants if not x.reference]
    board = Board(together, [*candidates, entrant.label], [x.title for x in problems])
    if not board.problems:
        raise _no_vote(board)
    return AddedEntrant(entrant.label, budgets, board)


def _tell_of_failure(event: Event) -> None:
    """Print a line for a timed run that failed; the scores of the others mean nothing."""
    from svgpbench.runs.events import Finished

    if isinstance(event, Finished) and event.record.status != "ok":
        record = event.record
        tell(f"{cell_title(record.config)}: {record.status} {record.message}".rstrip())


def _stop() -> NoReturn:
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
    what = "no number of iterations yet, which --step-times measures"
    if len(lacking) == len(problems):
        title, label = next(iter(lacking.items()))
        raise UserError(f"entrant {label!r} has on problem {title!r} {what}")
    if lacking:
        # now, and not after hours of runs of the problems before
        tell(f"left out, as they have {what}: {'; '.join(lacking)}")
    return [x for x in problems if x.title not in lacking]


def _run(
    suite: Suite,
    budgets: Budgets,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
    results: Path,
    jobs: int | None,
    dask: str | None,
) -> bool:
    """Run what is missing of the protocol; return False if it was interrupted."""
    from svgpbench.runs.events import Noticed
    from svgpbench.suite.protocol import RecordFinder, run_protocol

    if dask is None:  # on a cluster only its workers need the backend
        check_backend(suite.protocol.backend.partition(":")[0])
    find_record = RecordFinder(results)
    with (
        reporter() as on_event,
        cluster_executor(dask, None, None, lambda line: on_event(Noticed(line))) as executor,
    ):
        place = {problem.title: number for number, problem in enumerate(problems, 1)}

        def execute(tasks: list[SuiteRun]) -> bool:
            tell(_described(tasks, place))
            cells = [task.cell for task in tasks]
            is_whole = _run_cells(cells, results, jobs, executor, on_event)
            # a run that failed for its machine counts from now on; it would be missing for ever
            find_record.try_all(tasks)
            return is_whole

        # one problem after the other on this machine, so that problems are finished one by one
        at_once = 1 if executor is None else len(problems)
        return run_protocol(
            suite, budgets, problems, entrants, find_record, execute, at_once=at_once
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


def _described(tasks: Sequence[SuiteRun], place: Mapping[str, int]) -> str:
    """Return a line of progress: the problems and stages of tasks."""
    counts = Counter((task.problem.title, task.stage) for task in tasks)
    return "; ".join(
        f"{title} ({place[title]} of {len(place)}), {stage}: {count} to run"
        for (title, stage), count in counts.items()
    )


def _measure(
    files: SuiteFiles,
    suite: Suite,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
) -> None:
    """Time iterations, and write the tables of times and iterations beside the suite's file."""
    from svgpbench.suite.cells import read_iterations
    from svgpbench.suite.step_times import measured, read_step_times, write_times

    check_backend(suite.protocol.backend.partition(":")[0])
    # before the timing, whose times would be lost
    refuse_unwritable(files.suite.parent, f"step times beside {files.suite}")
    read_step_times(files.step_times)
    read_iterations(files.iterations)
    with reporter() as on_event:
        times = measured(
            suite,
            problems,
            entrants,
            lambda cells, folder: _run_cells(cells, folder, 1, None, on_event),
        )
    write_times(suite, times, files)
