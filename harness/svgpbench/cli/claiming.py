"""`svgpbench claims`: the claims of the papers, graded by the records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.cli.printing import printer
from svgpbench.errors import UserError

if TYPE_CHECKING:
    from svgpbench.papers import Paper
    from svgpbench.papers.grading import Judged

WIDTH = 100
LEDGER = ("id", "claim", "grade", "fidelity", "effect, 95 %")
MOST = {"claim": 46, "effect, 95 %": 20}
"""Maximum widths of columns that wrap, in characters."""

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
        str | None, typer.Option("--paper", metavar="NAME", help="Those of one paper.")
    ] = None,
    contradictory: Annotated[
        bool, typer.Option("--contradictions", help="Where the papers contradict one another.")
    ] = False,
    of_artefacts: Annotated[
        bool, typer.Option("--artefacts", help="What each artefact took and what rests on it.")
    ] = False,
    of_release: Annotated[
        bool, typer.Option("--released", help="The grades that came with this version.")
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
    with _progress() as on_done:
        judged = judged_claims(papers, results, ids or [], on_done)
    if page == "artefacts":
        from svgpbench.papers.artefact_costs import taken_as_markdown

        typer.echo(taken_as_markdown(papers, judged, results))
    elif as_markdown:
        from svgpbench.papers.ledger import as_row, grades_page

        typer.echo(grades_page([as_row(one) for _, one in judged]))
    elif as_json:
        entries = [{"paper": of.name, **one.to_json()} for of, one in judged]
        typer.echo(json.dumps(entries, indent=2, ensure_ascii=False, allow_nan=False))
    elif ids and len(judged) == 1:
        printer(WIDTH).print(_entry(*judged[0], results))
    else:
        console, table = printer(WIDTH), _table([_row(one) for _, one in judged])
        console.print(_about(papers[0], table) if paper and not ids else table)


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
    shown = [
        [Text(row[name]) for name in ("id", "claim", "grade", "fidelity", "effect")] for row in rows
    ]
    printer(WIDTH).print(_table(shown))
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
    with _progress() as on_done:
        judged = {one.claim.id: one for _, one in judged_claims(papers, results, asked, on_done)}
    return settled_as_markdown(several, judged)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Yield a function to call with each computed claim; on a terminal it updates a status line."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda claim: None
        return
    with console.status("computing claims afresh") as status:
        done: list[str] = []

        def show(claim: str) -> None:
            done.append(claim)
            status.update(f"computing claims afresh: {len(done)} done, {claim} the last")

        yield show


def _row(one: Judged) -> list[Text]:
    effect = one.finding if one.grade == "not run" else one.effect
    said = (one.claim.id, one.claim.title, one.grade, one.fidelity, effect)
    return [*map(Text, said)]


def _table(rows: list[list[Text]]) -> RenderableType:
    """Return the rows of the ledger as a table, with the number of claims per grade below."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in rows:
        row[2].stylize(COLOURS.get(row[2].plain, "dim"))
        row[3].stylize("dim")
    columns = dict(zip(LEDGER, zip(*rows, strict=True), strict=True))
    shown = {name: texts for name, texts in columns.items() if any(map(str, texts))}
    for column in shown:  # the effect column is empty if nothing has run
        table.add_column(column, no_wrap=column in ("id", "grade"), max_width=MOST.get(column))
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*cells)
    counts = Counter(row[2].plain for row in rows)
    listed = ", ".join(f"{count} {grade}" for grade, count in counts.items())
    return Group(table, Text(f"\n{len(rows)} claims: {listed}", style="dim"))


def _about(paper: Paper, table: RenderableType) -> RenderableType:
    """Return the table of a paper's claims, with its summary above and its notes below."""
    about = paper.about
    source = Text(f"{', '.join(about.authors)}, {about.venue} {about.year}", style="dim")
    notes: list[RenderableType] = []
    for title, rows in (
        ("errata", [(one.where, one.says) for one in about.errata]),
        ("our deviations", [(one.what, one.why) for one in about.deviations]),
        ("not printed", [(text, "") for text in about.not_printed]),
    ):
        if rows:
            notes.append(Text(f"\n{title}", style="bold"))
            notes.append(_pairs(rows))
    return Group(Text(about.title, style="bold"), source, Text(about.says), "", table, *notes)


def _pairs(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(text) for text in row if text))
    return table


def _coloured(grade: str) -> Text:
    return Text(grade, style=COLOURS.get(grade, "dim"))


def _entry(paper: Paper, one: Judged, results: Path) -> RenderableType:
    """Return a claim on one screen: sentence, grade, finding, core evidence, conditions, commands."""
    claim = one.claim
    names = ", ".join(author.rpartition(" ")[2] for author in paper.about.authors)
    source = f"{names} {paper.about.year}, {claim.where}"
    title = Text.assemble((claim.id, "bold"), f"  {_sentence(claim.claim)}  ", (source, "dim"))
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    smaller = "; ".join(
        dict.fromkeys(filter(None, (_scope(paper, part.artefact) for part in claim.parts)))
    )
    facts.add_row("grade", _coloured(one.grade))
    facts.add_row("fidelity", Text(f"{one.fidelity}{': ' * bool(smaller)}{smaller}"))
    facts.add_row("finding", Text(one.finding))
    facts.add_row("test", Text(claim.predicate))
    facts.add_row("hangs on", Text(claim.hangs_on))
    if one.steady:
        facts.add_row("steadiness", Text(one.steady))
    if one.condition:
        facts.add_row("decided on", Text(one.condition))
    if claim.response:
        facts.add_row("response", Text(claim.response))
    return Group(title, "", facts, *_core(one), *_conditions(one), *_again(one, results))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _scope(paper: Paper, artefact: str) -> str:
    """Return how an artefact is smaller than printed, and which stand-in replaces missing data."""
    found = paper.artefact(artefact)
    return "; ".join(filter(None, (found.smaller, found.missing)))


def _core(one: Judged) -> Iterator[RenderableType]:
    """Yield each core part and each erratum part, with its effects."""
    from svgpbench.stats.effects import with_interval

    for part in (*one.of("core"), *one.of("erratum")):
        role = "erratum: " if part.role == "erratum" else ""
        title = Text.assemble("\n", f"{role}{part.says}: ", _coloured(part.grade))
        if part.why_not:
            yield title.append(f" ({part.why_not})", style="dim")
            continue
        yield title.append(f" ({part.judgement.note})" * bool(part.judgement.note), style="dim")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        effects = part.judgement.effects
        for effect in effects[:MOST_LINES]:
            table.add_row(
                Text(effect.of), Text(effect.outcome), Text(with_interval(effect)),
                Text(effect.note, style="dim"),
            )  # fmt: skip
        yield table
        if len(effects) > MOST_LINES:
            yield Text(f"  … and {len(effects) - MOST_LINES} more; --json has all", style="dim")


def _conditions(one: Judged) -> Iterator[RenderableType]:
    """Yield a table with one line per condition: setting, grade and effect."""
    from svgpbench.papers.grading import effect_of

    conditions = one.of("condition")
    if not conditions:
        return
    yield Text("\nconditions tried beside the claim, which do not vote", style="dim")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    for part in conditions[:MOST_LINES]:
        shown = part.why_not or effect_of([part.judgement])
        table.add_row(Text(part.says), _coloured(part.grade), Text(shown, style="dim"))
    yield table
    if len(conditions) > MOST_LINES:
        yield Text(f"  … and {len(conditions) - MOST_LINES} more; --json has all", style="dim")


def _again(one: Judged, results: Path) -> Iterator[RenderableType]:
    """Yield the commands that make the records of a claim and grade it again."""
    commands = [*one.commands, f"svgpbench claims {one.claim.id} --results {results}"]
    lines = "\n".join(f"  {command}" for command in commands)
    rests = f", {len(one.records)} records" if one.records else ""
    yield Text.assemble((f"\nrun it again{rests}\n", "dim"), lines)
