"""Figure of the board: one row per entrant, with its rank, its gain and how fast it is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from svgpbench.output.figure import write_figure
from svgpbench.output.panel import STYLE, plain
from svgpbench.suite.board import FACTORS, Board

COLOUR: Final = "#1f5f99"
SHADES: Final = ("#1f5f99", "#5f93c2", "#a3c3e0", "#d5e4f2")
"""Shades for the factors of the profile, the smallest first."""


def draw_board(board: Board, out: Path) -> None:
    """Draw the board. Raises `UserError` if `out` cannot be written."""
    rows = board.rows()
    heights = np.arange(len(rows))
    with matplotlib.rc_context(STYLE):
        figure = Figure((6.8, 0.23 * len(rows) + 1.1), layout="constrained")
        ranks, gains, fast = figure.subplots(1, 3, sharey=True)
        for y, row in zip(heights, rows, strict=True):
            ranks.plot([row.rank.low, row.rank.high], [y, y], color=COLOUR, lw=1.2)
            ranks.plot(row.rank.mean, y, "o", color=COLOUR, ms=3.6)
            early, end = 100 * row.share_tenth.mean, 100 * row.share.mean
            gains.plot([early, end], [y, y], color=SHADES[2], lw=1.2)
            gains.plot(early, y, "o", mec=COLOUR, mfc="white", ms=3.6, mew=0.8)
            gains.plot(end, y, "o", color=COLOUR, ms=3.6)
            # the largest factor first: the bars of smaller ones are drawn over it
            for factor, shade in reversed(list(zip(FACTORS, SHADES, strict=True))):
                fast.barh(y, 100 * row.within[factor], color=shade, height=0.62)
            fast.plot(100 * row.finished_90, y, "|", color="#444444", ms=7)
        ranks.set_yticks(heights, [plain(row.entrant) for row in rows])
        ranks.set_ylim(len(rows) - 0.5, -0.5)
        ranks.set_xlabel("average rank by NLPD [95 %]")
        gains.set_xlabel("% of the possible gain:\n○ at a tenth of the budget, ● at the end")
        factors = ", ".join(f"{factor:g}" for factor in FACTORS)
        fast.set_xlabel(f"% of tasks at 90 % within {factors}\ntimes the fastest; | at all")
        fast.set_xlim(0, 100)
        for panel in (ranks, gains, fast):
            panel.grid(axis="x", color="#e6e6e6", lw=0.5)
            panel.set_axisbelow(True)
            panel.tick_params(axis="y", length=0)
        write_figure(figure, out)
