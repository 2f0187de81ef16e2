"""`svgpbench claims`: the claims of the papers, graded by the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.cli.printing import counting, print_json, show
from svgpbench.errors import UserError
from svgpbench.output.table import Column, Styled, Table

if TYPE_CHECKING:
    from svgpbench.papers import Paper
    from svgpbench.papers.grading import Judged

MOST_LINES = 12
"""Maximum number of effects per part, and of conditions, that an entry shows; --json has all."""

BESIDE = {
    "released": "--paper",
    "contradictions": "--results",
    "artefacts": "--paper and --results",
}
"""Options that each separate page (`--released`, ...) can be combined with."""

COLOURS = {
    "holds": "green",
    "holds, corrected": "green",
    "direction only": "yellow",
    "mixed": "yellow",
    "fails": "red",
    "open": "cyan",
}


def claims_command(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims; all by default.")
    ] = None,
    *,
    paper: Annotated[
        str | None, typer.Option("--paper", metavar="NAME", help="Name of a paper; all by default.")
    ] = None,
    contradictory: Annotated[
        bool, typer.Option("--contradictions", help="Show the contradictions between papers.")
    ] = False,
    of_artefacts: Annotated[
        bool,
        typer.Option(
            "--artefacts", help="Show the cost of each artefact and the claims that need it."
        ),
    ] = False,
    of_release: Annotated[
        bool,
        typer.Option("--released", help="Show the grades that were shipped with this version."),
    ] = False,
    results: ResultsFolder = RESULTS,
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the grades as Markdown.")
    ] = False,
) -> None:
    """Grade papers' claims by records; one ID shows the claim's finding, evidence and conditions."""
    page = _page(
        {"released": of_release, "contradictions": contradictory, "artefacts": of_artefacts},
        bool(ids or as_json),
        bool(paper),
    )
    if page == "released":
        _print_released(paper, as_markdown)
        return
    if page == "contradictions":
        typer.echo(_contradictions(results))
        return
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.papers.judged_claims import judged_claims

    papers = [load_paper(name) for name in ([paper] if paper else paper_folders())]
    with counting("computing claims afresh") as on_done:
        judged = judged_claims(papers, results, ids or [], on_done)
    if page == "artefacts":
        from svgpbench.papers.artefact_costs import taken_as_markdown

        typer.echo(taken_as_markdown(papers, judged, results))
    elif as_markdown:
        from svgpbench.papers.ledger import as_row, grades_page

        typer.echo(grades_page([as_row(one) for _, one in judged]))
    elif as_json:
        print_json([{"paper": of.name, **one.to_json()} for of, one in judged])
    elif ids and len(judged) == 1:
        show(*_entry(*judged[0], results))
    else:
        table = _table([_row(one) for _, one in judged])
        show(*(_about(papers[0], table) if paper and not ids else [table]))


def _page(asked: dict[str, bool], narrowed: bool, of_a_paper: bool) -> str:
    """Return the name of the requested page, or an empty string.

    Raises `UserError` if several pages are requested, or options that do not fit the page.
    """
    pages = [name for name, wanted in asked.items() if wanted]
    if not pages:
        return ""
    name = pages[0]
    if len(pages) > 1 or narrowed or (of_a_paper and "--paper" not in BESIDE[name]):
        raise UserError(f"--{name} stands alone but for {BESIDE[name]}")
    return name


def _print_released(paper: str | None, as_markdown: bool) -> None:
    from importlib.metadata import version

    from svgpbench.papers.ledger import grades_page, released

    rows = released(paper)
    if as_markdown:
        typer.echo(grades_page(rows))
        return
    names = ("id", "claim", "grade", "fidelity", "effect")
    show(_table([[row[name] for name in names] for row in rows]))
    typer.echo(
        f"of version {version('svgpbench')}, from its repository's records; "
        "`svgpbench claims --results FOLDER` grades yours"
    )


def _contradictions(results: Path) -> str:
    """Return, as Markdown, each contradiction of the papers and the grades of its claims."""
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.papers.contradictions import contradictions
    from svgpbench.papers.contradictions_page import settled_as_markdown
    from svgpbench.papers.judged_claims import judged_claims

    several = contradictions()
    papers = [load_paper(name) for name in paper_folders()]
    asked = [one.id for each in several for one in each.claims]
    with counting("computing claims afresh") as on_done:
        judged = {one.claim.id: one for _, one in judged_claims(papers, results, asked, on_done)}
    return settled_as_markdown(several, judged)


def _row(one: Judged) -> list[str]:
    effect = one.finding if one.grade == "not run" else one.effect
    return [one.claim.id, one.claim.title, one.grade, one.fidelity, effect]


def _table(rows: Sequence[Sequence[str]]) -> Table:
    """Return the rows of the ledger as a table, with the number of claims per grade below."""
    columns = (
        *(Column("id", wrap=False), Column("claim"), Column("grade", wrap=False)),
        *(Column("fidelity", style="dim"), Column("effect, 95 %")),
    )
    # fidelity and effect are empty if nothing has run
    told = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    values = [[_graded(row[at]) if at == 2 else row[at] for at in told] for row in rows]
    counts = Counter(row[2] for row in rows)
    listed = ", ".join(f"{count} {grade}" for grade, count in counts.items())
    notes = ["", f"{len(rows)} claims: {listed}"]
    return Table([columns[at] for at in told], values, notes=notes)


def _about(paper: Paper, ledger: Table) -> Iterator[Table | str]:
    """Yield the summary of a paper, its ledger and its notes."""
    about = paper.about
    yield f"{about.title}\n{', '.join(about.authors)}, {about.venue} {about.year}\n{about.says}"
    yield ledger
    for title, rows in (
        ("errata", [(one.where, one.says) for one in about.errata]),
        ("our deviations", [(one.what, one.why) for one in about.deviations]),
        ("not printed", [(text,) for text in about.not_printed]),
    ):
        if rows:
            yield Table([Column("")] * len(rows[0]), rows, title)


def _graded(grade: str) -> Styled:
    return Styled(grade, COLOURS.get(grade, "dim"))


def _entry(paper: Paper, one: Judged, results: Path) -> Iterator[Table | str]:
    """Yield a claim on one screen: sentence, grade, finding, core evidence, conditions, commands."""
    claim = one.claim
    names = ", ".join(author.rpartition(" ")[2] for author in paper.about.authors)
    yield f"{claim.id}  {_sentence(claim.claim)}  {names} {paper.about.year}, {claim.where}"
    smaller = "; ".join(
        dict.fromkeys(filter(None, (_scope(paper, part.artefact) for part in claim.parts)))
    )
    facts = {
        "grade": _graded(one.grade),
        "fidelity": f"{one.fidelity}{': ' * bool(smaller)}{smaller}",
        "finding": one.finding,
        "test": claim.predicate,
        "hangs on": claim.hangs_on,
        "steadiness": one.steady,
        "decided on": one.condition,
        "response": claim.response,
    }
    optional = ("steadiness", "decided on", "response")
    rows = [row for row in facts.items() if row[1] or row[0] not in optional]
    yield Table((Column("", wrap=False, style="dim"), Column("")), rows)
    yield from _core(one)
    yield from _conditions(one)
    commands = [*one.commands, f"svgpbench claims {claim.id} --results {results}"]
    rests = f", {len(one.records)} records" if one.records else ""
    yield "\n  ".join([f"run it again{rests}", *commands])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _scope(paper: Paper, artefact: str) -> str:
    """Return how an artefact is smaller than printed, and which stand-in replaces missing data."""
    found = paper.artefact(artefact)
    return "; ".join(filter(None, (found.smaller, found.missing)))


def _core(one: Judged) -> Iterator[Table]:
    """Yield a table of the effects of each core part and each erratum part."""
    from svgpbench.stats.effects import with_interval

    for part in (*one.of("core"), *one.of("erratum")):
        note = part.why_not or part.judgement.note
        role = "erratum: " if part.role == "erratum" else ""
        title = f"{role}{part.title}: {part.grade}{f' ({note})' if note else ''}"
        rows = [
            [effect.of, effect.outcome, with_interval(effect), Styled(effect.note, "dim")]
            for effect in part.judgement.effects
        ]
        yield _first_rows([] if part.why_not else rows, 4, title)


def _conditions(one: Judged) -> Iterator[Table]:
    """Yield a table with one line per condition: setting, grade and effect."""
    from svgpbench.papers.grading import effect_of

    rows = [
        [part.title, _graded(part.grade), part.why_not or effect_of([part.judgement])]
        for part in one.of("condition")
    ]
    if rows:
        yield _first_rows(rows, 3, "conditions tried beside the claim, which do not vote")


def _first_rows(rows: list[list[Any]], width: int, title: str) -> Table:
    """Return a table of the first rows, with a note on the number of the others."""
    more = len(rows) - MOST_LINES
    notes = [f"… and {more} more; --json has all"] if more > 0 else []
    return Table([Column("")] * width, rows[:MOST_LINES], title, notes)
