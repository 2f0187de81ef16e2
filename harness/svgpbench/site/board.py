"""The board of the suite that this version ships, as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from svgpbench.output.table import Table
from svgpbench.suite.board import Board
from svgpbench.suite.figure import draw_board
from svgpbench.suite.findings import findings
from svgpbench.suite.outcomes import Outcomes
from svgpbench.suite.schema import load_suite
from svgpbench.suite.tables import board_table, detailed_tables, legend

PICTURE: Final = "board.png"


@dataclass(frozen=True)
class BoardFacts:
    """Content of the page of the board."""

    problems: int
    runs: int
    findings: tuple[str, ...]
    table: Table
    legend: tuple[str, ...]
    details: tuple[tuple[str, Table], ...]
    picture: str  # path relative to the site


def board_facts(site: Path) -> BoardFacts:
    """Return the board of this version, and draw its figure into the site's folder."""
    suite, outcomes = load_suite(), Outcomes.read()
    board = Board(outcomes, [x.label for x in suite.entrants if not x.reference])
    draw_board(board, site / PICTURE)
    return BoardFacts(
        problems=len(board.problems),
        runs=len(outcomes.runs) + len(outcomes.trials),
        findings=tuple(findings(board)),
        table=board_table(board),
        legend=tuple(legend(board)),
        details=tuple(detailed_tables(suite, board)),
        picture=PICTURE,
    )
