"""Artefacts of a paper as `svgpbench reproduce` writes them, with links to their sources."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench.output.table import Table
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.reproduction import (
    WrittenArtefact,
    WrittenFiles,
    write_times,
)
from svgpbench.site.downloads import Downloads
from svgpbench.site.pages import Link

FOLDER = "artefacts"


@dataclass(frozen=True)
class FigureFacts:
    """A reproduced figure: path, caption, and links to its sources."""

    name: str
    png: str  # path relative to the site
    caption: str
    links: tuple[Link, ...]

    @property
    def alt(self) -> str:
        """Alternative text: the name of the figure and the first sentence of its caption."""
        first, stop, _ = self.caption.partition(". ")
        return f"Figure {self.name}. {first}{stop}".strip()


@dataclass(frozen=True)
class TableFacts:
    """Reproduced tables with their notes and links to their sources."""

    name: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True)
class ArtefactFacts:
    """An artefact as the page of its paper shows it."""

    artefact: Artefact
    pictures: tuple[FigureFacts, ...]
    tables: tuple[TableFacts, ...]
    state: str  # number of records, or why there are none
    commands: tuple[str, ...]
    links: tuple[Link, ...]  # its experiment file and its records


def artefact_entries(
    paper: Paper,
    written: Mapping[str, WrittenArtefact],
    results: Path,
    site: Path,
    downloads: Downloads,
) -> list[ArtefactFacts]:
    """Return every artefact of a paper, from those `written` into `site`/`FOLDER`, by id."""
    return [
        _artefact_facts(paper, artefact, written.get(artefact.id), results, site, downloads)
        for artefact in paper.about.artefacts
    ]


def _artefact_facts(
    paper: Paper,
    artefact: Artefact,
    written: WrittenArtefact | None,
    results: Path,
    site: Path,
    downloads: Downloads,
) -> ArtefactFacts:
    """Return the entry of an artefact. Writes its measured times, and moves its files to the downloads."""
    output: WrittenArtefact | WrittenFiles = written or WrittenFiles()
    state = _state(artefact, written)
    if written is None and artefact.timing:
        try:
            output = write_times(paper, artefact, results, site / FOLDER)
            state = f"times of {artefact.timing.record}"
        except UserError as error:
            state = str(error)
    links = tuple(downloads.add_artefact(paper, artefact))
    commands: list[str] = []
    if artefact.experiment or artefact.computed or artefact.timing:
        commands.append(f"svgpbench reproduce {paper.name}/{artefact.id}")
        if output.files and not artefact.computed:
            commands.append(f"{commands[0]} --from-records --results {results}")
    pictures = []
    for figure in output.figures:
        name, files = figure.name, []
        if figure.pdf:
            files.append(downloads.move(figure.pdf, "PDF", f"figure {name}"))
        if figure.numbers:
            files.append(downloads.move(figure.numbers, "numbers", f"numbers of figure {name}"))
        files += [*_code(figure.module, downloads), *links]
        png = figure.png.relative_to(site).as_posix()
        pictures.append(FigureFacts(name, png, figure.caption, tuple(files)))
    tables = []
    for table in output.tables:
        files = [
            downloads.move(table.csv, "CSV", f"table {table.name}"),
            downloads.move(table.latex, "LaTeX", f"table {table.name}"),
            *_code(table.module, downloads),
        ]
        tables.append(TableFacts(table.name, table.tables, table.notes, tuple(files)))
    return ArtefactFacts(artefact, tuple(pictures), tuple(tables), state, tuple(commands), links)


def _state(artefact: Artefact, written: WrittenArtefact | None) -> str:
    """Say what an artefact is based on, and why parts of it are missing."""
    if written:
        if written.computed:
            return "; ".join(["computed afresh, no records", *written.left_out])
        failed = sum(status != "ok" for status in written.statuses.values())
        records = f"{len(written.statuses)} records, {failed} of them of cells that failed"
        missing = [f"{written.missing} cells have not run"] * bool(written.missing)
        return "; ".join([records] * bool(written.statuses) + missing + list(written.left_out))
    if artefact.computed:
        return "computed afresh, where a claim is decided by it"
    if artefact.walks:
        return "its claims rest on the survival map"
    if artefact.learning:
        return f"its claims rest on runs of `svgpbench learn --plan {artefact.learning}`"
    return "; ".join(["no experiment makes it", *filter(None, [artefact.missing])])


def _code(module: str, downloads: Downloads) -> Iterator[Link]:
    """Yield a link to the module that draws a figure or builds a table."""
    if module:
        # another process drew it, but the kind was loaded here when the artefact was planned
        yield downloads.add_source(sys.modules[module])
