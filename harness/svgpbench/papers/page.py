"""One page per paper: figures and tables of its artefacts, printed numbers beside ours, and grades."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from svgpbench.atomic import write_whole
from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.papers import Artefact
from svgpbench.papers.grading import Judged
from svgpbench.papers.precomputed import NOT_PRECOMPUTED, PrecomputedResults
from svgpbench.papers.published_values import as_text, with_missing
from svgpbench.papers.report import PRINTED_BESIDE_OURS, ArtefactReport
from svgpbench.papers.reproduction import plan, start_writing
from svgpbench.papers.selection import PaperSelection

PAGE = f"{PRINTED_BESIDE_OURS}.md"
COLOURS = 128
"""Number of colours in a saved picture: enough for curves and bands, in a third of the file size."""

GRADES = ("claim", "in a few words", "grade", "finding")


def is_shown(artefact: Artefact) -> bool:
    """Return True unless an artefact is computed without a figure or printed numbers."""
    return not artefact.computed or bool(artefact.computed.figures or artefact.printed)


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
        writing = start_writing(
            selection, plan(selection, None, ()), results, Path(scratch), judged, precomputed
        )
        reports = {name: future.result() for name, future in writing.items()}
        for artefact in selection.artefacts:
            for figure in reports[artefact.id].figures:
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
        _section(selection, artefact, reports[artefact.id], judged, pictures)
        for artefact in selection.artefacts
    ]
    # the page comes last: it never shows a picture that is not there
    page = page_folder / PAGE
    write_whole(page, "\n\n".join([*sections, ""]).encode())
    return [page, *pictures.values()]


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
    twins = [twin for twin in artefacts if twin.evidence == artefact.evidence]
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
    report: ArtefactReport,
    judged: Sequence[Judged],
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
        for x in report.figures
        if x.png in pictures
    ]
    owners = {owner(selection.artefacts, artefact, x.name).id for x in report.figures}
    parts += [
        f"Its figure is that of {name}, of the same runs."
        for name in sorted(owners - {artefact.id})
    ]
    if artefact.evidence and artefact.evidence.drawn_elsewhere:
        parts.append(artefact.evidence.drawn_elsewhere)
    if not report.statuses:  # such as data that the user must make first
        parts += [f"{why}." for why in report.notes if not why.startswith("no records")]
    if report.command:
        parts.append(f"Not measured yet: `{report.command}`")
    printed = [x for x in paper.printed if x.artefact == artefact.id]
    if printed:
        rows = with_missing(printed, report.comparisons, judged)
        parts.append(markdown(as_text(rows)))
        sets = dict.fromkeys(name for row in rows for name in row.ours.other_data)
        if sets:
            parts.append(
                "Not testable here: the print is of other data, or of sets that it does not name. "
                f"Ours: {plain(', '.join(sets))}."
            )
    tables = [table for table in report.tables if table.name != PRINTED_BESIDE_OURS]
    if owner(selection.artefacts, artefact) == artefact:
        parts += [plain(table.markdown) for table in tables if not table.folded]
        parts += [
            '<details markdown="1"><summary>Every number of ours</summary>\n\n'
            f"{plain(table.markdown)}\n\n</details>"
            for table in tables
            if table.folded
        ]
    grades = [
        [x.claim.id, x.claim.title, str(x.grade), x.finding]
        for x in judged
        if artefact.id in x.claim.artefacts
    ]
    if grades:
        parts.append(plain(markdown(Table(columns(GRADES), grades))))
    return "\n\n".join(parts)


def plain(text: str) -> str:
    """Escape `*` and `<`, so that Markdown reads no emphasis and no tag."""
    return re.sub(r"([*<])", r"\\\1", text)
