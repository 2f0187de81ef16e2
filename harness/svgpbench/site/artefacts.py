"""Artefacts of a paper as `svgpbench reproduce` writes them, with links to their sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from svgpbench.output.table import Table
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.report import ArtefactReport
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
    reports: Mapping[str, ArtefactReport],
    results: Path,
    site: Path,
    downloads: Downloads,
) -> list[ArtefactFacts]:
    """Return every artefact of a paper, from reports by id of what was written into `site`/`FOLDER`."""
    return [
        _artefact_facts(paper, artefact, reports[artefact.id], results, site, downloads)
        for artefact in paper.about.artefacts
    ]


def _artefact_facts(
    paper: Paper,
    artefact: Artefact,
    report: ArtefactReport,
    results: Path,
    site: Path,
    downloads: Downloads,
) -> ArtefactFacts:
    """Return the entry of an artefact, and move its files to the downloads."""
    links = tuple(downloads.add_artefact(paper, artefact))
    reproduce = f"svgpbench reproduce {paper.name}/{artefact.id}"
    commands = [reproduce] if artefact.experiment or artefact.computed else [report.command]
    if artefact.recorded and report.files:
        commands.append(f"{reproduce} --from-records --results {results}")
    pictures = []
    for figure in report.figures:
        name, files = figure.name, [downloads.move(figure.pdf, "PDF", f"figure {figure.name}")]
        if figure.numbers:
            files.append(downloads.move(figure.numbers, "numbers", f"numbers of figure {name}"))
        files += [*_code(figure.module, downloads), *links]
        png = figure.png.relative_to(site).as_posix()
        pictures.append(FigureFacts(name, png, figure.caption, tuple(files)))
    tables = []
    for table in report.tables:
        files = [
            downloads.move(table.csv, "CSV", f"table {table.name}"),
            downloads.move(table.latex, "LaTeX", f"table {table.name}"),
            *_code(table.module, downloads),
        ]
        tables.append(TableFacts(table.name, table.tables, table.notes, tuple(files)))
    return ArtefactFacts(
        artefact,
        tuple(pictures),
        tuple(tables),
        _state(report),
        tuple(filter(None, commands)),
        links,
    )


def _state(report: ArtefactReport) -> str:
    """Return the evidence of an artefact, and the reasons for what is missing, as text."""
    evidence = report.description
    if report.statuses:
        failed = sum(status != "ok" for status in report.statuses.values())
        evidence = f"{len(report.statuses)} records, {failed} of them of cells that failed"
    missing = [f"{report.missing} cells have not run"] * bool(report.missing)
    return "; ".join([evidence, *missing, *report.notes])


def _code(module: str, downloads: Downloads) -> Iterator[Link]:
    """Yield a link to the module that draws a figure or builds a table."""
    if module:
        yield downloads.add_source(import_module(module))
