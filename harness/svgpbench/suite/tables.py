"""Tables of the board."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svgpbench.config import RatePair
from svgpbench.output.table import MISSING, Column, Table, number
from svgpbench.output.table_formats import markdown
from svgpbench.suite.board import Board
from svgpbench.suite.cells import Budgets
from svgpbench.suite.findings import counted
from svgpbench.suite.schema import USUAL, Suite, is_in_group


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def board_table(board: Board) -> Table:
    """Return the board: one row per entrant, the lowest average rank first."""
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
    shares = [number(name, _percent) for name in ("gain", "early", "fast", "90%", "99%")]
    # names as short as can be: a board of twelve is 80 characters wide
    last = [number("rates", _percent), number("fail", _percent), number("ms", ".2f")]
    columns = (Column("entrant"), Column("rank", numeric=True), *shares, *last)
    return Table(columns, rows)


def legend(board: Board) -> list[str]:
    """Return the lines that say what the columns are."""
    first = board.rows()[0].entrant if board.entrants else ""
    lines = [
        f"{counted(len(board.problems))}, {len(board.entrants)} entrants; all numbers but ranks and ms in "
        "percent",
        "rank: by test NLPD at the end, mean over problems [95 %]; gain: share of the possible gain in NLPD "
        "at the end; early: at a tenth of the budget",
        "fast: tasks (a problem and a fold) with 90 % of the possible gain within 1.5 times the fastest "
        "entrant's time; 90%, 99%: tasks that get there within the budget",
        "rates: gain lost by default rates in place of tuned ones, median problem; fail: failed trials; "
        f"ms: an iteration's time over that of {first}",
    ]
    for name, shares in board.references().items():
        lines.append(
            f"beside them, without rank: {name} has {_percent(shares.mean())} % of the possible gain at the "
            f"end on its {counted(len(shares))}"
        )
    if board.silent:
        lines.append(f"no vote, as no entrant gains on it: {'; '.join(board.silent)}")
    return lines


def entrant_table(board: Board, entrant: str, budgets: Budgets) -> Table:
    """Return one row per problem for an entrant: iterations, chosen rates, NLPD and rank."""
    ranks, losses = board.ranks(), board.losses()
    runs = board.runs[board.runs["entrant"] == entrant].groupby("problem").first()
    rows = []
    for title in (x for x in board.problems if x in runs.index):
        of_problem = runs.loc[title]
        rates = RatePair(of_problem["e_rate"], of_problem["m_rate"])
        rank, taking_part = ranks.loc[title, entrant], ranks.loc[title].count()
        rows.append(
            (
                title,
                budgets.get((title, entrant)),
                MISSING if np.isnan(rates.e) else rates.title,
                losses.loc[title, entrant],
                losses.loc[title].min(),
                f"{rank:g} of {taking_part}",
            )
        )
    columns = (
        Column(entrant), number("iterations"), number("rates of q, θ"), number("NLPD", ".3f"),
        number("smallest", ".3f"), number("rank"),
    )  # fmt: skip
    return Table(columns, rows)


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


def board_markdown(
    suite: Suite, board: Board, sentences: Sequence[str], own: Sequence[Table] = ()
) -> str:
    """Return sentences and all tables of a board as Markdown, those of a new entrant, `own`, first."""
    parts = [
        "\n".join(f"* {sentence}" for sentence in sentences),
        *map(markdown, (*own, board_table(board))),
        "  \n".join(legend(board)),
    ]
    for heading, table in detailed_tables(suite, board):
        parts += [f"{heading}:", markdown(table)]
    return "\n\n".join(parts)


def detailed_tables(suite: Suite, board: Board) -> list[tuple[str, Table]]:
    """Return the tables behind the board, each with its heading."""
    return [
        (
            "Average rank by group of problems (how many problems)",
            groups_table(suite, board),
        ),
        (
            "Problems on which the entrant of the row is better, level and worse than that of the column",
            pairs_table(board),
        ),
        (
            "Default rates, and the share of the possible gain that they give away",
            rates_table(board),
        ),
        ("Calibration at the end of the runs", calibration_table(board)),
        ("The problems", problems_table(suite, board)),
    ]


def groups_table(suite: Suite, board: Board) -> Table:
    """Return average ranks by group of the board's problems: a row per entrant, in the board's order."""
    problems = [x for x in suite.problems if x.title in board.problems]
    likelihoods = dict.fromkeys(x.likelihood.name for x in problems)
    columns, ranks, means = [Column("average rank")], board.ranks(), []
    for group in (*likelihoods, *USUAL):
        titles = [x.title for x in problems if is_in_group(x, group)]
        if titles:
            columns.append(number(f"{group} ({len(titles)})", ".1f"))
            # a rank is of one problem, whatever the others are
            means.append(ranks.loc[titles].mean())
    names = [row.entrant for row in board.rows()]
    return Table(columns, [(name, *(of_group[name] for of_group in means)) for name in names])


def rates_table(board: Board) -> Table:
    """Return default rates, what they give away, edges of grids, and how often trials and runs failed."""
    prices, rates, edges = board.default_prices(), board.default_rates(), board.at_edges()
    rows = [
        (
            row.entrant,
            RatePair(*rates[row.entrant]).title,
            row.default_price,
            # no price if no other problem could choose the default rates
            float(prices[row.entrant].max()) if row.entrant in prices else np.nan,
            *edges[row.entrant],
            row.failed_trials,
            row.failed_runs,
        )
        for row in board.rows()
        if row.entrant in rates
    ]
    columns = (
        Column("entrant"),
        Column("default rates of q, θ", numeric=True),
        number("gives away, median", _percent, "%"),
        number("worst problem", _percent, "%"),
        number("chosen at an edge of the grid: q", _percent, "% of problems"),
        number("θ", _percent, "% of problems"),
        number("failed trials", _percent, "%"),
        number("failed runs", _percent, "%"),
    )
    return Table(columns, rows)


def calibration_table(board: Board) -> Table:
    """Return coverage and CRPS of regression, and the calibration error and error rate of labels."""
    runs = board.runs[board.runs["problem"].isin(board.problems)]
    by_problem = runs.groupby(["entrant", "problem"])[
        ["coverage", "crps", "ece", "error_rate"]
    ].mean()
    # over the best, as the size of a CRPS differs between problems
    best = by_problem[["crps"]].groupby("problem").min()
    by_problem["crps"] = (
        by_problem["crps"] / best.reindex(by_problem.index, level="problem")["crps"]
    )
    means, drops = by_problem.groupby("entrant").mean(), runs.groupby("entrant")["drop"].median()
    rows = [
        (row.entrant, *means.loc[row.entrant], drops[row.entrant])
        for row in board.rows()
        if row.entrant in means.index
    ]
    columns = (
        Column("entrant"),
        number("coverage of 95 %", _percent, "%"),
        number("CRPS over the best", ".2f"),
        number("calibration error", ".3f"),
        number("error rate", ".3f"),
        number("largest fall of the bound", ".3g", "nats a row, median"),
    )
    return Table(columns, rows)


def problems_table(suite: Suite, board: Board) -> Table:
    """Return the problems: sizes, reason, and the entrant with the smallest NLPD."""
    losses, rows = board.losses(), []
    constant = board.runs.groupby("problem")["constant_nlpd"].mean()
    for problem in suite.problems:
        if problem.title not in losses.index:
            continue
        own = losses.loc[problem.title]
        facts = (problem.title, problem.likelihood.name, problem.rows, problem.dimensions)
        size = suite.size_of(problem)
        best = str(own.idxmin())
        rows.append((*facts, size.inducing, problem.why, constant[problem.title], own.min(), best))
    columns = (
        Column("problem"), Column("likelihood"), number("rows"), number("inputs"), number("M"),
        Column("why"), number("constant NLPD", ".3f"), number("smallest", ".3f"), Column("by"),
    )  # fmt: skip
    return Table(columns, rows)
