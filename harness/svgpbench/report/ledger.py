"""The ledger of some claims as files: for a reader and for a program."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from svgpbench.atomic import write_whole
from svgpbench.papers import Paper, load_paper
from svgpbench.report.table_formats import TextTable, markdown
from svgpbench.report.verdicts import Judged, with_interval

COLUMNS = ("id", "claim", "verdict", "effect, 95 %", "condition")
RELEASED = files("svgpbench") / "papers" / "released.csv"
"""The ledger of the repository's records, as it was when this version was made."""


def write_ledger(folder: Path, judged: Sequence[tuple[Paper, Sequence[Judged]]]) -> str:
    """Write `claims.md`, `claims.csv` and `claims.json`; returns how many claims came out how."""
    counts = Counter(one.verdict for _, claims in judged for one in claims)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    total = counts.total()
    summary = f"{total} claim{'s' * (total != 1)}" + (f": {listed}" if counts else "")
    text = "\n\n".join(["# Claims", summary, *_sections(judged)])
    write_whole(folder / "claims.md", f"{text}\n".encode())
    entries = [{"paper": of.name, **one.to_json()} for of, claims in judged for one in claims]
    content = json.dumps(entries, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / "claims.json", f"{content}\n".encode())
    rows = [_row(one) for _, claims in judged for one in claims]
    write_whole(folder / "claims.csv", as_csv(rows).encode())
    return summary


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """Rows of the ledger under its header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return text.getvalue()


def released(paper: str | None = None) -> list[list[str]]:
    """The rows of the ledger that came with this version, of one paper or all."""
    rows = [*csv.reader(RELEASED.read_text("utf-8").splitlines())][1:]
    wanted = None if paper is None else {claim.id for claim in load_paper(paper).claims}
    return [row for row in rows if wanted is None or row[0] in wanted]


def _row(one: Judged) -> list[str]:
    return [one.claim.id, one.claim.title, one.verdict, one.effect, one.condition]


def _sections(judged: Sequence[tuple[Paper, Sequence[Judged]]]) -> Iterator[str]:
    """A table for each paper, and below it what each part of a claim rests on."""
    for paper, claims in judged:
        about = paper.about
        yield f"## {about.title}\n\n{', '.join(about.authors)}, {about.venue} {about.year}"
        yield markdown(TextTable(COLUMNS, [_row(one) for one in claims], words=len(COLUMNS)))
        yield from (
            _parts(one) for one in claims if any(part.finding.effects for part in one.parts)
        )


def _parts(one: Judged) -> str:
    lines = [f"{one.claim.id}, {one.claim.claim}:", ""]
    for part in one.parts:
        outcomes = "; ".join(
            ", ".join(filter(None, (effect.of, with_interval(effect), effect.outcome, effect.note)))
            for effect in part.finding.effects
        )
        ranks = f". {part.finding.ranks.text}" if part.finding.ranks else ""
        lines.append(f"- {part.says}: {part.finding.verdict}. {outcomes or part.why_not}{ranks}")
    return "\n".join(lines)
