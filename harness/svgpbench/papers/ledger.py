"""Ledger of graded claims as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from svgpbench.atomic import write_whole
from svgpbench.json_values import json_text
from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.papers import Paper, load_paper
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged
from svgpbench.stats.effects import with_interval

COLUMNS = (
    "id", "claim", "kind", "grade", "fidelity", "finding", "effect", "low", "high", "steadiness", "lasts",
)  # fmt: skip
SHOWN = ("id", "claim", "grade", "lasts", "fidelity", "finding")
"""Columns of the Markdown tables."""

KINDS = ("theory", "experiments", "speed")
"""Kinds of the papers' claims. Findings of this project have the kind `ours` and are not counted."""

RELEASED = files("svgpbench") / "papers" / "released.csv"
"""Ledger of the repository's records at the release of this version."""


def write_ledger(folder: Path, ledger: Sequence[tuple[Paper, Sequence[Judged]]]) -> str:
    """Write `claims.md`, `claims.csv` and `claims.json`; return a summary of claims per grade."""
    claims = [(paper, judged) for paper, of_paper in ledger for judged in of_paper]
    counts = Counter(judged.grade for _, judged in claims if not judged.claim.ours)
    listed = ", ".join(f"{count} {grade}" for grade, count in counts.items())
    total = counts.total()
    summary = f"{total} claim{'s' * (total != 1)}" + (f": {listed}" if counts else "")
    sections = ["# Claims", summary]
    for paper, of_paper in ledger:
        about = paper.about
        authors = f"{', '.join(about.authors)}, {about.venue} {about.year}"
        sections += [f"## {about.title}\n\n{authors}", _table([as_row(x) for x in of_paper])]
        sections += [
            _entry(judged)
            for judged in of_paper
            if any(part.judgement.effects for part in judged.parts)
        ]
    text = "\n\n".join(sections)
    write_whole(folder / "claims.md", f"{text}\n".encode())
    entries = [{"paper": paper.name, **judged.to_json()} for paper, judged in claims]
    write_whole(folder / "claims.json", f"{json_text(entries)}\n".encode())
    rows = [row_of(judged) for _, judged in claims]
    write_whole(folder / "claims.csv", as_csv(rows).encode())
    return summary


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of the ledger as CSV, with a header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return text.getvalue()


def row_of(judged: Judged) -> list[str]:
    """Return a claim's row of the ledger.

    Effect and interval are empty unless its core parts have exactly one effect.
    """
    effect = judged.only_effect
    numbers = (None, None, None) if effect is None else (effect.value, effect.low, effect.high)
    return [
        judged.claim.id,
        judged.claim.title,
        judged.kind,
        judged.grade,
        judged.fidelity,
        judged.finding,
        *("" if number is None else f"{number:.6g}" for number in numbers),
        judged.steady,
        judged.lasts,
    ]


def released(paper: str | None = None, text: str | None = None) -> list[dict[str, str]]:
    """Return the rows of the ledger shipped with this version, for one paper or all.

    `text` replaces the shipped ledger. A ledger of version 0.1 has a verdict instead of a grade and no
    finding: its verdict becomes the grade, and its condition the finding.
    """
    lines = (RELEASED.read_text("utf-8") if text is None else text).splitlines()
    rows: list[dict[str, str]] = []
    for row in csv.DictReader(lines):
        if "verdict" in row:  # of version 0.1
            old = {
                "grade": row["verdict"],
                "finding": row["condition"],
                "effect": row["effect, 95 %"],
            }
            rows.append({name: {**row, **old}.get(name, "") for name in COLUMNS})
        else:
            rows.append(row)
    if paper is None:
        return rows
    ids = {claim.id for claim in load_paper(paper).claims}
    return [row for row in rows if row["id"] in ids]


def as_row(judged: Judged) -> dict[str, str]:
    """Return a claim's row of the ledger, by column name."""
    return dict(zip(COLUMNS, row_of(judged), strict=True))


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    shown = [[row[name] for name in SHOWN] for row in rows]
    return markdown(Table(columns(SHOWN), shown))


def grades_page(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the grades as Markdown: counts by paper and kind, then one table per paper.

    Findings of this project have a table if there is no claim of a paper, else they are left out.
    """
    claims = [row for row in rows if row["kind"] in KINDS]
    papers = list(dict.fromkeys(row["id"].rpartition("-")[0] for row in claims))
    by_paper = {
        name: [row for row in claims if row["id"].startswith(f"{name}-")] for name in papers
    }
    counts = [
        [name, kind, *_counts(of_kind)]
        for name, of_paper in by_paper.items()
        for kind in KINDS
        if (of_kind := [row for row in of_paper if row["kind"] == kind])
    ]
    total = ["all", "", *_counts(claims)]
    header = columns(("paper", "claims about"), list(Grade))
    sections = [markdown(Table(header, [*counts, total]))] if claims else []
    for name, of_paper in by_paper.items():
        sections += [f"## {load_paper(name).about.title}", _table(of_paper)]
    if not claims:
        sections = [_table(rows)]
    return "\n\n".join(sections)


def _counts(rows: Sequence[Mapping[str, str]]) -> list[str]:
    counts = Counter(row["grade"] for row in rows)
    return [str(counts[grade] or "") for grade in Grade]


def _entry(judged: Judged) -> str:
    """Return the grade, note, effects and ranks of each part as text, or why it has not run."""
    claim = judged.claim
    lines = [f"{claim.id}, {claim.claim}:", ""]
    for part in judged.parts:
        outcomes = "; ".join(
            ", ".join(filter(None, (effect.of, with_interval(effect), effect.outcome, effect.note)))
            for effect in part.judgement.effects
        )
        ranks = part.judgement.ranks.text if part.judgement.ranks else ""
        texts = (part.grade, part.judgement.note, outcomes or part.why_not, ranks, part.shows)
        lines.append(f"- {part.role}: {part.title}: {'. '.join(filter(None, texts))}")
    if judged.steady:
        lines.append(f"- steadiness: {judged.steady}")
    if claim.response:
        lines.append(f"- response of the authors: {claim.response}")
    return "\n".join(lines)
