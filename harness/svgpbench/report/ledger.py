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
from svgpbench.report.grading import Judged, Part, with_interval
from svgpbench.report.table_formats import TextTable, markdown

COLUMNS = ("id", "claim", "grade", "fidelity", "finding", "effect", "low", "high", "steadiness")
SHOWN = ("id", "claim", "grade", "fidelity", "finding")
"""Columns that a page and a terminal have room for."""

RELEASED = files("svgpbench") / "papers" / "released.csv"
"""The ledger of the repository's records, as it was when this version was made."""


def write_ledger(folder: Path, judged: Sequence[tuple[Paper, Sequence[Judged]]]) -> str:
    """Write `claims.md`, `claims.csv` and `claims.json`; return how many claims have which grade."""
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
    """Return rows of the ledger under its header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return text.getvalue()


def row_of(one: Judged) -> list[str]:
    """Return a claim's row of the ledger; effect and interval where its core has one effect alone."""
    effect = one.only_effect
    numbers = (None, None, None) if effect is None else (effect.value, effect.low, effect.high)
    shown = ["" if number is None else f"{number:.6g}" for number in numbers]
    return [
        one.claim.id, one.claim.title, one.grade, one.fidelity, one.finding, *shown, one.steady,
    ]  # fmt: skip


def released(paper: str | None = None, text: str | None = None) -> list[dict[str, str]]:
    """Return the rows of the ledger that came with this version, of one paper or all.

    A ledger of version 0.1 has a verdict in place of a grade, and no finding: its condition stands there.
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
    """Yield a table for each paper, and below it what each claim rests on."""
    for paper, claims in judged:
        about = paper.about
        yield f"## {about.title}\n\n{', '.join(about.authors)}, {about.venue} {about.year}"
        rows = [row_of(one)[: len(SHOWN)] for one in claims]
        yield markdown(TextTable(SHOWN, rows, words=len(SHOWN)))
        yield from (
            _entry(one) for one in claims if any(part.judgement.effects for part in one.parts)
        )


def _entry(one: Judged) -> str:
    lines = [f"{one.claim.id}, {one.claim.claim}:", ""]
    lines += [f"- {part.role}: {part.says}: {_evidence(part)}" for part in one.parts]
    if one.steady:
        lines.append(f"- steadiness: {one.steady}")
    if one.claim.response:
        lines.append(f"- response of the authors: {one.claim.response}")
    return "\n".join(lines)


def _evidence(part: Part) -> str:
    """Return the grade of a part, its effects and what stands beside these."""
    outcomes = "; ".join(
        ", ".join(filter(None, (effect.of, with_interval(effect), effect.outcome, effect.note)))
        for effect in part.judgement.effects
    )
    ranks = part.judgement.ranks.text if part.judgement.ranks else ""
    said = (part.grade, part.judgement.note, outcomes or part.why_not, ranks)
    return ". ".join(filter(None, said))
