"""Select papers, artefacts and claims by name, and write an artefact's files from its records.

Modules that import Matplotlib are imported where they are used: at the top of this module they would take
a third of the time of `import svgpbench.api`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from svgpbench.atomic import write_whole
from svgpbench.csv_text import as_csv
from svgpbench.errors import NotRecordedError, UserError, unknown
from svgpbench.experiments import FigureEntry, Selection, TableEntry
from svgpbench.experiments.plan import Plan
from svgpbench.experiments.resolve import DEFAULT_PRESET
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
from svgpbench.papers import Artefact, Claim, Paper, load_paper, paper_folders
from svgpbench.papers.evidence.timings import load_timing
from svgpbench.papers.grading import Judged
from svgpbench.papers.precomputed import NOT_PRECOMPUTED, PrecomputedResults
from svgpbench.papers.published_values import (
    PrintedComparison,
    as_frame,
    as_text,
    compare_with_computed,
    compare_with_records,
)
from svgpbench.papers.reductions import scope
from svgpbench.plugins import FIGURES, TABLES
from svgpbench.results.collect import Collected, collect


@dataclass(frozen=True)
class PaperSelection:
    """Selected artefacts of a paper, and the claims that need them."""

    paper: Paper
    artefacts: tuple[Artefact, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class PlannedArtefact:
    """An artefact with an experiment: its cells, figures and tables."""

    paper: Paper
    artefact: Artefact
    plan: Plan
    scope: str  # caption text: preset, and reductions from the paper
    figures: dict[str, FigureKind]
    tables: dict[str, TableKind]


@dataclass(frozen=True)
class ComputedArtefact:
    """An artefact whose figures are drawn from computed frames."""

    paper: Paper
    artefact: Artefact
    figures: dict[str, ComputedFigure]


class WrittenFigure(NamedTuple):
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
class WrittenFiles:
    """Files of one figure or table, and their content."""

    files: tuple[Path, ...] = ()
    figures: tuple[WrittenFigure, ...] = ()
    tables: tuple[WrittenTable, ...] = ()
    comparisons: tuple[PrintedComparison, ...] = ()


@dataclass(frozen=True)
class WrittenArtefact:
    """Files of an artefact, reasons for those left out, and the statuses of its records."""

    files: tuple[Path, ...]
    left_out: tuple[str, ...]
    statuses: Mapping[str, str]  # of each record, by cell id
    missing: int
    computed: bool = False  # from computed frames, without records
    figures: tuple[WrittenFigure, ...] = ()
    tables: tuple[WrittenTable, ...] = ()
    comparisons: tuple[PrintedComparison, ...] = ()
    incomplete: bool = False  # whether something that is recorded is not in the files


def choose(names: Sequence[str]) -> list[PaperSelection]:
    """Select papers (`adam2021`), artefacts (`adam2021/fig3`) and claims (`adam2021-16`) by name.

    Without names all papers are selected. A claim adds its artefacts, and an artefact the claims that need
    it. Raises `UserError` with the nearest name if a name is unknown.
    """
    papers = [load_paper(name) for name in paper_folders()]
    all_names = {paper.name for paper in papers}
    all_names |= {f"{paper.name}/{x.id}" for paper in papers for x in paper.about.artefacts}
    all_names |= {claim.id for paper in papers for claim in paper.claims}
    for name in names:
        if name not in all_names:
            raise unknown("paper, artefact or claim", name, all_names)
    selections = []
    for paper in papers:
        of_paper = names or [paper.name]
        ids = {
            artefact.id
            for artefact in paper.about.artefacts
            if paper.name in of_paper or f"{paper.name}/{artefact.id}" in of_paper
        }
        claims = [x for x in paper.claims if x.id in of_paper or ids.intersection(x.artefacts)]
        ids |= {name for claim in claims if claim.id in of_paper for name in claim.artefacts}
        artefacts = [artefact for artefact in paper.about.artefacts if artefact.id in ids]
        if artefacts:
            selections.append(PaperSelection(paper, tuple(artefacts), tuple(claims)))
    return selections


def all_of(paper: Paper) -> PaperSelection:
    """Select all artefacts and claims of a paper."""
    return PaperSelection(paper, paper.about.artefacts, paper.claims)


def plan(
    selection: PaperSelection, preset: str | None, backends: Sequence[str]
) -> list[PlannedArtefact]:
    """Plan the artefacts that have an experiment; `preset` and `backends` replace the declared ones.

    Raises `UserError` for an unknown preset, and for a figure or table that is declared wrongly.
    """
    return [
        _planned(selection.paper, artefact, preset or artefact.preset, backends)
        for artefact in selection.artefacts
        if artefact.experiment
    ]


def _planned(
    paper: Paper, artefact: Artefact, preset: str | None, backends: Sequence[str]
) -> PlannedArtefact:
    experiment = paper.experiments[artefact.id]
    selection = Selection(backends=backends)
    planned = Plan.of(experiment, preset, selection)
    own = Plan.of(experiment, artefact.preset, selection)
    shown_preset = preset or (DEFAULT_PRESET if DEFAULT_PRESET in experiment.presets else "")
    figures = entries_of(experiment.figures, FigureEntry(name="convergence"), "figure", None)
    tables = entries_of(experiment.tables, TableEntry(name="finals"), "table", None)
    return PlannedArtefact(
        paper,
        artefact,
        planned,
        scope(artefact, shown_preset, planned.configs, own.configs),
        {entry.name: kind_of(FIGURES, entry, experiment) for entry in figures},
        {entry.name: kind_of(TABLES, entry, experiment) for entry in tables},
    )


PRINTED = "printed"
"""Name of the computed frame that is compared with printed numbers."""

PRINTED_BESIDE_OURS = "printed-beside-ours"
"""Name of the table of printed numbers."""


def computed_artefacts(selection: PaperSelection) -> list[ComputedArtefact]:
    """Return the computed artefacts that have figures or printed numbers.

    Raises `UserError` for a figure that is declared wrongly.
    """
    paper = selection.paper
    return [
        ComputedArtefact(
            paper,
            artefact,
            {
                entry.name: computed_figure(entry, artefact.figures, f"{paper.name}/{artefact.id}")
                for entry in artefact.figures
            },
        )
        for artefact in selection.artefacts
        if artefact.figures or (artefact.computed and artefact.printed)
    ]


def frames_of(computed: ComputedArtefact) -> list[tuple[str, str]]:
    """Return the (paper, name) of each frame that `write_computed` draws or compares."""
    paper, artefact = computed.paper.name, computed.artefact.id
    return [(paper, f"{artefact}/{name}") for name in (*computed.figures, PRINTED)]


def start_writing(
    selection: PaperSelection,
    planned: Iterable[PlannedArtefact],
    results: Path,
    out: Path,
    judged: Sequence[Judged],
    precomputed: PrecomputedResults = NOT_PRECOMPUTED,
) -> dict[str, Future[WrittenArtefact]]:
    """Start `write` for each planned artefact and `write_computed` for each computed one; return them by id.

    Raises `UserError` if a figure is declared wrongly. A future raises what its function raises.
    """
    submit = precomputed.executor.submit
    writing = {x.artefact.id: submit(write, x, results, out, judged) for x in planned}
    for computed in computed_artefacts(selection):
        frames = {name: precomputed.frame(*name) for name in frames_of(computed)}
        writing[computed.artefact.id] = submit(write_computed, computed, frames, out, judged)
    return writing


def write_computed(
    computed: ComputedArtefact,
    frames: Mapping[tuple[str, str], pd.DataFrame | None],
    out: Path,
    judged: Sequence[Judged],
) -> WrittenArtefact:
    """Draw and write an artefact's computed frames, which are by (paper, name), to `out`/paper/artefact.

    Raises `UserError` if a frame lacks a column that its figure needs or a file cannot be written, and
    `OSError` if the folder cannot be created.
    """
    from svgpbench.output.figure import draw_computed

    paper, artefact = computed.paper.name, computed.artefact.id
    folder = out / paper / artefact
    folder.mkdir(parents=True, exist_ok=True)
    outputs: list[WrittenFiles] = []
    left_out: list[str] = []
    for name, kind in computed.figures.items():
        frame = frames[paper, f"{artefact}/{name}"]
        if frame is None:
            left_out.append(f"nothing computes {artefact}/{name}")
            continue
        png, pdf, caption, numbers = _paths(folder / name, "png", "pdf", "txt", "csv")
        text = draw_computed(frame, kind, f"{paper}/{artefact}", png, pdf)
        write_whole(caption, f"{text}\n".encode())
        write_whole(numbers, as_csv(frame).encode())
        figure = WrittenFigure(name, png, text, pdf, numbers, type(kind).__module__)
        outputs.append(WrittenFiles((png, pdf, caption, numbers), (figure,)))
    frame = frames[paper, f"{artefact}/{PRINTED}"]
    if frame is not None:
        printed = [x for x in computed.paper.printed if x.artefact == artefact]
        rows = compare_with_computed(printed, frame, judged)
        shown = len({row.printed for row in rows})
        text = (
            f"{paper}, {artefact}: {shown} of {len(printed)} printed figures beside ours, computed."
        )
        outputs.append(_comparison_files(rows, text, folder / PRINTED_BESIDE_OURS))
    return _written_artefact(outputs, left_out, {}, 0, computed=True)


def _written_artefact(
    outputs: Sequence[WrittenFiles],
    left_out: Sequence[str],
    statuses: Mapping[str, str],
    missing: int,
    *,
    computed: bool = False,
) -> WrittenArtefact:
    return WrittenArtefact(
        tuple(path for output in outputs for path in output.files),
        tuple(left_out),
        statuses,
        missing,
        computed,
        tuple(figure for output in outputs for figure in output.figures),
        tuple(table for output in outputs for table in output.tables),
        tuple(row for output in outputs for row in output.comparisons),
    )


def write(
    planned: PlannedArtefact, results: Path, out: Path, judged: Sequence[Judged]
) -> WrittenArtefact:
    """Write an artefact's files to `out`/paper/artefact from the records in `results`.

    `left_out` has the reason for each file that is not made, such as missing records or an unwritable file.
    Raises `OSError` if the folder cannot be created.
    """
    try:
        collected = collect(results, planned.plan)
    except UserError as error:
        return WrittenArtefact((), (str(error),), {}, len(planned.plan.configs))
    collected = replace(collected, notes=(planned.scope, *collected.notes))
    folder = out / planned.paper.name / planned.artefact.id
    folder.mkdir(parents=True, exist_ok=True)
    writers: list[Callable[[], WrittenFiles]] = [
        *(
            partial(_write_figure, collected, folder / x, planned.figures[x])
            for x in planned.figures
        ),
        *(partial(_write_table, collected, folder / x, planned.tables[x]) for x in planned.tables),
        partial(_write_comparison, planned, collected, folder / PRINTED_BESIDE_OURS, judged),
    ]
    outputs: list[WrittenFiles] = []
    left_out: list[str] = []
    incomplete = False
    for writer in writers:
        try:
            outputs.append(writer())
        except UserError as error:
            left_out.append(str(error))
            incomplete |= not isinstance(error, NotRecordedError)
    statuses = {record.cell_id: record.status for record in collected.records}
    written = _written_artefact(outputs, left_out, statuses, collected.missing)
    return replace(written, incomplete=incomplete)


def write_times(paper: Paper, artefact: Artefact, results: Path, out: Path) -> WrittenFiles:
    """Draw an artefact's step times to `out`/paper/artefact; nothing without timing or with one problem.

    Raises `UserError` if there are no times or a file cannot be written, and `OSError` if the folder cannot
    be created.
    """
    if artefact.timing is None or len(artefact.timing.problems) == 1:
        return WrittenFiles()
    from svgpbench.papers import times_figure

    times = load_timing(results, artefact.timing)
    if times.why_not:
        raise UserError(times.why_not)
    folder = out / paper.name / artefact.id
    folder.mkdir(parents=True, exist_ok=True)
    png, pdf, caption = _paths(folder / "times", "png", "pdf", "txt")
    description = times_figure.draw_times(times, artefact.timing, png, pdf)
    text = f"{paper.name}, {artefact.id}: {description}"
    write_whole(caption, f"{text}\n".encode())
    figure = WrittenFigure("times", png, text, pdf, module=times_figure.__name__)
    return WrittenFiles((png, pdf, caption), (figure,))


def _write_figure(collected: Collected, stem: Path, kind: FigureKind) -> WrittenFiles:
    from svgpbench.output.figure import draw_figure

    png, pdf, caption = _paths(stem, "png", "pdf", "txt")
    text = draw_figure(collected, png, kind, pdf)
    write_whole(caption, f"{text}\n".encode())
    figure = WrittenFigure(stem.name, png, text, pdf, module=type(kind).__module__)
    return WrittenFiles((png, pdf, caption), (figure,))


def _write_table(collected: Collected, stem: Path, kind: TableKind) -> WrittenFiles:
    built = kind.build(collected)
    text = built.to_markdown()
    files = _write_texts(stem, text, built.to_latex(), built.to_csv())
    module = type(kind).__module__
    table = WrittenTable(stem.name, built.tables, built.footnotes, text, files[2], files[1], module)
    return WrittenFiles(files, tables=(table,))


def _write_comparison(
    planned: PlannedArtefact, collected: Collected, stem: Path, judged: Sequence[Judged]
) -> WrittenFiles:
    """Write the table of printed numbers beside ours; nothing if no setting has records."""
    printed = [x for x in planned.paper.printed if x.artefact == planned.artefact.id]
    stand_in = bool(planned.artefact.missing)
    methods = planned.plan.experiment.methods
    rows = compare_with_records(printed, collected.records, judged, methods, stand_in=stand_in)
    if not rows:
        return WrittenFiles()
    shown = len({row.printed for row in rows})
    caption = (
        f"{planned.paper.name}, {planned.artefact.id}: {shown} of {len(printed)} printed figures "
        f"beside ours, means with half their 95 % intervals. {planned.scope}."
    )
    return _comparison_files(rows, caption, stem)


def _comparison_files(rows: Sequence[PrintedComparison], caption: str, stem: Path) -> WrittenFiles:
    table = as_text(rows)
    text = f"{markdown(table)}\n\n{caption}"
    files = _write_texts(stem, text, latex(table, caption), as_csv(as_frame(rows)))
    written = WrittenTable(stem.name, (table,), (caption,), text, files[2], files[1])
    return WrittenFiles(files, tables=(written,), comparisons=tuple(rows))


def _write_texts(stem: Path, as_markdown: str, as_latex: str, as_csv: str) -> tuple[Path, ...]:
    paths = _paths(stem, "md", "tex", "csv")
    for path, text in zip(paths, (as_markdown, as_latex, as_csv), strict=True):
        write_whole(path, f"{text.rstrip()}\n".encode())
    return paths


def _paths(stem: Path, *suffixes: str) -> tuple[Path, ...]:
    # not with_suffix, which cuts a name at its last dot
    return tuple(stem.with_name(f"{stem.name}.{suffix}") for suffix in suffixes)
