"""Tables of graded claims: all of them, a paper's with its summary, and one claim on a screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svgpbench.output.table import Column, Styled, Table

if TYPE_CHECKING:
    from svgpbench.papers import Paper
    from svgpbench.papers.grading import Judged

MOST_LINES = 12
"""Maximum number of effects per part, and of conditions, that an entry shows; --json has all."""

COLOURS = {
    "holds": "green",
    "holds, corrected": "green",
    "direction only": "yellow",
    "mixed": "yellow",
    "fails": "red",
    "open": "cyan",
}


def ledger_table(
    ledger: Sequence[tuple[Paper, Judged]], shipped: Mapping[str, Mapping[str, str]]
) -> Table:
    """Return the grades as a table; `shipped` has the rows of claims that have not run here."""
    rows = []
    for _, judged in ledger:
        claim = judged.claim
        effect = judged.finding if judged.grade == "not run" else judged.effect
        shown = [str(judged.grade), judged.lasts, str(judged.fidelity), effect]
        if found := shipped.get(claim.id):
            fidelity = f"{found['fidelity']}, shipped"
            shown = [found["grade"], found["lasts"], fidelity, found["effect"]]
        rows.append([claim.id, claim.title, *shown])
    return grades_table(rows, [judged.kind for _, judged in ledger])


def grades_table(rows: Sequence[Sequence[str]], kinds: Sequence[str]) -> Table:
    """Return the rows of the ledger as a table, with the number of the papers' claims per grade below."""
    columns = (
        *(Column("id", wrap=False), Column("claim", clip=True), Column("grade", wrap=False)),
        Column("lasts", wrap=False, optional=True, style="dim"),
        *(Column("fidelity", wrap=False, style="dim"), Column("effect, 95 %", optional=True)),
    )
    # fidelity and effect are empty if nothing has run
    filled = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    values = [[_coloured(row[i]) if i == 2 else row[i] for i in filled] for row in rows]
    counts = Counter(row[2] for row, kind in zip(rows, kinds, strict=True) if kind != "ours")
    listed = ", ".join(f"{count} {grade}" for grade, count in counts.items())
    claims, own = counts.total(), len(rows) - counts.total()
    texts = [f"{claims} claim{'s' * (claims != 1)}: {listed}"] if claims else []
    texts += [f"{own} finding{'s' * (own != 1)} of ours"] if own else []
    notes = ["", "; ".join(texts)]
    return Table([columns[i] for i in filled], values, notes=notes)


def with_summary(paper: Paper, ledger: Table) -> Iterator[Table | str]:
    """Yield the summary of a paper, its ledger and its notes."""
    about = paper.about
    yield f"{about.title}\n{', '.join(about.authors)}, {about.venue} {about.year}\n{about.says}"
    yield ledger
    for title, rows in (
        ("errata", [(erratum.where, erratum.says) for erratum in about.errata]),
        ("our deviations", [(item.what, item.why) for item in about.deviations]),
        ("not printed", [(text,) for text in about.not_printed]),
    ):
        if rows:
            yield Table([Column("")] * len(rows[0]), rows, title)


def claim_entry(paper: Paper, judged: Judged, results: Path) -> Iterator[Table | str]:
    """Yield a claim on one screen: sentence, grade, finding, core evidence, conditions, commands."""
    from svgpbench.papers.grading import effect_of

    claim = judged.claim
    names = ", ".join(author.rpartition(" ")[2] for author in paper.about.authors)
    sentence = f"{claim.claim[0].upper()}{claim.claim[1:].rstrip('.')}."
    yield f"{claim.id}  {sentence}  {names} {paper.about.year}, {claim.where}"
    # how each artefact is smaller than printed, and the stand-ins for missing data
    artefacts = [paper.artefact(part.artefact) for part in claim.parts]
    scopes = ["; ".join(filter(None, (x.smaller, x.missing))) for x in artefacts]
    smaller = "; ".join(dict.fromkeys(filter(None, scopes)))
    facts = {
        "grade": _coloured(judged.grade),
        "fidelity": f"{judged.fidelity}{': ' * bool(smaller)}{smaller}",
        "finding": judged.finding,
        "test": claim.predicate,
        "depends on": claim.depends_on,
        "lasts": judged.lasts,
        "steadiness": judged.steady,
        "decided on": judged.condition,
        "response": claim.response,
    }
    optional = ("lasts", "steadiness", "decided on", "response")
    rows = [row for row in facts.items() if row[1] or row[0] not in optional]
    yield Table((Column("", wrap=False, style="dim"), Column("")), rows)
    yield from _core(judged)
    conditions = [
        [part.title, _coloured(part.grade), part.why_not or effect_of([part.judgement])]
        for part in judged.parts_of_role("condition")
    ]
    if conditions:
        yield _first_rows(conditions, 3, "conditions tried beside the claim, which do not count")
    commands = [*judged.commands, f"svgpbench claims {claim.id} --results {results}"]
    records = f", {len(judged.records)} records" if judged.records else ""
    yield "\n  ".join([f"run it again{records}", *commands])


def _core(judged: Judged) -> Iterator[Table]:
    """Yield a table of the effects of each core part and each erratum part."""
    from svgpbench.stats.effects import with_interval

    for part in (*judged.parts_of_role("core"), *judged.parts_of_role("erratum")):
        note = part.why_not or part.judgement.note
        role = "erratum: " if part.role == "erratum" else ""
        title = f"{role}{part.title}: {part.grade}{f' ({note})' if note else ''}"
        rows = [
            [effect.of, effect.outcome, with_interval(effect), Styled(effect.note, "dim")]
            for effect in part.judgement.effects
        ]
        yield _first_rows([] if part.why_not else rows, 4, title, part.shows)


def _first_rows(rows: list[list[Any]], width: int, title: str, note: str = "") -> Table:
    """Return a table of the first rows, with the number of the others and another note below."""
    more = len(rows) - MOST_LINES
    notes = [f"… and {more} more; --json has all"] if more > 0 else []
    notes += [note] * bool(note)
    return Table([Column("")] * width, rows[:MOST_LINES], title, notes)


def _coloured(grade: str) -> Styled:
    return Styled(grade, COLOURS.get(grade, "dim"))
