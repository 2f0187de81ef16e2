"""`svgpbench report`: write all results as one folder of HTML pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.options import RESULTS, RecordsFolder, path_named, records_folder
from svgpbench.cli.printing import say, tell
from svgpbench.errors import UserError
from svgpbench.output.number_formats import in_bytes

OUT = RESULTS / "site"


def report_command(
    *,
    paper: Annotated[
        list[str] | None,
        typer.Option(
            "--paper", metavar="NAME", help="Name of a paper; repeat for several. All by default."
        ),
    ] = None,
    results: RecordsFolder = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the pages.", parser=path_named),
    ] = OUT,
) -> None:
    """Make pages of papers, claims, methods, data and speed that open without a server."""
    results = records_folder(results)
    if not results.is_dir():
        raise UserError(f"{results}: there is no such folder; name one with records by --results")
    from svgpbench.site.folder import check_site_folder

    # here too, and not only when the site is written: claims are computed in between
    check_site_folder(out)
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.papers.judged_claims import judged_and_drawn
    from svgpbench.papers.selection import all_of
    from svgpbench.site.building import build_site

    selections = [all_of(load_paper(name)) for name in (paper or paper_folders())]
    tell("claims")
    with judged_and_drawn(selections, results) as (judged, precomputed):
        claims = [(owner, claim) for owner, owned in judged for claim in owned]
        built = build_site(claims, results, out, tell, precomputed)
    for line in built.left_out:
        say(f"warning: left out: {line}", err=True)
    say(
        f"{out / 'index.html'}: {built.pages} pages, {in_bytes(built.size - built.downloads)}, and "
        f"{in_bytes(built.downloads)} to download"
    )
