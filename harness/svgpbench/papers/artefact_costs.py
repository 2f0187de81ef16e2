"""What each artefact's records took, what is smaller in them than printed, and what rests on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from svgpbench.output.table_formats import TextTable, markdown
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.grading import Judged, evidence_of

COLUMNS = ("artefact", "records", "smaller than printed", "grades", "cells", "hours of a worker")
WORDS = 4


def taken_as_markdown(
    papers: Sequence[Paper], judged: Sequence[tuple[Paper, Judged]], results: Path
) -> str:
    """A table a paper, a row an artefact; `judged`: the claims whose grades are shown."""
    sections = []
    for paper in papers:
        claims = [one for of, one in judged if of is paper]
        rows = [_row(paper, artefact, claims, results) for artefact in paper.about.artefacts]
        sections.append(f"## {paper.name}\n\n{markdown(TextTable(COLUMNS, rows, WORDS))}")
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
    """Where its records lie or come from."""
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
    """How many cells there are, and the hours of all; nothing of what has none, such as times and walks."""
    found = evidence_of(paper, artefact, results)
    if found is not None and found.why_not:
        return "not run", ""
    if found is None or not found.records:
        return "", ""
    hours = sum(record.wall_s for record in found.records) / 3600
    return str(len(found.records)), f"{hours:.2g}"
