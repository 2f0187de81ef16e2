"""One page per paper: figures and tables of its artefacts, printed numbers beside ours, and grades."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from svgpbench.atomic import write_whole
from svgpbench.benchmarks.time_to_target.curves import draw_learning
from svgpbench.benchmarks.time_to_target.plan import read_plan
from svgpbench.errors import UserError
from svgpbench.experiments.plan import Plan
from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.papers import Artefact, Paper
from svgpbench.papers.evidence import curves, records, stability, timings
from svgpbench.papers.evidence.curves import entries_of
from svgpbench.papers.grading import Judged
from svgpbench.papers.precomputed import NOT_PRECOMPUTED, PrecomputedResults
from svgpbench.papers.published_values import as_text, with_missing
from svgpbench.papers.reproduction import (
    PRINTED_BESIDE_OURS,
    PaperSelection,
    WrittenArtefact,
    WrittenFigure,
    plan,
    start_writing,
    write_times,
)

PAGE = f"{PRINTED_BESIDE_OURS}.md"
COLOURS = 128
"""Number of colours in a saved picture: enough for curves and bands, in a third of the file size."""

GRADES = ("claim", "in a few words", "grade", "finding")


def is_shown(artefact: Artefact) -> bool:
    """Return True unless an artefact is computed without a figure or printed numbers."""
    return not artefact.computed or bool(artefact.figures or artefact.printed)


def shown_of(selection: PaperSelection) -> PaperSelection:
    """Return the artefacts that a page shows and the claims that need them."""
    artefacts = tuple(filter(is_shown, selection.artefacts))
    ids = {artefact.id for artefact in artefacts}
    claims = tuple(claim for claim in selection.claims if ids.intersection(claim.artefacts))
    return PaperSelection(selection.paper, artefacts, claims)


def write_page(
    selection: PaperSelection,
    judged: Sequence[Judged],
    results: Path,
    folder: Path,
    precomputed: PrecomputedResults = NOT_PRECOMPUTED,
) -> list[Path]:
    """Write the page of a paper and its pictures to `folder`/`paper.name`; return the files.

    For missing records the page has the command that makes them. Raises `UserError` if the page cannot be
    written, and `OSError` if the folder or a picture cannot.
    """
    paper = selection.paper
    page_folder = folder / paper.name
    page_folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[Path, Path] = {}
    with TemporaryDirectory() as scratch:
        outputs = _write_artefacts(selection, judged, results, Path(scratch), precomputed)
        for artefact in selection.artefacts:
            for figure in outputs[artefact.id].figures:
                if owner(selection.artefacts, artefact, figure.name) == artefact:
                    own_name = figure.name == artefact.id
                    stem = artefact.id if own_name else f"{artefact.id}-{figure.name}"
                    pictures[figure.png] = page_folder / f"{stem}.png"
        for png, path in pictures.items():
            keep_picture(png, path)
    about = paper.about
    sections = [
        f"# {paper.name}: printed beside ours",
        f"{', '.join(about.authors)}: *{plain(about.title)}*, {about.venue} {about.year}.",
        f"`svgpbench reproduce {paper.name} --from-records --results results --pages results` writes this "
        "page from the records; `make figures` writes that of every paper. What the grades mean: "
        "[claims](../../docs/claims.md).",
    ]
    sections += [
        _section(selection, artefact, outputs[artefact.id], judged, results, pictures)
        for artefact in selection.artefacts
    ]
    # the page comes last: it never shows a picture that is not there
    page = page_folder / PAGE
    write_whole(page, "\n\n".join([*sections, ""]).encode())
    return [page, *pictures.values()]


def _write_artefacts(
    selection: PaperSelection,
    judged: Sequence[Judged],
    results: Path,
    scratch: Path,
    precomputed: PrecomputedResults,
) -> dict[str, WrittenArtefact]:
    """Write the figures and tables of each artefact; return them by its id."""
    empty = WrittenArtefact((), (), {}, 0)
    outputs = dict.fromkeys((artefact.id for artefact in selection.artefacts), empty)
    planned = plan(selection, None, ())
    writing = start_writing(selection, planned, results, scratch, judged, precomputed)
    outputs |= {name: future.result() for name, future in writing.items()}
    for artefact in selection.artefacts:
        try:
            times = write_times(selection.paper, artefact, results, scratch).figures
        except UserError:  # no times: the page shows the command
            times = ()
        written = outputs[artefact.id]
        learning = _learning_figures(selection.paper, artefact, results, scratch)
        figures = (*written.figures, *times, *learning)
        outputs[artefact.id] = replace(written, figures=figures)
    return outputs


def _learning_figures(
    paper: Paper, artefact: Artefact, results: Path, scratch: Path
) -> Iterator[WrittenFigure]:
    """Draw the learning curves against seconds if the artefact has a plan with records."""
    if artefact.learning and (entries := entries_of(artefact.learning, results)):
        declared = read_plan(Path(artefact.learning))
        png = scratch / f"{artefact.learning}.png"
        draw_learning(declared, entries, png)
        titles = {"nlpd": "test NLPD", "elbo": "ELBO"}
        what = " and ".join(titles[curve] for curve in declared.curves)
        runs = sum(len(x.trained) for contestants in entries.values() for x in contestants)
        yield WrittenFigure(
            artefact.id,
            png,
            f"{paper.name}, {artefact.id}: {what} against seconds of training on "
            f"{', '.join(entries)}: a curve for each of {runs} runs, a cross where one died.",
        )


def keep_picture(png: Path, path: Path) -> None:
    """Save a picture with at most `COLOURS` colours, keeping the caption in its metadata."""
    with Image.open(png) as image:
        text = PngInfo()
        for key, value in image.info.items():
            if isinstance(key, str) and isinstance(value, str):
                # iTXt is UTF-8: tEXt is Latin-1, which has no Greek letters for a caption
                text.add_itxt(key, value)
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        content = io.BytesIO()
        few.save(content, "png", optimize=True, pnginfo=text, dpi=image.info.get("dpi"))
    write_whole(path, content.getvalue())


def owner(artefacts: Sequence[Artefact], artefact: Artefact, figure: str = "") -> Artefact:
    """Return the artefact that shows a figure, among those with the same runs.

    It is the first one named like the figure, else the first one. Names are alike if they are equal or if
    one extends the other by a dash, such as `fig2` and `fig2-time`. Without a figure it is the first one,
    which shows the table of the runs.
    """
    if not artefact.experiment:
        return artefact
    runs = (artefact.experiment, artefact.preset)
    twins = [twin for twin in artefacts if (twin.experiment, twin.preset) == runs]
    namesakes = [
        twin
        for twin in twins
        if figure
        and (f"{twin.id}-".startswith(f"{figure}-") or f"{figure}-".startswith(f"{twin.id}-"))
    ]
    return (namesakes or twins)[0]


def _section(
    selection: PaperSelection,
    artefact: Artefact,
    written: WrittenArtefact,
    judged: Sequence[Judged],
    results: Path,
    pictures: Mapping[Path, Path],
) -> str:
    """Return the section of an artefact; `pictures` has the saved picture of each figure's file."""
    paper = selection.paper
    smaller = f"smaller than printed: {artefact.smaller}" if artefact.smaller else ""
    run = "; ".join(filter(None, (smaller, artefact.missing)))
    settings = plain(f"Settings: {artefact.settings}.{f' Ours: {run}.' * bool(run)}")
    parts = [f"## {artefact.id}: {plain(artefact.what)}", settings]
    parts += [
        f"![{paper.name}, {artefact.id}, {x.name}]({pictures[x.png].name})\n\n{plain(x.caption)}"
        for x in written.figures
        if x.png in pictures
    ]
    owners = {owner(selection.artefacts, artefact, x.name).id for x in written.figures}
    parts += [
        f"Its figure is that of {name}, of the same runs."
        for name in sorted(owners - {artefact.id})
    ]
    if artefact.walks:
        parts.append("Drawn as a map: [survival of natural gradients](../../docs/survival.md).")
    if not written.statuses:  # such as data that the user must make first
        parts += [f"{why}." for why in written.left_out if not why.startswith("no records")]
    parts += [f"Not measured yet: `{line}`" for line in _missing(paper, artefact, written, results)]
    printed = [x for x in paper.printed if x.artefact == artefact.id]
    if printed:
        rows = with_missing(printed, written.comparisons, judged)
        parts.append(markdown(as_text(rows)))
        sets = dict.fromkeys(name for row in rows for name in row.ours.other_data)
        if sets:
            parts.append(
                "Not testable here: the print is of other data, or of sets that it does not name. "
                f"Ours: {plain(', '.join(sets))}."
            )
    if artefact.timing and not (times := timings.load_timing(results, artefact.timing)).why_not:
        parts += [markdown(_times(times.frame)), plain(f"Times: {times.condition}.")]
    parts += [
        f'<details markdown="1"><summary>Every number of ours</summary>\n\n{table}\n\n</details>'
        for table in (plain(x.markdown) for x in written.tables if x.name != PRINTED_BESIDE_OURS)
        if owner(selection.artefacts, artefact) == artefact
    ]
    grades = [
        [x.claim.id, x.claim.title, str(x.grade), x.finding]
        for x in judged
        if artefact.id in x.claim.artefacts
    ]
    if grades:
        parts.append(plain(markdown(Table(columns(GRADES), grades))))
    return "\n\n".join(parts)


def _times(frame: pd.DataFrame) -> Table:
    """Return the summed step times in milliseconds: median and quartiles over rounds."""
    header = columns(("problem", "method"), ("median, ms", "quartiles, ms", "rounds"))
    rows = []
    groups = frame.groupby(["problem", "method"], observed=True, sort=False)["seconds"]
    for (problem, method), seconds in groups:
        low, middle, high = (1000 * seconds.quantile(q) for q in (0.25, 0.5, 0.75))
        span = f"{low:.3g} to {high:.3g}"
        rows.append([str(problem), str(method), f"{middle:.3g}", span, str(len(seconds))])
    return Table(header, rows)


def _missing(
    paper: Paper, artefact: Artefact, written: WrittenArtefact, results: Path
) -> Iterator[str]:
    """Yield the commands that make missing records; for an experiment, on its first backend."""
    if artefact.id in paper.experiments:
        experiment = paper.experiments[artefact.id]
        line = records.command(paper.name, artefact, experiment, results)
        plan = Plan.on_first_backend(experiment, artefact.preset)
        if not written.statuses:
            yield line
        elif count := sum(x.cell_id not in written.statuses for x in plan.identities):
            yield f"{line}  # {count} of {len(plan.configs)} cells"
    if artefact.timing and timings.load_timing(results, artefact.timing).why_not:
        yield timings.command(paper, artefact.timing, results)
    if artefact.walks and stability.load_stability(results, artefact.walks).why_not:
        yield stability.command(artefact.walks, results)
    if artefact.learning and not entries_of(artefact.learning, results):
        yield curves.command(artefact.learning, results)


def plain(text: str) -> str:
    """Escape `*` and `<`, so that Markdown reads no emphasis and no tag."""
    return re.sub(r"([*<])", r"\\\1", text)
