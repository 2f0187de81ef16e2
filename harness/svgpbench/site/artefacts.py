"""Artefacts of a paper as `svgpbench reproduce` makes them, with links to their sources."""

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
    Made,
    Written,
    WrittenTable,
    all_of,
    draws,
    plan,
    write,
    write_computed,
    write_times,
)
from svgpbench.papers.reproduction import Picture as DrawnPicture
from svgpbench.site.downloads import Downloads
from svgpbench.site.pages import Link

FOLDER = "artefacts"


@dataclass(frozen=True)
class Picture:
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
class Tabled:
    """Reproduced tables with their notes."""

    name: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Shown:
    """An artefact as shown on the page of its paper."""

    artefact: Artefact
    pictures: tuple[Picture, ...]
    tables: tuple[Tabled, ...]
    state: str  # number of records, or why there are none
    commands: tuple[str, ...]
    links: tuple[Link, ...]  # its experiment file and its records


def shown(
    paper: Paper,
    judged: Sequence[Judged],
    results: Path,
    site: Path,
    downloads: Downloads,
    frame_of: ComputedFrame,
) -> list[Shown]:
    """Return every artefact of a paper; write its figures and tables into the site's folder."""
    chosen = all_of(paper)
    out = site / FOLDER
    written = {one.artefact.id: write(one, results, out, judged) for one in plan(chosen, None, ())}
    written |= {
        one.artefact.id: write_computed(one, out, judged, frame_of) for one in draws(chosen)
    }
    return [
        _shown(paper, artefact, written.get(artefact.id), results, site, downloads)
        for artefact in paper.about.artefacts
    ]


def _shown(
    paper: Paper,
    artefact: Artefact,
    written: Written | None,
    results: Path,
    site: Path,
    downloads: Downloads,
) -> Shown:
    made: Written | Made = written or Made()
    state = _counted(written) if written else _state(artefact)
    if written is None and artefact.timing:
        try:
            made = write_times(paper, artefact, results, site / FOLDER)
            state = f"times of {artefact.timing.record}"
        except UserError as error:
            state = str(error)
    links = tuple(downloads.of_artefact(paper, artefact))
    commands: list[str] = []
    if artefact.experiment or artefact.computed or artefact.timing:
        commands.append(f"svgpbench reproduce {paper.name}/{artefact.id}")
        if made.files and not artefact.computed:
            commands.append(f"{commands[0]} --from-records --results {results}")
    pictures = tuple(_picture(one, site, downloads, links) for one in made.figures)
    tables = tuple(_tabled(one, downloads) for one in made.tables)
    return Shown(artefact, pictures, tables, state, tuple(commands), links)


def _state(artefact: Artefact) -> str:
    """Return what an artefact without written files is based on, in words."""
    if artefact.computed:
        return "computed afresh, where a claim is decided by it"
    if artefact.walks:
        return "its claims rest on the survival map"
    if artefact.learning:
        return f"its claims rest on runs of `svgpbench learn --plan {artefact.learning}`"
    return "; ".join(["no experiment makes it", *filter(None, [artefact.missing])])


def _counted(written: Written) -> str:
    """Return the number of records of an artefact, and why parts of it are missing, in words."""
    if written.computed:
        return "; ".join(["computed afresh, no records", *written.left_out])
    failed = sum(status != "ok" for status in written.statuses.values())
    there = f"{len(written.statuses)} records, {failed} of them of cells that failed"
    missing = [f"{written.missing} cells have not run"] * bool(written.missing)
    return "; ".join([there] * bool(written.statuses) + missing + list(written.left_out))


def _picture(
    drawn: DrawnPicture, site: Path, downloads: Downloads, data: Sequence[Link]
) -> Picture:
    name = drawn.name
    links = [downloads.made(drawn.pdf, "PDF", f"figure {name}")] if drawn.pdf else []
    if drawn.numbers:
        links.append(downloads.made(drawn.numbers, "numbers", f"numbers of figure {name}"))
    links += [*_code(drawn.module, downloads), *data]
    return Picture(name, drawn.png.relative_to(site).as_posix(), drawn.caption, tuple(links))


def _tabled(written: WrittenTable, downloads: Downloads) -> Tabled:
    says = f"table {written.name}"
    links = [
        downloads.made(written.csv, "CSV", says),
        downloads.made(written.latex, "LaTeX", says),
        *_code(written.module, downloads),
    ]
    return Tabled(written.name, written.tables, written.notes, tuple(links))


def _code(module: str, downloads: Downloads) -> Iterator[Link]:
    """Yield a link to the module that draws a figure or builds a table."""
    if module:
        yield downloads.source(sys.modules[module])
