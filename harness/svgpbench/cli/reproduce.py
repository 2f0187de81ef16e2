"""`svgpbench reproduce`: run the cells of papers' artefacts; make figures, tables and grades."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.atomic import refuse_unwritable
from svgpbench.cli.options import (
    RESULTS,
    Backends,
    PresetName,
    RecordsFolder,
    path_named,
    records_folder,
)
from svgpbench.cli.printing import FAILED, INTERRUPTED, say
from svgpbench.cli.progress import reporter
from svgpbench.errors import UserError

if TYPE_CHECKING:
    from svgpbench.papers.report import ArtefactReport
    from svgpbench.papers.reproduction import PlannedArtefact
    from svgpbench.papers.selection import PaperSelection

OUT = RESULTS / "reproduced"


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER|ARTEFACT|CLAIM]...",
            help="Papers, artefacts or claims, such as adam2021, adam2021/fig3 or adam2021-16.",
        ),
    ] = None,
    *,
    preset: PresetName = None,
    backend: Backends = None,
    from_records: Annotated[
        bool, typer.Option("--from-records", help="Use the existing records and run no cell.")
    ] = False,
    results: RecordsFolder = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder of the figures, tables and grades.",
            parser=path_named,
        ),
    ] = OUT,
    pages: Annotated[
        Path | None,
        typer.Option(
            "--pages",
            metavar="DIR",
            help="Folder for one page per paper, with its pictures, instead of the files of --out.",
        ),
    ] = None,
) -> None:
    """Run what is missing of papers' artefacts; make their figures, tables and grades from the records."""
    from svgpbench.papers import paper_folders
    from svgpbench.papers.judged_claims import judged_and_drawn
    from svgpbench.papers.ledger import write_ledger
    from svgpbench.papers.reproduction import plan, start_writing
    from svgpbench.papers.selection import choose

    if not names:
        papers = ", ".join(paper_folders())
        raise UserError(
            f"which papers, artefacts or claims? all papers are {papers}; "
            "`svgpbench claims` lists the claims"
        )
    selections = choose(names)
    plans = [plan(selection, preset, backend or ()) for selection in selections]
    results = records_folder(results) if from_records else results or RESULTS
    if from_records and not results.is_dir():
        raise UserError(f"--results {results}: there is no such folder; name one with records")
    # before the cells run, so that a mistake in a path does not show hours later
    refuse_unwritable(pages or out, f"--pages {pages}" if pages else f"--out {out}")
    ran = set() if from_records else _run([item for planned in plans for item in planned], results)
    if pages:
        _write_pages(selections, results, pages)
        return
    with judged_and_drawn(selections, results) as (judged, precomputed):
        writing = {
            (paper.name, artefact): future
            for selection, planned, (paper, claims) in zip(selections, plans, judged, strict=True)
            for artefact, future in start_writing(
                selection, planned, results, out, claims, precomputed
            ).items()
        }
        # inside: the end of this block ends the processes that write
        reports = {name: future.result() for name, future in writing.items()}
    for (paper_name, artefact), report in reports.items():
        say(f"{paper_name}/{artefact}: {_line_of(report, ran)}")
    say(f"{out}/claims.md, {out}/claims.json: {write_ledger(out, judged)}")
    if any(_went_wrong(report, from_records) for report in reports.values()):
        raise typer.Exit(FAILED)


def _went_wrong(report: ArtefactReport, from_records: bool) -> bool:
    """Return True if a cell failed, or with `from_records` if recorded cells could not be shown.

    A failure that is recorded is a result like any other.
    """
    if from_records:
        return report.incomplete
    return any(status != "ok" for status in report.statuses.values())


def _write_pages(selections: Sequence[PaperSelection], results: Path, folder: Path) -> None:
    """Write the page of each paper. Claims that no figure or table shows are not graded."""
    from svgpbench.papers.judged_claims import judged_and_drawn
    from svgpbench.papers.page import shown_of, write_page

    shown = [shown_of(selection) for selection in selections]
    with judged_and_drawn(shown, results) as (judged, precomputed):
        for selection, (_, claims) in zip(shown, judged, strict=True):
            page, *pictures = write_page(selection, claims, results, folder, precomputed)
            size = sum(path.stat().st_size for path in pictures) / 1e6
            say(f"{page}: {len(pictures)} pictures, {size:.1f} MB")


def _run(planned: Sequence[PlannedArtefact], results: Path) -> Collection[str]:
    """Run the cells without a final record, and return the ids of the cells that ran."""
    from svgpbench.experiments.validation import check_cells
    from svgpbench.runs.pool import run_cells

    cells = [cell for item in planned for cell in item.plan.configs]
    if not cells:
        return set()
    check_cells(cells)
    with reporter() as on_event:
        summary = run_cells(cells, results=results, on_event=on_event)
    if summary.interrupted:
        say("interrupted; the same command goes on from here")
        raise typer.Exit(INTERRUPTED)
    return {record.cell_id for record in summary.records}


def _line_of(report: ArtefactReport, ran: Collection[str]) -> str:
    """Return one line: files written, reasons for missing ones, and numbers of cells or the evidence."""
    files = ", ".join(path.name for path in report.files)
    folder = [f"{report.files[0].parent}: {files}"] if report.files else []
    if not (report.statuses or report.missing):
        return "; ".join([*folder, *report.notes, report.description])
    again = sum(cell in ran for cell in report.statuses)
    failed = sum(status != "ok" for status in report.statuses.values())
    cells = f"cells: {again} run, {len(report.statuses) - again} reused, {failed} failed"
    if report.missing:
        cells += f", {report.missing} missing"
    return "; ".join([*folder, *report.notes, cells])
