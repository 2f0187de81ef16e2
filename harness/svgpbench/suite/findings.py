"""Sentences that the board says, filled in from its numbers, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from svgpbench.suite.board import Board, Estimate, Pair, over_problems


class Question(NamedTuple):
    """Two entrants whose comparison is of interest, and what differs between them."""

    first: str
    second: str
    about: str


QUESTIONS: Final = (
    Question("q-SVGP natural", "q-SVGP Adam", "Natural steps in place of Adam on q"),
    Question("t-SVGP", "q-SVGP natural", "Dual parameters in place of mean and Cholesky factor"),
    Question("O(M) exact", "t-SVGP", "2M numbers in place of a full covariance"),
    Question("ORTH-DUAL", "t-SVGP", "Two orthogonal bases in place of one, at equal FLOPs"),
    Question("DECOUPLED", "q-SVGP Adam", "Decoupled bases in place of one, at equal FLOPs"),
    Question("t-SVGP, one v", "t-SVGP", "The tighter bound with one v"),
)


BESIDE: Final = "q-SVGP natural"
"""Entrant beside which a new one is compared, as it is timed beside it."""

FEWEST: Final = 5
"""Fewest problems from which a sentence speaks of a new one."""


def counted(problems: int) -> str:
    """Return such as `7 problems`."""
    return f"{problems} problem{'s' * (problems != 1)}"


def findings(board: Board) -> list[str]:
    """Return the sentences of a board; one that cannot tell says so."""
    return [*_leader(board), *_early(board), *_pairs(board), *_defaults(board)]


def findings_on(board: Board, entrant: str) -> list[str]:
    """Return the sentences of a board about one entrant: its place, its gain, and two comparisons.

    With one fold a comparison counts signs. Such a board says nothing about other entrants, whose five folds
    say more.
    """
    rows = board.rows()
    place = [row.entrant for row in rows].index(entrant)
    own, leader = rows[place], rows[0] if place else rows[1]
    folds = "one fold of each, signs only" if board.folds == 1 else f"{board.folds} folds of each"
    sentences = [
        f"{entrant} has place {place + 1} of {len(rows)} by average rank, {own.rank.text('.1f')}, on "
        f"{counted(len(board.problems))} ({folds}).",
        f"It has {own.share.percent()} of the possible gain at the end of the budget, and "
        f"{own.share_tenth.percent()} after a tenth.",
    ]
    for rival in dict.fromkeys((leader.entrant, BESIDE)):
        if rival == entrant or rival not in board.entrants:
            continue
        pair = board.pair(entrant, rival)
        better, level, worse, verdict = pair.better, pair.level, pair.worse, _verdict(pair)
        compared = f"better than {rival} on {better}, level on {level} and worse on {worse}"
        if board.folds == 1:  # no interval says what is level, or what a new problem would
            compared, verdict = f"ahead of {rival} in NLPD on {better} and behind on {worse}", ""
        times = _times(board, Question(entrant, rival, ""))
        sentences.append(f"It is {compared} of {counted(pair.problems)}.{verdict}{times}")
    return sentences


def _leader(board: Board) -> Iterator[str]:
    rows = board.rows()
    if len(rows) < 2:
        return
    first, second = rows[:2]
    pair = board.pair(first.entrant, second.entrant)
    yield (
        f"{first.entrant} has the lowest average rank by test NLPD, {first.rank.text('.1f')} of "
        f"{len(rows)} entrants on {counted(len(board.problems))}; then comes {second.entrant}, "
        f"{second.rank.text('.1f')}.{_verdict(pair)}"
    )


def _early(board: Board) -> Iterator[str]:
    rows = sorted(board.rows(), key=lambda row: -row.share_tenth.mean)
    if len(rows) < 2:
        return
    first, last = rows[0], rows[-1]
    yield (
        f"After a tenth of the budget {first.entrant} has {first.share_tenth.percent()} of the possible "
        f"gain, the most; {last.entrant} has {last.share_tenth.percent()}, the least."
    )


def _pairs(board: Board) -> Iterator[str]:
    for question in QUESTIONS:
        if not {question.first, question.second} <= set(board.entrants):
            continue
        pair = board.pair(question.first, question.second)
        yield (
            f"{question.about}: {question.first} is better than {question.second} on {pair.better}, level "
            f"on {pair.level} and worse on {pair.worse} of {counted(pair.problems)}."
            f"{_verdict(pair)}{_times(board, question)}"
        )


def _verdict(pair: Pair) -> str:
    """Return the probability on a new problem, or that the suite cannot tell; empty for too few problems."""
    if pair.problems < FEWEST:
        return ""
    probability, text = pair.probability, pair.probability.percent()
    if probability.low > 0.5:
        return f" On a new problem {pair.first} is the better one with probability {text}."
    if probability.high < 0.5:
        return (
            f" On a new problem {pair.first} is the better one with a probability of only {text}."
        )
    return f" The suite cannot tell which of the two is better on a new problem ({text})."


def _times(board: Board, question: Question) -> str:
    """Return the ratio of the times to 90 % of the possible gain, where both entrants reach it."""
    table = board.factors("seconds_90")[[question.first, question.second]]
    ratios = table[question.first] / table[question.second]  # NaN, 0 or infinite if one does not
    ratios = ratios[np.isfinite(ratios) & (ratios > 0.0)]
    # logs, so that a factor of 2 and one of 1/2 cancel; by problem, as folds are no units
    log_ratios = ratios.map(np.log).groupby(level="problem").mean()
    if not len(log_ratios):
        return ""
    ratio = Estimate(*np.exp(over_problems(log_ratios)))
    return (
        f" Its time to 90 % of the possible gain is {ratio.text()} times that of {question.second}, on the "
        f"{counted(len(log_ratios))} where both get there."
    )


def _defaults(board: Board) -> Iterator[str]:
    prices = board.default_prices().median().sort_values()
    if len(prices) < 2:
        return
    yield (
        "Without tuning, at the one pair of rates that is best on the other problems, the median problem "
        f"loses {100 * prices.iloc[0]:.0f} % of the possible gain with {prices.index[0]}, the least, and "
        f"{100 * prices.iloc[-1]:.0f} % with {prices.index[-1]}, the most."
    )
