"""`svgpbench claims`: the claims of the papers, graded by the records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench import __version__
from svgpbench.cli.claim_tables import claim_entry, grades_table, ledger_table, with_summary
from svgpbench.cli.options import (
    AsJson,
    RecordsFolder,
    has_records,
    records_folder,
    shipped_count_too,
)
from svgpbench.cli.printing import counting, print_json, say, show, tell
from svgpbench.errors import UserError, unknown

if TYPE_CHECKING:
    from svgpbench.papers import Paper
    from svgpbench.papers.grading import Judged

COMPATIBLE_OPTIONS = {
    "released": "--paper",
    "ours": "--paper",
    "contradictions": "--results",
    "artefacts": "--paper and --results",
    "forest": "--paper, --results and --figure",
}
"""Options that can be combined with each separate page (`--released`, ...)."""


def claims_command(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Ids of claims, or papers; all by default."),
    ] = None,
    *,
    paper: Annotated[
        str | None, typer.Option("--paper", metavar="NAME", help="Name of a paper; all by default.")
    ] = None,
    show_contradictions: Annotated[
        bool, typer.Option("--contradictions", help="Show the contradictions between papers.")
    ] = False,
    show_artefacts: Annotated[
        bool,
        typer.Option(
            "--artefacts", help="Show the cost of each artefact and the claims that need it."
        ),
    ] = False,
    show_released: Annotated[
        bool,
        typer.Option("--released", help="Show the grades that were shipped with this version."),
    ] = False,
    show_forest: Annotated[
        bool, typer.Option("--forest", help="Show each effect beside what matters, by grade.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the same as a picture.")
    ] = None,
    show_ours: Annotated[
        bool, typer.Option("--ours", help="Show the shipped grades of our own findings alone.")
    ] = False,
    results: RecordsFolder = None,
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the grades as Markdown.")
    ] = False,
) -> None:
    """Grade papers' claims by records; one ID shows the claim's finding, evidence and conditions."""
    if figure is not None:
        from svgpbench.output.figure import check_figure_path

        # before the claims are computed
        check_figure_path(figure)
    paper, ids = _paper_and_claims(paper, ids or ())
    page = _requested_page(
        {
            "released": show_released,
            "ours": show_ours,
            "contradictions": show_contradictions,
            "artefacts": show_artefacts,
            "forest": show_forest or figure is not None,
        },
        bool(ids or as_json),
        bool(paper),
    )
    if page in ("released", "ours"):
        _print_released(paper, as_markdown, own=page == "ours")
        return
    if not (page or as_json or has_records(results)) and _all_released(paper):
        line = f"no records here: these are the grades of version {__version__}; --results names others"
        _print_released(paper, as_markdown, ids or (), line)
        return
    if page == "contradictions":
        typer.echo(_contradictions(records_folder(results)))
        return
    shipped_count = shipped_count_too(results) and not page
    results = records_folder(results)
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.papers.judged_claims import judged_claims
    from svgpbench.papers.ledger import as_row, grades_page, released

    papers = [load_paper(name) for name in ([paper] if paper else paper_folders())]
    at_once = "" if ids else " (--released shows the shipped grades at once)"
    with counting(f"computing claims afresh{at_once}") as on_done:
        ledger = judged_claims(papers, results, ids or [], on_done)
    # what nothing here decides has the grade that was shipped
    not_run = {judged.claim.id for _, judged in ledger if judged.grade == "not run"}
    shipped = {
        row["id"]: row for row in (released(paper) if shipped_count else ()) if row["id"] in not_run
    }
    if shipped:
        tell(
            f"{len(shipped)} of {len(ledger)} grades are those of version {__version__}, as {results} "
            f"has no runs for them; --results {results} shows yours alone"
        )
    if page:
        _print_page(page, papers, ledger, results, figure)
    elif as_markdown:
        typer.echo(
            grades_page([shipped.get(judged.claim.id, as_row(judged)) for _, judged in ledger])
        )
    elif as_json:
        print_json(
            [
                {"paper": owner.name, **judged.to_json()}
                | ({"released": row} if (row := shipped.get(judged.claim.id)) else {})
                for owner, judged in ledger
            ]
        )
    elif ids and len(ledger) == 1 and shipped:
        _print_released(paper, as_markdown=False, ids=ids)
    elif ids and len(ledger) == 1:
        show(*claim_entry(*ledger[0], results))
    else:
        table = ledger_table(ledger, shipped)
        show(*(with_summary(papers[0], table) if paper and not ids else [table]))


def _print_page(
    page: str,
    papers: Sequence[Paper],
    ledger: Sequence[tuple[Paper, Judged]],
    results: Path,
    figure: Path | None,
) -> None:
    """Print what each artefact costs, or the effects of the claims beside what matters; or draw these."""
    from svgpbench.papers.artefact_costs import costs_as_markdown
    from svgpbench.papers.forest import CAPTION, as_text, draw, forest_rows

    if page == "artefacts":
        typer.echo(costs_as_markdown(papers, ledger, results))
        return
    rows = forest_rows(judged for _, judged in ledger)
    if figure is None:
        show(as_text(rows), CAPTION)
    else:
        draw(rows, figure)
        say(f"{figure}: {len(rows)} effects")


def _paper_and_claims(paper: str | None, names: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the paper to show and the ids of claims; the name of a paper stands for all of its claims."""
    from svgpbench.papers import load_paper, paper_folders

    folders = paper_folders() if names else {}
    if len(names) == 1 and paper is None and names[0] in folders:
        return names[0], []
    return paper, [
        claim
        for name in names
        for claim in ([x.id for x in load_paper(name).claims] if name in folders else [name])
    ]


def _requested_page(requested: dict[str, bool], has_other_options: bool, has_paper: bool) -> str:
    """Return the name of the requested page, or an empty string.

    Raises `UserError` if several pages are requested, or options that do not fit the page.
    """
    pages = [name for name, is_requested in requested.items() if is_requested]
    if not pages:
        return ""
    name, *others = pages
    compatible = COMPATIBLE_OPTIONS[name]
    if others or has_other_options or (has_paper and "--paper" not in compatible):
        raise UserError(f"--{name} stands alone but for {compatible}")
    return name


def _all_released(paper: str | None) -> bool:
    """Return True if this version has grades of the paper, or of every installed paper."""
    from svgpbench.papers import paper_folders
    from svgpbench.papers.ledger import released

    return all(map(released, [paper] if paper else paper_folders()))


def _print_released(
    paper: str | None,
    as_markdown: bool,
    ids: Sequence[str] = (),
    line: str = "",
    *,
    own: bool = False,
) -> None:
    """Print the grades that were shipped with this version, of a paper, of some claims or all.

    `line` is told on stderr first. With `own` they are those of our own findings.

    Raises `UserError` for an unknown id, and for a paper without findings of ours.
    """
    from importlib.metadata import version

    from svgpbench.papers.ledger import grades_page, released

    rows = [row for row in released(paper) if row["kind"] == "ours" or not own]
    if own and not rows:
        raise UserError(f"{paper} has no finding of ours; without --paper all of them are shown")
    known = [row["id"] for row in rows]
    for name in ids:
        if name not in known:
            raise unknown("claim", name, known)
    if line:
        tell(line)
    if ids:
        show(*(f"{row['id']}  {row['claim']}: {row['grade']} ({row['fidelity']})\n{row['finding']}"
               for row in rows if row["id"] in ids))  # fmt: skip
        return
    if as_markdown:
        typer.echo(grades_page(rows))
        return
    names = ("id", "claim", "grade", "lasts", "fidelity", "effect")
    show(
        grades_table([[row[name] for name in names] for row in rows], [row["kind"] for row in rows])
    )
    say(
        f"of version {version('svgpbench')}, from its repository's records; "
        "`svgpbench claims --results FOLDER` grades yours"
    )


def _contradictions(results: Path) -> str:
    """Return, as Markdown, each contradiction of the papers and the grades of its claims."""
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.papers.contradictions import contradictions, contradictions_as_markdown
    from svgpbench.papers.judged_claims import judged_claims

    conflicts = contradictions()
    papers = [load_paper(name) for name in paper_folders()]
    ids = [claim.id for conflict in conflicts for claim in conflict.claims]
    with counting("computing claims afresh") as on_done:
        ledger = judged_claims(papers, results, ids, on_done)
    return contradictions_as_markdown(conflicts, {judged.claim.id: judged for _, judged in ledger})
