"""Forest plot of the claims about experiments and times: each effect beside what matters, by grade."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged

MOST: Final = 1000.0
"""Largest multiple of what matters on the axis; larger effects are drawn at its end."""

WIDTH: Final = 41
"""Characters of the axis in a terminal, an odd number so that it has a middle."""

LONGEST: Final = 50
"""Most characters of a row's text in the picture."""

COLOURS: Final = {
    Grade.holds: "#1b7f4d",
    Grade.corrected: "#1b7f4d",
    Grade.direction: "#b07d00",
    Grade.mixed: "#b07d00",
    Grade.fails: "#b3261e",
    Grade.open: "#4a6fa5",
}
CAPTION: Final = (
    "Effects in favour of the claim, in multiples of what matters in practice. A line is the 95 % interval "
    "of one comparison or, of several, goes from the least to the largest; the dot is the median. "
    "A triangle is what the paper prints."
)


class ForestRow(NamedTuple):
    """A core part of a claim: its effect, in multiples of what matters."""

    claim: str
    says: str
    grade: Grade  # of the part
    cases: int
    middle: float
    low: float
    high: float
    printed: tuple[float, ...] = ()


def forest_rows(judged: Iterable[Judged]) -> list[ForestRow]:
    """Return a row for each core part of the claims about experiments and times that compares numbers."""
    return [row for one in judged if one.kind in ("experiments", "speed") for row in _rows(one)]


def _rows(judged: Judged) -> Iterator[ForestRow]:
    for stated, part in zip(judged.claim.parts, judged.parts, strict=False):
        effects = [x.in_regions for x in part.judgement.effects if x.in_regions]
        effects = [x for x in effects if not math.isnan(x[0])]
        if not stated.core or not effects:
            continue
        middles = [x[0] for x in effects]
        one = len(effects) == 1
        yield ForestRow(
            judged.claim.id,
            stated.says,
            part.grade,
            len(effects),
            median(middles),
            effects[0][1] if one else min(middles),
            effects[0][2] if one else max(middles),
            stated.printed_in_regions,
        )


def place(effect: float) -> float:
    """Return the place of an effect on the axis, from −1 to 1: linear near 0, logarithmic beyond."""
    size = min(abs(effect), MOST)
    return math.copysign(math.log10(1.0 + size) / math.log10(1.0 + MOST), effect)


def as_text(rows: Sequence[ForestRow]) -> str:
    """Return the plot as text of 80 columns."""
    middle = WIDTH // 2

    def column(effect: float) -> int:
        return middle + round(place(effect) * middle)

    marks = [-MOST, -30, -1, 1, 30, MOST]
    axis = [" "] * WIDTH
    for mark in marks:
        axis[column(mark)] = "|"
    lines = [f"{'':38}{''.join(axis)}", ""]
    for row in rows:
        cells = [" "] * WIDTH
        cells[middle] = "·"
        for at in range(column(row.low), column(row.high) + 1):
            cells[at] = "─"
        for printed in row.printed:
            cells[column(printed)] = "▲"
        cells[column(row.middle)] = "●"
        words = f"{row.claim:<16} {row.grade[:14]:<15} {row.cases:>3}"
        lines.append(f"{words}  {''.join(cells).rstrip()}")
    lines += [
        "",
        f"Marks: 1, 30 and {MOST:g} times what matters. After the grade: the number of cases.",
    ]
    return "\n".join(lines)


def draw(rows: Sequence[ForestRow], path: Path) -> tuple[int, int]:
    """Draw the plot, narrow enough for a telephone; return its width and height on a page, in pixels."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from PIL import Image

    from svgpbench.output.figure import write_figure
    from svgpbench.output.panel import STYLE

    with rc_context(STYLE):
        figure = Figure(figsize=(4.3, 0.205 * len(rows) + 1.2), layout="constrained")
        axes = figure.subplots()
        axes.axvspan(place(-1.0), place(1.0), color="#e8e8e8", lw=0)
        axes.axvline(0.0, color="#888888", lw=0.6)
        for at, row in enumerate(rows):
            axes.axhline(at, color="#efefef", lw=0.5, zorder=0)  # leads the eye to the label
            colour = COLOURS.get(row.grade, "#777777")
            axes.plot([place(row.low), place(row.high)], [at, at], color=colour, lw=1.2, zorder=2)
            axes.plot(place(row.middle), at, "o", color=colour, ms=3.4, zorder=3)
            for printed in row.printed:
                axes.plot(place(printed), at, "^", mec=colour, mfc="white", ms=4.2, mew=0.8)
        axes.set_yticks(range(len(rows)), _labels(rows), fontsize=6.5)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        ticks = [-MOST, -100, -10, -1, 1, 10, 100, MOST]
        axes.set_xticks([place(x) for x in ticks], [f"{x:g}".replace("-", "−") for x in ticks])
        axes.set_xlim(-1.04, 1.04)
        axes.tick_params(axis="x", top=True, labeltop=True, labelsize=7)
        axes.set_xlabel(
            "effect in favour of the claim,\nin multiples of what matters", fontsize=7.5
        )
        words = ("holds", "mixed, direction only", "fails", "open")
        grades = (Grade.holds, Grade.mixed, Grade.fails, Grade.open)
        for word, grade in zip(words, grades, strict=True):
            axes.plot([], [], "o", color=COLOURS[grade], ms=3.4, label=word)
        axes.plot([], [], "^", mec="#555555", mfc="white", ms=4.2, mew=0.8, label="printed")
        axes.legend(loc="lower center", bbox_to_anchor=(0.1, 1.01), ncols=5, frameon=False, fontsize=6.5,
                    handletextpad=0.1, columnspacing=0.8)  # fmt: skip
        write_figure(figure, path, dpi=130)
        width, height = figure.get_size_inches()
    if path.suffix == ".png":  # in a palette it takes a fifth of the space
        with Image.open(path) as image:
            few = image.convert("RGB").quantize(128, Image.Quantize.FASTOCTREE)
        few.save(path, optimize=True)
    return round(100 * width), round(100 * height)


def _labels(rows: Sequence[ForestRow]) -> list[str]:
    """Return the text of each row, with the id of its claim where the claim begins."""
    before = ["", *(row.claim for row in rows)]
    texts = [
        row.says if row.claim == last else f"{row.claim}  {row.says}"
        for row, last in zip(rows, before, strict=False)
    ]
    return [text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…" for text in texts]
