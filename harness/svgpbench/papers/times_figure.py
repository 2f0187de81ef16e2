"""Figure of step times against M on logarithmic axes, with one line per timed method."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.axes import Axes

from svgpbench.benchmarks.timing.problems import shape_of
from svgpbench.output.figure import save
from svgpbench.output.palette import METHOD_STYLES, OTHER_STYLES, LineStyle
from svgpbench.output.panel import STYLE, grid, legend, plain_powers
from svgpbench.papers.evidence.base import EvidenceFrame
from svgpbench.papers.evidence.timing import TimingEvidence

COLOURS = [style.colour for style in (*METHOD_STYLES.values(), *OTHER_STYLES)]
DASHES = [style.dash for style in OTHER_STYLES]
MARKERS = "osD^"


def draw_times(times: EvidenceFrame, timing: TimingEvidence, *paths: Path) -> str:
    """Draw median and quartiles over rounds to every path; return the caption.

    Raises `UserError` if a file cannot be written.
    """
    sizes = {problem: shape_of(problem).M for problem in timing.problems}
    frame = times.frame.assign(M=times.frame["problem"].map(sizes).astype(int))
    with matplotlib.rc_context(STYLE):
        figure, panels = grid(1, 1)
        figure.set_size_inches(4.6, 3.6)
        panel, styles = panels[0][0], styles_of(list(frame["method"].unique()))
        for marker, (method, style) in zip(MARKERS * len(styles), styles.items(), strict=False):
            _draw_line(panel, frame[frame["method"] == method], style, marker)
        panel.set_xscale("log")
        panel.set_yscale("log")
        plain_powers(panel.yaxis)
        panel.set_xticks(list(sizes.values()), [f"{size}" for size in sizes.values()])
        panel.set_xticks([], minor=True)
        panel.set_xlabel("M")
        panel.set_ylabel(f"{' + '.join(timing.steps)}, ms")
        legend(figure, styles)
        counts = sorted(set(frame.groupby(["method", "M"]).size()))
        # methods or sizes may have different numbers of undisturbed rounds
        rounds = "–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))
        caption = (
            f"median and quartiles over {rounds} rounds of the milliseconds of "
            f"{' + '.join(timing.steps)} against M: {times.condition}."
        )
        save(figure, paths, caption)
    return caption


def styles_of(methods: list[str]) -> dict[str, LineStyle]:
    """Return one colour per backend or peer, and one dash pattern per method name."""
    pairs = [method.partition(" ")[::2] for method in methods]
    runners = list(dict.fromkeys(runner for runner, _ in pairs))
    names = list(dict.fromkeys(name for _, name in pairs))
    return {
        method: LineStyle(
            COLOURS[runners.index(runner) % len(COLOURS)], DASHES[names.index(name) % len(DASHES)]
        )
        for method, (runner, name) in zip(methods, pairs, strict=True)
    }


def _draw_line(panel: Axes, rounds: pd.DataFrame, style: LineStyle, marker: str) -> None:
    low, middle, high = (
        1000 * rounds.groupby("M")["seconds"].quantile(q) for q in (0.25, 0.5, 0.75)
    )
    panel.errorbar(
        middle.index.to_numpy(), middle.to_numpy(), [middle - low, high - middle],
        color=style.colour, linestyle=style.dash, linewidth=1.1, elinewidth=0.8, marker=marker, markersize=3,
    )  # fmt: skip
