"""`svgpbench reproduce`: run the cells of papers' artefacts; make figures, tables and grades."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cli.options import RESULTS, Backends, PresetName, ResultsFolder
from svgpbench.cli.progress import reporter
from svgpbench.cli.run import FAILED, INTERRUPTED
from svgpbench.errors import UserError

if TYPE_CHECKING:
    from svgpbench.papers import Artefact, Paper
    from svgpbench.papers.reproduction import Chosen, Planned, Written

OUT = RESULTS / "reproduced"


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER|ARTEFACT|CLAIM]...",
            help="Such as adam2021, adam2021/fig3 or adam2021-16; all papers by default.",
        ),
    ] = None,
    *,
    preset: PresetName = None,
    backend: Backends = None,
    from_records: Annotated[
        bool, typer.Option("--from-records", help="Compute no cell; take the records there are.")
    ] = False,
    results: ResultsFolder = RESULTS,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of what is made.")
    ] = OUT,
    pages: Annotated[
        Path | None,
        typer.Option(
            "--pages",
            metavar="DIR",
            help="Write one page per paper there, with its pictures, in place of all that --out holds.",
        ),
    ] = None,
) -> None:
    """Run what is missing of papers' artefacts; make their figures, tables and grades from the records."""
    from svgpbench.papers.judged_claims import judged_and_drawn
    from svgpbench.papers.ledger import write_ledger
    from svgpbench.papers.reproduction import choose, draws, plan, write, write_computed
    from svgpbench.results.store import check_writable

    chosen = choose(names or [])
    planned = [one for each in chosen for one in plan(each, preset, backend or ())]
    drawn = [one for each in chosen for one in draws(each)]
    if from_records and not results.is_dir():
        raise UserError(f"--results {results}: there is no such folder; name one with records")
    check_writable(pages or out)
    ran = set() if from_records else _run(planned, results)
    if pages:
        _write_pages(chosen, results, pages)
        return
    with judged_and_drawn(chosen, results) as (judged, frame_of):
        of_paper = {paper.name: claims for paper, claims in judged}
        written = {
            (one.paper.name, one.artefact.id): write(one, results, out, of_paper[one.paper.name])
            for one in planned
        } | {
            (one.paper.name, one.artefact.id): write_computed(
                one, out, of_paper[one.paper.name], frame_of
            )
            for one in drawn
        }
    for each in chosen:
        for artefact in each.artefacts:
            made = written.get((each.paper.name, artefact.id))
            said = _line(made, ran) if made else _without_cells(each.paper, artefact, results, out)
            typer.echo(f"{each.paper.name}/{artefact.id}: {said}")
    typer.echo(f"{out}/claims.md, {out}/claims.json: {write_ledger(out, judged)}")
    if any(status != "ok" for made in written.values() for status in made.statuses.values()):
        raise typer.Exit(FAILED)


def _write_pages(chosen: Sequence[Chosen], results: Path, folder: Path) -> None:
    """Write the page of each paper. Claims that no figure or table shows are not graded."""
    from svgpbench.papers.judged_claims import judged_and_drawn
    from svgpbench.papers.page import shown_of, write_page

    shown = [shown_of(each) for each in chosen]
    with judged_and_drawn(shown, results) as (judged, frame_of):
        for each, (_, claims) in zip(shown, judged, strict=True):
            page, *pictures = write_page(each, claims, results, folder, frame_of)
            size = sum(path.stat().st_size for path in pictures) / 1e6
            typer.echo(f"{page}: {len(pictures)} pictures, {size:.1f} MB")


def _run(planned: Sequence[Planned], results: Path) -> Collection[str]:
    """Run the cells without a final record, and return the ids of the cells that ran."""
    from svgpbench.experiments.validation import check_cells
    from svgpbench.runs.pool import run_cells

    cells = [cell for one in planned for cell in one.cells]
    if not cells:
        return set()
    check_cells(cells)
    with reporter() as on_event:
        summary = run_cells(cells, results=results, on_event=on_event)
    if summary.interrupted:
        typer.echo("interrupted; the same command goes on from here")
        raise typer.Exit(INTERRUPTED)
    return {record.cell_id for record in summary.records}


def _line(made: Written, ran: Collection[str]) -> str:
    """Return one line: folder and names of the files written, and the numbers of cells."""
    again = sum(cell in ran for cell in made.statuses)
    failed = sum(status != "ok" for status in made.statuses.values())
    cells = f"cells: {again} run, {len(made.statuses) - again} reused, {failed} failed"
    if made.computed:
        cells = "no cells, computed afresh"
    if made.missing:
        cells += f", {made.missing} missing"
    files = ", ".join(path.name for path in made.files)
    where = [f"{made.files[0].parent}: {files}"] if made.files else []
    return "; ".join([*where, *made.left_out, cells])


def _without_cells(paper: Paper, artefact: Artefact, results: Path, out: Path) -> str:
    if artefact.computed:
        return "no cells, computed afresh where a claim is decided by it"
    if artefact.timing:
        return _of_times(paper, artefact, artefact.timing.record, results, out)
    if artefact.walks:
        return f"drawn by `svgpbench survive --from-records`; its claims rest on {artefact.walks}"
    if artefact.learning:
        plan = f"--plan {artefact.learning} --from-records"
        return f"drawn by `svgpbench learn {plan}`; its claims rest on the runs of this plan"
    return f"not there, no experiment{'; ' * bool(artefact.missing)}{artefact.missing}"


def _of_times(paper: Paper, artefact: Artefact, record: str, results: Path, out: Path) -> str:
    """Draw from a record of `svgpbench speed`; return a line with its files, or why there are none."""
    from svgpbench.papers.reproduction import write_times

    try:
        files = write_times(paper, artefact, results, out).files
    except UserError as error:
        return f"nothing to draw: {error}"
    if not files:
        return f"nothing to draw; its claims rest on {record}"
    return f"{files[0].parent}: {', '.join(path.name for path in files)}; times of {record}"
