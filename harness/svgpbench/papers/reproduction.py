"""Select papers, artefacts and claims by name, and write an artefact's files from its records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from svgpbench.atomic import write_whole
from svgpbench.config import CellConfig
from svgpbench.errors import UserError, unknown
from svgpbench.experiments import Experiment, FigureEntry, Selection, TableEntry, resolve
from svgpbench.experiments.resolve import DEFAULT_PRESET
from svgpbench.output.figure import draw_computed, draw_figure
from svgpbench.output.figure_and_table_types import (
    ComputedFigure,
    FigureKind,
    TableKind,
    computed_figure,
    entries_of,
    kind_of,
)
from svgpbench.output.table import Table
from svgpbench.output.table_formats import latex, markdown
from svgpbench.papers import Artefact, Claim, Paper, load_paper, paper_folders, times_figure
from svgpbench.papers.evidence.records import ComputedFrame, computed_frame
from svgpbench.papers.evidence.timings import load_timing
from svgpbench.papers.grading import Judged
from svgpbench.papers.published_values import (
    Beside,
    as_frame,
    as_text,
    beside,
    beside_computed,
)
from svgpbench.papers.reductions import scope
from svgpbench.plugins import FIGURES, TABLES
from svgpbench.results.collect import Collected, collect


@dataclass(frozen=True)
class Chosen:
    """Selected artefacts of a paper, and the claims that need them."""

    paper: Paper
    artefacts: tuple[Artefact, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Planned:
    """An artefact with an experiment: its cells, figures and tables."""

    paper: Paper
    artefact: Artefact
    experiment: Experiment
    cells: tuple[CellConfig, ...]
    scope: str  # caption text: preset, and reductions from the paper
    figures: dict[str, FigureKind]
    tables: dict[str, TableKind]


@dataclass(frozen=True)
class Computed:
    """An artefact whose figures are drawn from computed frames."""

    paper: Paper
    artefact: Artefact
    figures: dict[str, ComputedFigure]


class Picture(NamedTuple):
    """A figure that was drawn."""

    name: str
    png: Path
    caption: str
    pdf: Path | None = None
    numbers: Path | None = None  # CSV of a computed frame
    module: str = ""  # name of the module that draws it


class WrittenTable(NamedTuple):
    """Tables that were built under one name, with their footnotes and files."""

    name: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    markdown: str
    csv: Path
    latex: Path
    module: str = ""  # name of the module that builds them


@dataclass(frozen=True)
class Made:
    """Files of one figure or table, and their content."""

    files: tuple[Path, ...] = ()
    figures: tuple[Picture, ...] = ()
    tables: tuple[WrittenTable, ...] = ()
    beside: tuple[Beside, ...] = ()


@dataclass(frozen=True)
class Written:
    """Files of an artefact, reasons for those left out, and the statuses of its records."""

    files: tuple[Path, ...]
    left_out: tuple[str, ...]
    statuses: Mapping[str, str]  # of each record, by cell id
    missing: int
    computed: bool = False  # from computed frames, without records
    figures: tuple[Picture, ...] = ()
    tables: tuple[WrittenTable, ...] = ()
    beside: tuple[Beside, ...] = ()


def choose(names: Sequence[str]) -> list[Chosen]:
    """Select papers (`adam2021`), artefacts (`adam2021/fig3`) and claims (`adam2021-16`) by name.

    Without names all papers are selected. A claim adds its artefacts, and an artefact the claims that need
    it. Raises `UserError` with the nearest name if a name is unknown.
    """
    papers = [load_paper(name) for name in paper_folders()]
    known = {name for paper in papers for name in _names(paper)}
    for name in names:
        if name not in known:
            raise unknown("paper, artefact or claim", name, known)
    chosen = [_of(paper, names or [paper.name]) for paper in papers]
    return [one for one in chosen if one.artefacts]


def all_of(paper: Paper) -> Chosen:
    """Select all artefacts and claims of a paper."""
    return Chosen(paper, paper.about.artefacts, paper.claims)


def _names(paper: Paper) -> Iterator[str]:
    yield paper.name
    yield from (f"{paper.name}/{artefact.id}" for artefact in paper.about.artefacts)
    yield from (claim.id for claim in paper.claims)


def _of(paper: Paper, names: Collection[str]) -> Chosen:
    artefacts = [
        artefact
        for artefact in paper.about.artefacts
        if paper.name in names or f"{paper.name}/{artefact.id}" in names
    ]
    ids = {artefact.id for artefact in artefacts}
    claims = [x for x in paper.claims if x.id in names or ids.intersection(x.artefacts)]
    ids |= {name for claim in claims if claim.id in names for name in claim.artefacts}
    artefacts = [artefact for artefact in paper.about.artefacts if artefact.id in ids]
    return Chosen(paper, tuple(artefacts), tuple(claims))


def plan(chosen: Chosen, preset: str | None, backends: Sequence[str]) -> list[Planned]:
    """Plan the artefacts that have an experiment; `preset` and `backends` replace the declared ones.

    Raises `UserError` for an unknown preset, and for a figure or table that is declared wrongly.
    """
    return [
        _planned(chosen, artefact, preset or artefact.preset, backends)
        for artefact in chosen.artefacts
        if artefact.experiment
    ]


def _planned(
    chosen: Chosen, artefact: Artefact, preset: str | None, backends: Sequence[str]
) -> Planned:
    experiment = chosen.paper.experiments[artefact.id]
    selection = Selection(backends=backends)
    cells = resolve(experiment, preset, selection)
    whole = resolve(experiment, artefact.preset, selection)
    shown = preset or (DEFAULT_PRESET if DEFAULT_PRESET in experiment.presets else "")
    figures = entries_of(experiment.figures, FigureEntry(name="convergence"), "figure", None)
    tables = entries_of(experiment.tables, TableEntry(name="finals"), "table", None)
    return Planned(
        chosen.paper,
        artefact,
        experiment,
        tuple(cells),
        scope(artefact, shown, cells, whole),
        {entry.name: kind_of(FIGURES, entry, experiment) for entry in figures},
        {entry.name: kind_of(TABLES, entry, experiment) for entry in tables},
    )


PRINTED = "printed"
"""Name of the computed frame that is compared with printed numbers."""

PRINTED_BESIDE_OURS = "printed-beside-ours"
"""Name of the table of printed numbers."""


def draws(chosen: Chosen) -> list[Computed]:
    """Return the computed artefacts that have figures or printed numbers.

    Raises `UserError` for a figure that is declared wrongly.
    """
    name = chosen.paper.name
    return [
        Computed(
            chosen.paper,
            artefact,
            {
                entry.name: computed_figure(entry, artefact.figures, f"{name}/{artefact.id}")
                for entry in artefact.figures
            },
        )
        for artefact in chosen.artefacts
        if artefact.figures or (artefact.computed and artefact.printed)
    ]


def frames_of(of: Computed) -> list[tuple[str, str]]:
    """Return the (paper, name) of each frame that `write_computed` requests."""
    return [(of.paper.name, f"{of.artefact.id}/{name}") for name in (*of.figures, PRINTED)]


def write_computed(
    of: Computed, out: Path, judged: Sequence[Judged], frame_of: ComputedFrame = computed_frame
) -> Written:
    """Draw and write an artefact's computed frames to `out`/paper/artefact.

    Raises `UserError` if a frame lacks a column that its figure needs or a file cannot be written, and
    `OSError` if the folder cannot be created.
    """
    paper, artefact = of.paper.name, of.artefact.id
    folder = out / paper / artefact
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Made] = []
    left_out: list[str] = []
    for name, kind in of.figures.items():
        frame = frame_of(paper, f"{artefact}/{name}")
        if frame is None:
            left_out.append(f"nothing computes {artefact}/{name}")
            continue
        png, pdf, caption, numbers = _named(folder / name, "png", "pdf", "txt", "csv")
        text = draw_computed(frame, kind, f"{paper}/{artefact}", png, pdf)
        write_whole(caption, f"{text}\n".encode())
        write_whole(numbers, frame.to_csv(index=False).encode())
        picture = Picture(name, png, text, pdf, numbers, type(kind).__module__)
        made.append(Made((png, pdf, caption, numbers), (picture,)))
    ours = frame_of(paper, f"{artefact}/{PRINTED}")
    if ours is not None:
        printed = [x for x in of.paper.printed if x.artefact == artefact]
        rows = beside_computed(printed, ours, judged)
        shown = len({row.printed for row in rows})
        says = (
            f"{paper}, {artefact}: {shown} of {len(printed)} printed figures beside ours, computed."
        )
        made.append(_beside_files(rows, says, folder / PRINTED_BESIDE_OURS))
    return _written(made, left_out, {}, 0, computed=True)


def _written(
    made: Sequence[Made],
    left_out: Sequence[str],
    statuses: Mapping[str, str],
    missing: int,
    *,
    computed: bool = False,
) -> Written:
    return Written(
        tuple(path for one in made for path in one.files),
        tuple(left_out),
        statuses,
        missing,
        computed,
        tuple(picture for one in made for picture in one.figures),
        tuple(table for one in made for table in one.tables),
        tuple(row for one in made for row in one.beside),
    )


def write(planned: Planned, results: Path, out: Path, judged: Sequence[Judged]) -> Written:
    """Write an artefact's files to `out`/paper/artefact from the records in `results`.

    `left_out` has the reason for each file that is not made, such as missing records or an unwritable file.
    Raises `OSError` if the folder cannot be created.
    """
    try:
        found = collect(results, planned.experiment, planned.cells)
    except UserError as error:
        return Written((), (str(error),), {}, len(planned.cells))
    found = replace(found, notes=(planned.scope, *found.notes))
    folder = out / planned.paper.name / planned.artefact.id
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Made] = []
    left_out: list[str] = []
    for make in _makers(planned, found, folder, judged):
        try:
            made.append(make())
        except UserError as error:
            left_out.append(str(error))
    statuses = {record.cell_id: record.status for record in found.records}
    return _written(made, left_out, statuses, found.missing)


def write_times(paper: Paper, artefact: Artefact, results: Path, out: Path) -> Made:
    """Draw an artefact's step times to `out`/paper/artefact; nothing without timing or with one problem.

    Raises `UserError` if there are no times or a file cannot be written, and `OSError` if the folder cannot
    be created.
    """
    if artefact.timing is None or len(artefact.timing.problems) == 1:
        return Made()
    found = load_timing(results, artefact.timing)
    if found.why_not:
        raise UserError(found.why_not)
    folder = out / paper.name / artefact.id
    folder.mkdir(parents=True, exist_ok=True)
    png, pdf, caption = _named(folder / "times", "png", "pdf", "txt")
    text = (
        f"{paper.name}, {artefact.id}: {times_figure.draw_times(found, artefact.timing, png, pdf)}"
    )
    write_whole(caption, f"{text}\n".encode())
    picture = Picture("times", png, text, pdf, module=times_figure.__name__)
    return Made((png, pdf, caption), (picture,))


Maker = Callable[[], Made]


def _makers(
    planned: Planned, found: Collected, folder: Path, judged: Sequence[Judged]
) -> Iterator[Maker]:
    """Yield a function that makes each figure, each table and the table of printed numbers."""
    for name, figure in planned.figures.items():
        yield partial(_figure, found, folder / name, figure)
    for name, table in planned.tables.items():
        yield partial(_table, found, folder / name, table)
    yield partial(_beside, planned, found, folder / PRINTED_BESIDE_OURS, judged)


def _figure(found: Collected, stem: Path, kind: FigureKind) -> Made:
    png, pdf, caption = _named(stem, "png", "pdf", "txt")
    text = draw_figure(found, png, kind, pdf)
    write_whole(caption, f"{text}\n".encode())
    picture = Picture(stem.name, png, text, pdf, module=type(kind).__module__)
    return Made((png, pdf, caption), (picture,))


def _table(found: Collected, stem: Path, kind: TableKind) -> Made:
    built = kind.build(found)
    text = built.to_markdown()
    files = _texts(stem, text, built.to_latex(), built.to_csv())
    module = type(kind).__module__
    table = WrittenTable(stem.name, built.tables, built.footnotes, text, files[2], files[1], module)
    return Made(files, tables=(table,))


def _beside(planned: Planned, found: Collected, stem: Path, judged: Sequence[Judged]) -> Made:
    printed = [x for x in planned.paper.printed if x.artefact == planned.artefact.id]
    stand_in = bool(planned.artefact.missing)
    methods = planned.experiment.methods
    rows = beside(printed, found.records, judged, methods, stand_in=stand_in)
    if not rows:
        return Made()
    shown = len({row.printed for row in rows})
    caption = (
        f"{planned.paper.name}, {planned.artefact.id}: {shown} of {len(printed)} printed figures "
        f"beside ours, means with half their 95 % intervals. {planned.scope}."
    )
    return _beside_files(rows, caption, stem)


def _beside_files(rows: Sequence[Beside], caption: str, stem: Path) -> Made:
    shown = as_text(rows)
    text = f"{markdown(shown)}\n\n{caption}"
    files = _texts(stem, text, latex(shown, caption), as_frame(rows).to_csv(index=False))
    table = WrittenTable(stem.name, (shown,), (caption,), text, files[2], files[1])
    return Made(files, tables=(table,), beside=tuple(rows))


def _texts(stem: Path, as_markdown: str, as_latex: str, as_csv: str) -> tuple[Path, ...]:
    paths = _named(stem, "md", "tex", "csv")
    for path, text in zip(paths, (as_markdown, as_latex, as_csv), strict=True):
        write_whole(path, f"{text.rstrip()}\n".encode())
    return paths


def _named(stem: Path, *suffixes: str) -> tuple[Path, ...]:
    return tuple(stem.with_name(f"{stem.name}.{suffix}") for suffix in suffixes)
