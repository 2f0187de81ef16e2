"""Cost of each artefact's records, their reductions from the print, and the grades they support."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.grading import Judged, evidence_of

COLUMNS = columns(
    ("artefact", "records", "smaller than printed", "grades"), ("cells", "hours of a worker")
)


def taken_as_markdown(
    papers: Sequence[Paper], judged: Sequence[tuple[Paper, Judged]], results: Path
) -> str:
    """Return one table per paper with one row per artefact; `judged` has the claims to show."""
    sections = []
    for paper in papers:
        claims = [one for of, one in judged if of is paper]
        rows = [_row(paper, artefact, claims, results) for artefact in paper.about.artefacts]
        sections.append(f"## {paper.name}\n\n{markdown(Table(COLUMNS, rows))}")
    return "\n\n".join(sections)


def _row(
    paper: Paper, artefact: Artefact, claims: Sequence[Judged], results: Path
) -> tuple[str, ...]:
    resting = [one for one in claims if artefact.id in one.claim.artefacts]
    grades = ", ".join(f"{one.claim.id.rpartition('-')[2]} {one.grade}" for one in resting)
    about = (f"`{artefact.id}`: {artefact.what}", _source(artefact))
    scope = "; ".join(filter(None, (artefact.smaller, artefact.missing)))
    return (*about, scope, grades, *_cost(paper, artefact, results))


def _source(artefact: Artefact) -> str:
    """Return the file, folder, plan or experiment of an artefact's records."""
    if artefact.computed:
        return "computed at each look"
    if artefact.timing:
        return f"`{artefact.timing.record}`"
    if artefact.walks:
        return f"`{artefact.walks}/`"
    if artefact.learning:
        return f"`svgpbench learn`, `{artefact.learning}`"
    preset = f", `{artefact.preset}`" if artefact.preset else ""
    return f"`{artefact.experiment}`{preset}" if artefact.experiment else "none"


def _cost(paper: Paper, artefact: Artefact, results: Path) -> tuple[str, str]:
    """Return the number of cells and their hours in total, or `not run`; empty for times and walks."""
    found = evidence_of(paper, artefact, results)
    if found is not None and found.why_not:
        return "not run", ""
    if found is None or not found.records:
        return "", ""
    hours = sum(record.wall_s for record in found.records) / 3600
    return str(len(found.records)), f"{hours:.2g}"
