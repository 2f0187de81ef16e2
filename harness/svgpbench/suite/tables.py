"""Tables of the board."""

from __future__ import annotations

from svgpbench.output.table import Column, Table, number
from svgpbench.suite.board import Board


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def board_table(board: Board) -> Table:
    """Return the board: an entrant a row, the lowest average rank first."""
    rows = [
        (
            row.entrant,
            row.rank.text(".1f"),
            row.share.mean,
            row.share_tenth.mean,
            row.within[1.5],
            row.finished_90,
            row.finished_99,
            row.default_price,
            row.failed_trials,
            row.ms,
        )
        for row in board.rows()
    ]
    shares = [number(name, _percent) for name in ("gain", "early", "fast", "90 %", "99 %")]
    last = [number("untuned", _percent), number("failed", _percent), number("ms", ".2f")]
    columns = (Column("entrant"), Column("rank", numeric=True), *shares, *last)
    return Table(columns, rows)


def legend(board: Board) -> list[str]:
    """Return the lines that say what the columns are."""
    fastest = board.rows()[0].entrant if board.entrants else ""
    lines = [
        f"{len(board.problems)} problems, {len(board.entrants)} entrants; all numbers but ranks and ms in "
        "percent",
        "rank: by test NLPD at the end, mean over problems [95 %]; gain: share of the possible gain in NLPD "
        "at the end; early: at a tenth of the budget",
        "fast: tasks brought to 90 % of the possible gain within 1.5 times the fastest entrant's time; "
        "90 %, 99 %: tasks that reach this share at all",
        "untuned: gain that default rates give away on the median problem; failed: of the trials; "
        f"ms: an iteration's time over that of {fastest}",
    ]
    if board.silent:
        lines.append(f"no vote, as no entrant gains on it: {', '.join(board.silent)}")
    return lines


def pairs_table(board: Board) -> Table:
    """Return all pairs of entrants: problems on which the row is better, level and worse."""
    names = [row.entrant for row in board.rows()]
    cells = []
    for first in names:
        texts = [
            ""
            if first == second
            else "{0.better}-{0.level}-{0.worse}".format(board.pair(first, second))
            for second in names
        ]
        cells.append((first, *texts))
    return Table((Column("better-level-worse"), *(Column(name) for name in names)), cells)
