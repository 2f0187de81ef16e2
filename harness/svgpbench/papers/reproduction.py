"""Plan the artefacts of papers, and write their figures and tables from records and computed frames.

Modules that import Matplotlib are imported where they are used: at the top of this module they would take
a third of the time of `import svgpbench.api`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from svgpbench.atomic import write_whole
from svgpbench.csv_text import as_csv
from svgpbench.errors import NotRecordedError, UserError
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
from svgpbench.output.table_formats import latex, markdown
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.evidence.experiment import ExperimentEvidence
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
from svgpbench.papers.report import (
    PRINTED_BESIDE_OURS,
    ArtefactReport,
    WrittenFigure,
    WrittenTable,
    add_suffix,
    write_table,
)
from svgpbench.papers.selection import PaperSelection
from svgpbench.plugins import FIGURES, TABLES
from svgpbench.results.collect import Collected, collect

PRINTED = "printed"
"""Name of the computed frame that is compared with printed numbers."""

Written: TypeAlias = WrittenFigure | WrittenTable | PrintedComparison


@dataclass(frozen=True)
class PlannedArtefact:
    """An artefact with an experiment: its cells, figures and tables."""

    paper: Paper
    artefact: Artefact
    evidence: ExperimentEvidence
    plan: Plan
    scope: str  # caption text: preset, and reductions from the paper
    figures: dict[str, FigureKind]
    tables: dict[str, TableKind]


def plan(
    selection: PaperSelection, preset: str | None, backends: Sequence[str]
) -> list[PlannedArtefact]:
    """Plan the artefacts that have an experiment; `preset` and `backends` replace the declared ones.

    Raises `UserError` for an unknown preset, and for a figure or table that is declared wrongly.
    """
    return [
        _planned(selection.paper, artefact, artefact.experiment, preset, backends)
        for artefact in selection.artefacts
        if artefact.experiment
    ]


def _planned(
    paper: Paper,
    artefact: Artefact,
    evidence: ExperimentEvidence,
    preset: str | None,
    backends: Sequence[str],
) -> PlannedArtefact:
    preset = preset or evidence.preset
    experiment = paper.experiments[artefact.id]
    selection = Selection(backends=backends)
    planned = Plan.of(experiment, preset, selection)
    own = Plan.of(experiment, evidence.preset, selection)
    shown_preset = preset or (DEFAULT_PRESET if DEFAULT_PRESET in experiment.presets else "")
    figures = entries_of(experiment.figures, FigureEntry(name="convergence"), "figure", None)
    tables = entries_of(experiment.tables, TableEntry(name="finals"), "table", None)
    return PlannedArtefact(
        paper,
        artefact,
        evidence,
        planned,
        scope(artefact, shown_preset, planned.configs, own.configs),
        {entry.name: kind_of(FIGURES, entry, experiment) for entry in figures},
        {entry.name: kind_of(TABLES, entry, experiment) for entry in tables},
    )


def computed_figures(paper: Paper, artefact: Artefact) -> dict[str, ComputedFigure]:
    """Return the figures of an artefact's computed frames, by name; empty if it is not computed.

    Raises `UserError` for a figure that is declared wrongly.
    """
    figures = artefact.computed.figures if artefact.computed else ()
    where = f"{paper.name}/{artefact.id}"
    return {entry.name: computed_figure(entry, figures, where) for entry in figures}


def frames_of(paper: Paper, artefact: Artefact) -> list[tuple[str, str]]:
    """Return the (paper, name) of each computed frame that is drawn or compared with printed numbers.

    Raises `UserError` for a figure that is declared wrongly.
    """
    if not artefact.computed:
        return []
    names = list(computed_figures(paper, artefact))
    if names or artefact.printed:
        names.append(PRINTED)
    return [(paper.name, f"{artefact.id}/{name}") for name in names]


def start_writing(
    selection: PaperSelection,
    planned: Iterable[PlannedArtefact],
    results: Path,
    out: Path,
    judged: Sequence[Judged],
    precomputed: PrecomputedResults = NOT_PRECOMPUTED,
) -> dict[str, Future[ArtefactReport]]:
    """Start writing every artefact to `out`/paper/artefact; return the reports by the artefact's id.

    Raises `UserError` if a figure is declared wrongly. A future raises `OSError` if a folder cannot be
    created, and `UserError` if a computed frame lacks a column that its figure needs or its files cannot be
    written.
    """
    paper, plans = selection.paper, {x.artefact.id: x for x in planned}
    writing: dict[str, Future[ArtefactReport]] = {}
    for artefact in selection.artefacts:
        work: Callable[[], ArtefactReport]
        if artefact.id in plans:
            work = partial(write_planned, plans[artefact.id], results, out, judged)
        elif artefact.computed:
            figures = computed_figures(paper, artefact)
            frames = {name: precomputed.frame(*name) for name in frames_of(paper, artefact)}
            work = partial(write_computed, paper, artefact, figures, frames, out, judged)
        else:
            work = partial(write_recorded, paper, artefact, results, out)
        writing[artefact.id] = precomputed.executor.submit(work)
    return writing


def write_computed(
    paper: Paper,
    artefact: Artefact,
    figures: Mapping[str, ComputedFigure],
    frames: Mapping[tuple[str, str], pd.DataFrame | None],
    out: Path,
    judged: Sequence[Judged],
) -> ArtefactReport:
    """Draw an artefact's computed frames, by (paper, name), and compare `PRINTED` with the print."""
    from svgpbench.output.figure import draw_computed

    if not frames:
        return ArtefactReport(artefact.description)
    title, folder = f"{paper.name}/{artefact.id}", _folder(out, paper, artefact)
    written: list[Written] = []
    notes: list[str] = []
    for name, kind in figures.items():
        frame = frames[paper.name, f"{artefact.id}/{name}"]
        if frame is None:
            notes.append(f"nothing computes {artefact.id}/{name}")
            continue
        png, pdf, numbers = (add_suffix(folder / name, suffix) for suffix in ("png", "pdf", "csv"))
        caption = draw_computed(frame, kind, title, png, pdf)
        write_whole(numbers, as_csv(frame).encode())
        module = type(kind).__module__
        written.append(WrittenFigure(name, caption, png, pdf, module, numbers).with_caption())
    frame = frames[paper.name, f"{artefact.id}/{PRINTED}"]
    if frame is not None:
        printed = [x for x in paper.printed if x.artefact == artefact.id]
        rows = compare_with_computed(printed, frame, judged)
        shown = len({row.printed for row in rows})
        compared = f"{shown} of {len(printed)} printed figures beside ours, computed."
        caption = f"{paper.name}, {artefact.id}: {compared}"
        written += _write_comparison(rows, caption, folder)
    return _add_written(ArtefactReport(artefact.description, notes=tuple(notes)), written)


def write_recorded(paper: Paper, artefact: Artefact, results: Path, out: Path) -> ArtefactReport:
    """Draw and tabulate records other than an experiment's, by the method `write` of their evidence.

    Without evidence, the report has only the description.
    """
    report, evidence = ArtefactReport(artefact.description), artefact.recorded
    if evidence is None:
        return report
    try:
        loaded = evidence.load(paper, artefact, results)
        if loaded.why_not:
            command = evidence.command(paper, artefact, results)
            return replace(report, notes=(loaded.why_not,), command=command)
        folder = out / paper.name / artefact.id
        written = evidence.write(paper, artefact, loaded, results, folder)
        return _add_written(report, written)
    except UserError as error:
        return replace(report, notes=(str(error),), incomplete=True)


def write_planned(
    planned: PlannedArtefact, results: Path, out: Path, judged: Sequence[Judged]
) -> ArtefactReport:
    """Draw and tabulate the records of an experiment, and compare them with the print.

    `notes` has the reason for each file that is not made, such as missing records or an unwritable file.
    """
    report = ArtefactReport(planned.artefact.description, missing=len(planned.plan.configs))
    try:
        collected = collect(results, planned.plan)
    except UserError as error:
        command = _command_of_missing(planned, {}, results)
        return replace(report, notes=(str(error),), command=command)
    statuses = {record.cell_id: record.status for record in collected.records}
    collected = replace(collected, notes=(planned.scope, *collected.notes))
    folder = _folder(out, planned.paper, planned.artefact)
    writers: list[Callable[[], Iterable[Written]]] = [
        *(
            partial(_write_figure, collected, folder / name, kind)
            for name, kind in planned.figures.items()
        ),
        *(
            partial(_write_table, collected, folder / name, kind)
            for name, kind in planned.tables.items()
        ),
        partial(_compare_with_print, planned, collected, folder, judged),
    ]
    written: list[Written] = []
    notes: list[str] = []
    incomplete = False
    for writer in writers:
        try:
            written += writer()
        except UserError as error:
            notes.append(str(error))
            incomplete |= not isinstance(error, NotRecordedError)
    report = replace(
        report,
        notes=tuple(notes),
        statuses=statuses,
        missing=collected.missing,
        command=_command_of_missing(planned, statuses, results),
        incomplete=incomplete,
    )
    return _add_written(report, written)


def _folder(out: Path, paper: Paper, artefact: Artefact) -> Path:
    folder = out / paper.name / artefact.id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _add_written(report: ArtefactReport, written: Iterable[Written]) -> ArtefactReport:
    written = list(written)
    return replace(
        report,
        figures=tuple(x for x in written if isinstance(x, WrittenFigure)),
        tables=tuple(x for x in written if isinstance(x, WrittenTable)),
        comparisons=tuple(x for x in written if isinstance(x, PrintedComparison)),
    )


def _command_of_missing(
    planned: PlannedArtefact, statuses: Mapping[str, str], results: Path
) -> str:
    """Return the command that makes the missing records on the first backend; empty if none is missing."""
    evidence = planned.evidence
    line = evidence.command(planned.paper, planned.artefact, results)
    if not statuses:
        return line
    cells = Plan.on_first_backend(planned.plan.experiment, evidence.preset).identities
    count = sum(cell.cell_id not in statuses for cell in cells)
    return f"{line}  # {count} of {len(cells)} cells" if count else ""


def _write_figure(collected: Collected, stem: Path, kind: FigureKind) -> Iterator[WrittenFigure]:
    from svgpbench.output.figure import draw_figure

    png, pdf = add_suffix(stem, "png"), add_suffix(stem, "pdf")
    caption = draw_figure(collected, png, kind, pdf)
    yield WrittenFigure(stem.name, caption, png, pdf, type(kind).__module__).with_caption()


def _write_table(collected: Collected, stem: Path, kind: TableKind) -> Iterator[WrittenTable]:
    built = kind.build(collected)
    texts = built.to_markdown(), built.to_latex(), built.to_csv()
    yield write_table(stem, built.tables, built.footnotes, texts, type(kind).__module__)


def _compare_with_print(
    planned: PlannedArtefact, collected: Collected, folder: Path, judged: Sequence[Judged]
) -> Iterator[WrittenTable | PrintedComparison]:
    """Write the table of printed numbers beside ours; nothing if no setting has records."""
    printed = [x for x in planned.paper.printed if x.artefact == planned.artefact.id]
    stand_in = bool(planned.artefact.missing)
    methods = planned.plan.experiment.methods
    rows = compare_with_records(printed, collected.records, judged, methods, stand_in=stand_in)
    if rows:
        shown = len({row.printed for row in rows})
        caption = (
            f"{planned.paper.name}, {planned.artefact.id}: {shown} of {len(printed)} printed figures "
            f"beside ours, means with half their 95 % intervals. {planned.scope}."
        )
        yield from _write_comparison(rows, caption, folder)


def _write_comparison(
    rows: Sequence[PrintedComparison], caption: str, folder: Path
) -> Iterator[WrittenTable | PrintedComparison]:
    table = as_text(rows)
    texts = f"{markdown(table)}\n\n{caption}", latex(table, caption), as_csv(as_frame(rows))
    yield write_table(folder / PRINTED_BESIDE_OURS, [table], [caption], texts)
    yield from rows
