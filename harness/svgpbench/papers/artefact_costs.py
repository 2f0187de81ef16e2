"""Cost of each artefact's records, their reductions from the print, and the grades they support."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.grading import Judged

COLUMNS = columns(
    ("artefact", "records", "smaller than printed", "grades"), ("cells", "hours of a worker")
)


def costs_as_markdown(
    papers: Sequence[Paper], ledger: Sequence[tuple[Paper, Judged]], results: Path
) -> str:
    """Return one table per paper with one row per artefact; `ledger` has the claims to show."""
    sections = []
    for paper in papers:
        claims = [judged for owner, judged in ledger if owner is paper]
        rows = [_row(paper, artefact, claims, results) for artefact in paper.about.artefacts]
        sections.append(f"## {paper.name}\n\n{markdown(Table(COLUMNS, rows))}")
    return "\n\n".join(sections)


def _row(
    paper: Paper, artefact: Artefact, claims: Sequence[Judged], results: Path
) -> tuple[str, ...]:
    """Return an artefact's row; the number of cells and their hours are empty for times and walks."""
    scope = "; ".join(filter(None, (artefact.smaller, artefact.missing)))
    grades = ", ".join(
        f"{judged.claim.id.rpartition('-')[2]} {judged.grade}"
        for judged in claims
        if artefact.id in judged.claim.artefacts
    )
    cells = hours = ""
    if artefact.recorded:
        loaded = artefact.recorded.load(paper, artefact, results)
        if loaded.why_not:
            cells = "not run"
        elif loaded.records:
            cells = str(len(loaded.records))
            hours = f"{sum(record.wall_s for record in loaded.records) / 3600:.2g}"
    source = artefact.evidence.source if artefact.evidence else "none"
    return f"`{artefact.id}`: {artefact.what}", source, scope, grades, cells, hours
