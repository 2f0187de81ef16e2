"""`svgpbench leaderboard`: the board of the suite, and the runs behind it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cli.clusters import check_dask
from svgpbench.cli.options import RESULTS, AsJson, DaskAddress, Jobs, RecordsFolder
from svgpbench.cli.printing import print_json, say, show
from svgpbench.cli.suite_runs import (
    JoinedEntrant,
    Workers,
    run_missing,
    run_new_entrant,
    time_iterations,
)
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.output.figure import check_figure_path

if TYPE_CHECKING:
    from svgpbench.suite.board import Board
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
    workers = Workers(jobs, dask)
    files = SuiteFiles(file or SHIPPED)
    suite = load_suite(files.suite)
    problems = _selected_problems(suite, preset, problem or ())
    refuse_unknown("entrant of the suite", entrant or (), [x.label for x in suite.entrants])
    entrants = [x for x in suite.entrants if not entrant or x.label in entrant]
    problems = of_groups(problems, group or ())
    joined: JoinedEntrant | None = None
    if add is not None:
        if run or step_times or entrant or file:
            raise UserError(
                "--add runs one new entrant: leave --run, --step-times, --entrant and --suite out"
            )
        if preset is SuitePart.lite:  # one fold of five
            protocol = suite.protocol.model_copy(update={"run_folds": 1})
            suite = suite.model_copy(update={"protocol": protocol})
        joined = _joined(suite, add, problems, results or RESULTS, workers)
        board = _board_with(suite, joined)
    else:
        if step_times:
            time_iterations(files, suite, problems, entrants)
        counts = read_iterations(files.iterations)
        if run:
            results = results or RESULTS
            # what is wrong with the times is told now, and not when all has run
            read_step_times(files.step_times)
            run_missing(suite, counts, problems, entrants, results, workers)
        board = _board(files, suite, problems, entrants, results)
    if figure is not None:
        from svgpbench.suite.figure import draw_board

        draw_board(board, figure)
    _show(suite, board, joined, as_json=as_json, as_markdown=as_markdown)


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


def _joined(
    suite: Suite, text: str, problems: Sequence[SuiteProblem], results: Path, workers: Workers
) -> JoinedEntrant:
    """Run the new entrant of a file or of a method's name on those of the problems that the board has."""
    from svgpbench.suite.joining import added_entrant
    from svgpbench.suite.outcomes import Outcomes

    shipped = Outcomes.read()
    entrant = added_entrant(suite, text)
    on_board = set(shipped.runs["problem"])
    # a share of the possible gain needs the best known NLPD, which these problems have
    problems = [x for x in problems if x.title in on_board]
    if not problems:
        raise _not_on_the_board(shipped)
    return run_new_entrant(suite, shipped, entrant, problems, results, workers)


def _board_with(suite: Suite, joined: JoinedEntrant) -> Board:
    """Return the board of this version, on the problems of a new entrant, with its row."""
    from svgpbench.suite.board import Board

    candidates = [x.label for x in suite.entrants if not x.reference]
    board = Board(joined.outcomes, [*candidates, joined.label])
    if not board.problems:
        raise _no_vote(board)
    return board


def _not_on_the_board(shipped: Outcomes) -> UserError:
    finished = "; ".join(sorted(set(shipped.runs["problem"])))
    return UserError(f"the board has none of these problems yet (it has: {finished})")


def _no_vote(board: Board) -> UserError:
    return UserError(f"no entrant gains on {'; '.join(board.silent)}: there is nothing to rank")


def _show(
    suite: Suite, board: Board, joined: JoinedEntrant | None, *, as_json: bool, as_markdown: bool
) -> None:
    from svgpbench.suite.findings import findings, findings_on
    from svgpbench.suite.tables import board_markdown, board_table, entrant_table, legend

    sentences = findings(board) if joined is None else findings_on(board, joined.label)
    own = [] if joined is None else [entrant_table(board, joined.label, joined.budgets)]
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
