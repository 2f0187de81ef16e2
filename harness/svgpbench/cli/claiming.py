"""`svgpbench claims`: what the papers claim, and what the records say of it."""

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
    from svgpbench.papers import Claim, Paper
    from svgpbench.report.verdicts import Judged, Part

WIDTH = 100
LEDGER = ("id", "claim", "verdict", "effect, 95 %", "condition")
MOST = {"claim": 44, "effect, 95 %": 15, "condition": 22}
"""Columns that fold before the others do."""

BESIDE = {
    "released": "--paper",
    "contradictions": "--results",
    "artefacts": "--paper and --results",
}
"""What each page of its own may have with it."""

COLOURS = {"reproduced": "green", "not reproduced": "red", "partly": "yellow", "undecided": "cyan"}


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
        bool, typer.Option("--released", help="The verdicts that came with this version.")
    ] = False,
    results: ResultsFolder = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Say what the papers claim and what the records say of it; one ID shows the whole entry."""
    page = _page(
        {"released": of_release, "contradictions": contradictory, "artefacts": of_artefacts},
        bool(ids or as_json),
        bool(paper),
    )
    if page == "released":
        _print_released(paper)
        return
    if page == "contradictions":
        typer.echo(_contradictions(results))
        return
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.report.asked import judged_claims

    papers = [load_paper(name) for name in ([paper] if paper else paper_folders())]
    with _progress() as on_done:
        judged = judged_claims(papers, results, ids or [], on_done)
    if page == "artefacts":
        from svgpbench.report.taken import taken_as_markdown

        typer.echo(taken_as_markdown(papers, judged, results))
    elif as_json:
        entries = [{"paper": of.name, **one.to_json()} for of, one in judged]
        typer.echo(json.dumps(entries, indent=2, ensure_ascii=False, allow_nan=False))
    elif ids and len(judged) == 1:
        printer(WIDTH).print(_entry(*judged[0], results))
    else:
        console, table = printer(WIDTH), _table([_row(one) for _, one in judged])
        console.print(_about(papers[0], table) if paper and not ids else table)


def _page(asked: dict[str, bool], narrowed: bool, of_a_paper: bool) -> str:
    """The one that is asked for, empty where none is; raises `UserError` for what does not go with it."""
    pages = [name for name, wanted in asked.items() if wanted]
    if not pages:
        return ""
    name = pages[0]
    if len(pages) > 1 or narrowed or (of_a_paper and "--paper" not in BESIDE[name]):
        raise UserError(f"--{name} stands alone but for {BESIDE[name]}")
    return name


def _print_released(paper: str | None) -> None:
    from importlib.metadata import version

    from svgpbench.report.ledger import released

    rows = released(paper)
    printer(WIDTH).print(_table([[*map(Text, row)] for row in rows]))
    typer.echo(
        f"of version {version('svgpbench')}, from its repository's records; "
        "`svgpbench claims --results FOLDER` judges yours"
    )


def _contradictions(results: Path) -> str:
    """Each contradiction of the papers, and what the claims that settle it come to."""
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.papers.contradictions import contradictions
    from svgpbench.report.asked import judged_claims
    from svgpbench.report.settled import settled_as_markdown

    several = contradictions()
    papers = [load_paper(name) for name in paper_folders()]
    asked = [one.id for each in several for one in each.claims]
    with _progress() as on_done:
        judged = {one.claim.id: one for _, one in judged_claims(papers, results, asked, on_done)}
    return settled_as_markdown(several, judged)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What to call with each claim that was computed: on a terminal, a line says which."""
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
    said = (one.claim.id, one.claim.title, one.verdict, one.effect, one.condition)
    return [*map(Text, said)]


def _table(rows: list[list[Text]]) -> RenderableType:
    """Rows of the ledger: id, claim, verdict, effect, condition."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in rows:
        row[2].stylize(COLOURS.get(row[2].plain, "dim"))
        row[4].stylize("dim")
    columns = dict(zip(LEDGER, zip(*rows, strict=True), strict=True))
    shown = {name: texts for name, texts in columns.items() if any(map(str, texts))}
    for column in shown:  # no effect where nothing has run
        table.add_column(column, no_wrap=column in ("id", "verdict"), max_width=MOST.get(column))
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*cells)
    counts = Counter(row[2].plain for row in rows)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return Group(table, Text(f"\n{len(rows)} claims: {listed}", style="dim"))


def _about(paper: Paper, table: RenderableType) -> RenderableType:
    """A paper's claims between what it says and what a reader of it must know."""
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


def _coloured(verdict: str) -> Text:
    return Text(verdict, style=COLOURS.get(verdict, "dim"))


def _entry(paper: Paper, one: Judged, results: Path) -> RenderableType:
    """The whole of one claim: what it says, what decides it, what came out, how to run it again."""
    claim, about = one.claim, paper.about
    title = Text.assemble((claim.id, "bold"), "  ", claim.claim)
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    names = [author.rpartition(" ")[2] for author in about.authors]
    facts.add_row("source", Text(f"{', '.join(names)} {about.year}, {claim.where}"))
    facts.add_row("kind", Text(f"{claim.kind}, {_scale(claim)}"))
    for artefact in map(paper.artefact, claim.artefacts):
        facts.add_row(artefact.id, Text(f"{artefact.what}: {artefact.settings}"))
    if claim.run:
        facts.add_row("run", Text(claim.run))
    facts.add_row("predicate", Text(claim.predicate))
    facts.add_row("hangs on", Text(claim.hangs_on))
    for figure in paper.printed:
        if figure.artefact in claim.artefacts and claim.kind == "number":
            spread = f" ± {figure.spread}" if figure.spread else ""
            value = f"{figure.value}{spread}" if figure.value else "cannot be read"
            facts.add_row("printed", Text(f"{figure.setting}: {figure.metric} {value}"))
    facts.add_row("verdict", Text.assemble(_coloured(one.verdict), f" ({one.condition})"))
    parts = [piece for part in one.parts for piece in _part(part)]
    return Group(title, "", facts, *parts, *_again(one, results))


def _scale(claim: Claim) -> str:
    words = {
        "paper": "at the paper's size",
        "scaled": "scaled",
        "missing": "data cannot be had",
    }
    return words[claim.scale] + (f" ({claim.shrinks})" if claim.shrinks else "")


def _part(part: Part) -> list[RenderableType]:
    from svgpbench.report.verdicts import with_interval

    title = Text.assemble("\n", part.says, ": ", _coloured(part.finding.verdict))
    if part.why_not:
        return [title.append(f" ({part.why_not})", style="dim")]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("", "outcome", "effect, 95 %", ""):
        table.add_column(column)
    for effect in part.finding.effects:
        table.add_row(
            Text(effect.of), Text(effect.outcome), Text(with_interval(effect)),
            Text(effect.note, style="dim"),
        )  # fmt: skip
    ranks = part.finding.ranks
    return [title, table, Text(ranks.text, style="dim")] if ranks else [title, table]


def _again(one: Judged, results: Path) -> Iterator[RenderableType]:
    if one.records:
        yield Text(f"\n{len(one.records)} records", style="dim")
        yield Text(" ".join(one.records), style="dim")
    if one.commands:
        again = "run it again" if one.records else "run it"
        claims = f"svgpbench claims {one.claim.id} --results {results}"
        lines = [f"  {command}" for command in (*one.commands, claims)]
        yield Text.assemble((f"\n{again}\n", "dim"), "\n".join(lines))
