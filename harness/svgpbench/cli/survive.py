"""`svgpbench survive`: stability of natural-gradient steps over a thousand minibatches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.benchmarks.stability import records
from svgpbench.benchmarks.stability.libraries import LIBRARIES, chosen, locate_libraries
from svgpbench.benchmarks.stability.map import draw_map, tables
from svgpbench.benchmarks.stability.plan import SHIPPED, cells_of, read_plan
from svgpbench.benchmarks.stability.records import StabilityRecord
from svgpbench.benchmarks.stability.run import run_cells
from svgpbench.cli.options import RESULTS, ResultsFolder
from svgpbench.cli.printing import show, tell
from svgpbench.errors import UserError
from svgpbench.output.figure import check_figure_path

NO_VERDICT = 1


def survive_command(
    *,
    library: Annotated[
        list[str] | None,
        typer.Option("--library", help=f"{', '.join(LIBRARIES)}; repeat for several."),
    ] = None,
    problem: Annotated[
        list[str] | None,
        typer.Option("--problem", help="A problem of the plan; repeat for several."),
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option("--python", metavar="LIBRARY=PATH", help="Python that has a library."),
    ] = None,
    plan: Annotated[
        Path, typer.Option("--plan", metavar="FILE", help="Cuts and problems of your own (TOML).")
    ] = SHIPPED,
    results: ResultsFolder = RESULTS / "survival",
    from_records: Annotated[
        bool, typer.Option("--from-records", help="Run nothing; show what is recorded.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", min=1, help="Seconds that a cell may take.")
    ] = 600.0,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the map as well.")
    ] = None,
) -> None:
    """Map which natural gradients live through a thousand steps, and where and of what others die."""
    if figure is not None:
        check_figure_path(figure)
    declared = read_plan(plan)
    problems = chosen("problem of the plan", problem, declared.problems)
    shown = chosen("library", library, LIBRARIES)
    if not from_records:
        pythons = locate_libraries(library, _pythons(python or ()), declared.backend)
        shown = list(pythons)
    cells = [
        cell
        for cell in cells_of(declared, {x: tuple(LIBRARIES[x].methods) for x in shown}, problems)
        if declared.problems[cell.problem].likelihood.name not in LIBRARIES[cell.library].lacks
    ]
    if not from_records:
        run_cells(
            declared,
            cells,
            pythons,
            results,
            timeout,
            on_end=lambda record: tell(f"{record.cell.title}: {words(record)}"),
        )
    found = records.read(results)
    ended = {cell: found[cell] for cell in cells if cell in found}
    if not ended:
        raise UserError(
            f"no record of these cells in {results}; leave --from-records out to run them"
        )
    show(*tables(declared, ended))
    if figure is not None:
        draw_map(declared, ended, figure)
    if any(record.end in records.NO_VERDICT for record in ended.values()):
        raise typer.Exit(NO_VERDICT)


def words(record: StabilityRecord) -> str:
    """Return the end of a run in words, for a line of progress."""
    if record.lived:
        return f"lived {record.step} steps"
    how = "no verdict," if record.end in records.NO_VERDICT else "died at"
    return f"{how} step {record.step}: {record.end}" + (
        f" ({record.message})" if record.message else ""
    )


def _pythons(given: list[str] | tuple[()]) -> dict[str, str]:
    found = {}
    for text in given:
        name, is_one, path = text.partition("=")
        if not is_one or not path:
            raise UserError(
                f"--python {text}: write LIBRARY=PATH, such as gpflow=/envs/gpflow/bin/python"
            )
        found[name] = path
    return found
