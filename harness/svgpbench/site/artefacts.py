"""Artefacts of a paper as `svgpbench reproduce` makes them, with links to their sources."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from svgpbench.errors import UserError
from svgpbench.papers import Artefact, Paper, times_figure
from svgpbench.papers.evidence.records import ComputedFrame
from svgpbench.papers.grading import Judged
from svgpbench.papers.reproduction import (
    Written,
    all_of,
    draws,
    plan,
    write,
    write_computed,
    write_times,
)
from svgpbench.site.downloads import Downloads
from svgpbench.site.pages import Link
from svgpbench.site.tables import Grid, of_markdown

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
    grids: tuple[Grid, ...]
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


class Made(NamedTuple):
    """Files written for an artefact, and the objects that made its figures and tables."""

    written: Written
    figures: Mapping[str, object]
    tables: Mapping[str, object]


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
    written: dict[str, Made] = {}
    for planned in plan(chosen, None, ()):
        made = write(planned, results, out, judged)
        written[planned.artefact.id] = Made(made, planned.figures, planned.tables)
    for computed in draws(chosen):
        made = write_computed(computed, out, judged, frame_of)
        written[computed.artefact.id] = Made(made, computed.figures, {})
    return [
        _shown(paper, artefact, written.get(artefact.id), results, site, downloads)
        for artefact in paper.about.artefacts
    ]


def _shown(
    paper: Paper,
    artefact: Artefact,
    made: Made | None,
    results: Path,
    site: Path,
    downloads: Downloads,
) -> Shown:
    files: Sequence[Path] = ()
    figures: Mapping[str, object] = {"times": times_figure}
    kinds: Mapping[str, object] = {}
    state, commands = _state(artefact), [f"svgpbench reproduce {paper.name}/{artefact.id}"]
    if made is not None:
        files, state = made.written.files, _counted(made.written)
        figures, kinds = made.figures, made.tables
    elif artefact.timing:
        try:
            files = write_times(paper, artefact, results, site / FOLDER)
            state = f"times of {artefact.timing.record}"
        except UserError as error:
            state = str(error)
    links = tuple(downloads.of_artefact(paper, artefact))
    if files and not artefact.computed:
        commands.append(f"{commands[0]} --from-records --results {results}")
    groups = _by_name(files)
    pictures = [
        _picture(name, of, figures.get(name), site, downloads, links)
        for name, of in groups.items()
        if ".png" in of
    ]
    tables = [
        _tabled(name, of, kinds.get(name), downloads) for name, of in groups.items() if ".md" in of
    ]
    if not (artefact.experiment or artefact.computed or artefact.timing):
        commands = []
    return Shown(artefact, tuple(pictures), tuple(tables), state, tuple(commands), links)


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


def _by_name(files: Sequence[Path]) -> dict[str, dict[str, Path]]:
    """Group files by the name of their figure or table, then by suffix."""
    found: dict[str, dict[str, Path]] = {}
    for path in files:
        name = path.name.removesuffix(path.suffix)
        found.setdefault(name, {})[path.suffix] = path
    return found


def _picture(
    name: str,
    files: Mapping[str, Path],
    drawn_by: object,
    site: Path,
    downloads: Downloads,
    data: Sequence[Link],
) -> Picture:
    caption = files[".txt"].read_text(encoding="utf-8").strip()
    links = [downloads.made(files[".pdf"], "PDF", f"figure {name}")]
    if ".csv" in files and ".md" not in files:  # with a .md, the .csv is of the table of that name
        links.append(downloads.made(files[".csv"], "numbers", f"numbers of figure {name}"))
    links += [*_code(drawn_by, downloads), *data]
    return Picture(name, files[".png"].relative_to(site).as_posix(), caption, tuple(links))


def _tabled(name: str, files: Mapping[str, Path], drawn_by: object, downloads: Downloads) -> Tabled:
    grids, notes = of_markdown(files[".md"].read_text(encoding="utf-8"))
    links = [
        downloads.made(files[suffix], text, f"table {name}")
        for text, suffix in (("CSV", ".csv"), ("LaTeX", ".tex"))
    ]
    return Tabled(name, grids, notes, (*links, *_code(drawn_by, downloads)))


def _code(kind: object, downloads: Downloads) -> Iterator[Link]:
    """Yield a link to the module that draws a figure or builds a table."""
    if kind is not None:
        module = kind if inspect.ismodule(kind) else sys.modules[type(kind).__module__]
        yield downloads.source(module)
