"""Ledger of graded claims as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from svgpbench.atomic import write_whole
from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.papers import Paper, load_paper
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged, Part
from svgpbench.stats.effects import with_interval

COLUMNS = (
    "id", "claim", "kind", "grade", "fidelity", "finding", "effect", "low", "high", "steadiness",
)  # fmt: skip
SHOWN = ("id", "claim", "grade", "fidelity", "finding")
"""Columns of the Markdown tables."""

KINDS = ("theory", "experiments", "speed")

RELEASED = files("svgpbench") / "papers" / "released.csv"
"""Ledger of the repository's records at the release of this version."""


def write_ledger(folder: Path, judged: Sequence[tuple[Paper, Sequence[Judged]]]) -> str:
    """Write `claims.md`, `claims.csv` and `claims.json`; return a summary of claims per grade."""
    counts = Counter(one.grade for _, claims in judged for one in claims)
    listed = ", ".join(f"{count} {grade}" for grade, count in counts.items())
    total = counts.total()
    summary = f"{total} claim{'s' * (total != 1)}" + (f": {listed}" if counts else "")
    text = "\n\n".join(["# Claims", summary, *_sections(judged)])
    write_whole(folder / "claims.md", f"{text}\n".encode())
    entries = [{"paper": of.name, **one.to_json()} for of, claims in judged for one in claims]
    content = json.dumps(entries, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / "claims.json", f"{content}\n".encode())
    rows = [row_of(one) for _, claims in judged for one in claims]
    write_whole(folder / "claims.csv", as_csv(rows).encode())
    return summary


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of the ledger as CSV, with a header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return text.getvalue()


def row_of(one: Judged) -> list[str]:
    """Return a claim's row of the ledger.

    Effect and interval are empty unless its core parts have exactly one effect.
    """
    effect = one.only_effect
    numbers = (None, None, None) if effect is None else (effect.value, effect.low, effect.high)
    shown = ["" if number is None else f"{number:.6g}" for number in numbers]
    said = (one.claim.id, one.claim.title, one.kind, one.grade, one.fidelity, one.finding)
    return [*said, *shown, one.steady]


def released(paper: str | None = None, text: str | None = None) -> list[dict[str, str]]:
    """Return the rows of the ledger shipped with this version, for one paper or all.

    `text` replaces the shipped ledger. A ledger of version 0.1 has a verdict instead of a grade and no
    finding: its verdict becomes the grade, and its condition the finding.
    """
    lines = (RELEASED.read_text("utf-8") if text is None else text).splitlines()
    rows = [_in_todays_words(row) for row in csv.DictReader(lines)]
    wanted = None if paper is None else {claim.id for claim in load_paper(paper).claims}
    return [row for row in rows if wanted is None or row["id"] in wanted]


def _in_todays_words(row: dict[str, str]) -> dict[str, str]:
    if "verdict" not in row:
        return row
    old = {"grade": row["verdict"], "finding": row["condition"], "effect": row["effect, 95 %"]}
    return {name: {**row, **old}.get(name, "") for name in COLUMNS}


def _sections(judged: Sequence[tuple[Paper, Sequence[Judged]]]) -> Iterator[str]:
    """Yield a heading and a table for each paper, then the evidence of each claim."""
    for paper, claims in judged:
        about = paper.about
        yield f"## {about.title}\n\n{', '.join(about.authors)}, {about.venue} {about.year}"
        yield _table([as_row(one) for one in claims])
        yield from (
            _entry(one) for one in claims if any(part.judgement.effects for part in one.parts)
        )


def as_row(one: Judged) -> dict[str, str]:
    """Return a claim's row of the ledger, by column name."""
    return dict(zip(COLUMNS, row_of(one), strict=True))


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    shown = [[row[name] for name in SHOWN] for row in rows]
    return markdown(Table(columns(SHOWN), shown))


def grades_page(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the grades as Markdown: counts by paper and kind, then one table per paper."""
    papers = list(dict.fromkeys(row["id"].rpartition("-")[0] for row in rows))
    of = {name: [row for row in rows if row["id"].startswith(f"{name}-")] for name in papers}
    counted = [
        [name, kind, *_counts([row for row in of[name] if row["kind"] == kind])]
        for name in papers
        for kind in KINDS
        if any(row["kind"] == kind for row in of[name])
    ]
    total = ["all", "", *_counts(rows)]
    header = columns(("paper", "claims about"), list(Grade))
    sections = [markdown(Table(header, [*counted, total]))]
    for name in papers:
        sections += [f"## {load_paper(name).about.title}", _table(of[name])]
    return "\n\n".join(sections)


def _counts(rows: Sequence[Mapping[str, str]]) -> list[str]:
    counts = Counter(row["grade"] for row in rows)
    return [str(counts[grade] or "") for grade in Grade]


def _entry(one: Judged) -> str:
    lines = [f"{one.claim.id}, {one.claim.claim}:", ""]
    lines += [f"- {part.role}: {part.title}: {_evidence(part)}" for part in one.parts]
    if one.steady:
        lines.append(f"- steadiness: {one.steady}")
    if one.claim.response:
        lines.append(f"- response of the authors: {one.claim.response}")
    return "\n".join(lines)


def _evidence(part: Part) -> str:
    """Return the grade, note, effects and ranks of a part as text.

    If there are no effects, the reason why it has not run replaces them.
    """
    outcomes = "; ".join(
        ", ".join(filter(None, (effect.of, with_interval(effect), effect.outcome, effect.note)))
        for effect in part.judgement.effects
    )
    ranks = part.judgement.ranks.text if part.judgement.ranks else ""
    said = (part.grade, part.judgement.note, outcomes or part.why_not, ranks)
    return ". ".join(filter(None, said))
