"""`svgpbench survive`: stability of natural-gradient steps over a thousand minibatches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.benchmarks.stability.libraries import LIBRARIES, locate_libraries
from svgpbench.benchmarks.stability.map import draw_map, tables
from svgpbench.benchmarks.stability.plan import SHIPPED, cells_of, read_stability_plan
from svgpbench.benchmarks.stability.records import NO_VERDICT, StabilityRecord, read_stability
from svgpbench.benchmarks.stability.run import run_cells
from svgpbench.cli.options import RESULTS, FromRecords, PlanProblems, ResultsFolder
from svgpbench.cli.printing import FAILED, show, tell
from svgpbench.errors import UserError, select
from svgpbench.output.figure import check_figure_path


def survive_command(
    *,
    library: Annotated[
        list[str] | None,
        typer.Option("--library", help=f"Library: {', '.join(LIBRARIES)}; repeat for several."),
    ] = None,
    problem: PlanProblems = None,
    python: Annotated[
        list[str] | None,
        typer.Option(
            "--python",
            metavar="LIBRARY=PATH",
            help="Python interpreter that has a library; repeat for several.",
        ),
    ] = None,
    plan: Annotated[
        Path,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Plan file of your own (TOML): problems and cuts; the shipped plan by default.",
            show_default=False,
        ),
    ] = SHIPPED,
    results: ResultsFolder = RESULTS / "survival",
    from_records: FromRecords = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", min=1, help="Seconds that a cell may take.")
    ] = 600.0,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="File for a figure of the map.")
    ] = None,
) -> None:
    """Map the learning rates at which natural-gradient training fails, with the step and the cause."""
    if figure is not None:
        check_figure_path(figure)
    declared = read_stability_plan(plan)
    problems = select("problem of the plan", problem, declared.problems)
    shown = select("library", library, LIBRARIES)
    if not from_records:
        paths = {}
        for text in python or ():
            name, _, path = text.partition("=")
            if not path:
                raise UserError(
                    f"--python {text}: write LIBRARY=PATH, such as gpflow=/envs/gpflow/bin/python"
                )
            paths[name] = path
        interpreters = locate_libraries(library, paths, declared.backend)
        shown = list(interpreters)
    cells = [
        cell
        for cell in cells_of(declared, {x: tuple(LIBRARIES[x].methods) for x in shown}, problems)
        if LIBRARIES[cell.library].has(declared.problems[cell.problem].likelihood.name)
    ]
    if not cells:
        raise UserError(
            f"none of {', '.join(shown)} has the likelihood of {', '.join(problems)}; name another "
            "--library or --problem"
        )
    if not from_records:
        run_cells(
            declared,
            cells,
            interpreters,
            results,
            timeout,
            on_end=lambda record: tell(f"{record.run.title}: {_end_in_words(record)}"),
        )
    recorded = read_stability(results)
    ended = {cell: recorded[cell] for cell in cells if cell in recorded}
    if not ended:
        raise UserError(
            f"no record of these cells in {results}; leave --from-records out to run them"
        )
    show(*tables(declared, ended))
    if figure is not None:
        draw_map(declared, ended, figure)
    # a failure of the method is a result; only a cell without a verdict is a failure
    if any(record.status in NO_VERDICT for record in ended.values()):
        raise typer.Exit(FAILED)


def _end_in_words(record: StabilityRecord) -> str:
    """Return the end of a run in words, for a line of progress."""
    if record.status == "ok":
        return f"completed {record.step} steps"
    how = "no verdict," if record.status in NO_VERDICT else "failed at"
    message = f" ({record.message})" if record.message else ""
    return f"{how} step {record.step}: {record.label}{message}"
