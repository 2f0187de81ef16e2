"""Artefacts of a paper as `svgpbench reproduce` writes them, with links to their sources."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench.output.table import Table
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.evidence.records import ComputedFrame
from svgpbench.papers.grading import Judged
from svgpbench.papers.reproduction import (
    WrittenArtefact,
    WrittenFigure,
    WrittenFiles,
    WrittenTable,
    all_of,
    computed_artefacts,
    plan,
    write,
    write_computed,
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
    judged: Sequence[Judged],
    results: Path,
    site: Path,
    downloads: Downloads,
    frame_of: ComputedFrame,
) -> list[ArtefactFacts]:
    """Return every artefact of a paper; write its figures and tables into the site's folder."""
    selection = all_of(paper)
    folder = site / FOLDER
    written = {
        planned.artefact.id: write(planned, results, folder, judged)
        for planned in plan(selection, None, ())
    }
    written |= {
        computed.artefact.id: write_computed(computed, folder, judged, frame_of)
        for computed in computed_artefacts(selection)
    }
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
    """Return the entry of an artefact. Writes its measured times if it has any."""
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
    pictures = tuple(_figure_facts(figure, site, downloads, links) for figure in output.figures)
    tables = tuple(_table_facts(table, downloads) for table in output.tables)
    return ArtefactFacts(artefact, pictures, tables, state, tuple(commands), links)


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


def _figure_facts(
    figure: WrittenFigure, site: Path, downloads: Downloads, data: Sequence[Link]
) -> FigureFacts:
    """Move the PDF and the numbers of a figure to the downloads, and return it with its links."""
    name = figure.name
    links = [downloads.move(figure.pdf, "PDF", f"figure {name}")] if figure.pdf else []
    if figure.numbers:
        links.append(downloads.move(figure.numbers, "numbers", f"numbers of figure {name}"))
    links += [*_code(figure.module, downloads), *data]
    return FigureFacts(name, figure.png.relative_to(site).as_posix(), figure.caption, tuple(links))


def _table_facts(table: WrittenTable, downloads: Downloads) -> TableFacts:
    """Move the files of a table to the downloads, and return it with its links."""
    description = f"table {table.name}"
    links = [
        downloads.move(table.csv, "CSV", description),
        downloads.move(table.latex, "LaTeX", description),
        *_code(table.module, downloads),
    ]
    return TableFacts(table.name, table.tables, table.notes, tuple(links))


def _code(module: str, downloads: Downloads) -> Iterator[Link]:
    """Yield a link to the module that draws a figure or builds a table."""
    if module:
        yield downloads.add_source(sys.modules[module])
