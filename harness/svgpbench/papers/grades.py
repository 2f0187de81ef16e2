"""Grades of claims, and the fidelity of what was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from svgpbench.stats.effects import NOT_VOTING, Effect
from svgpbench.stats.ranks import Ranks


class Grade(StrEnum):
    """Grade of a claim or of a part; always computed from the evidence."""

    holds = "holds"
    corrected = "holds, corrected"  # after an error in the paper is corrected
    direction = "direction only"  # the sign is as claimed, the size is not
    mixed = "mixed"  # true in some of the cases that the claim covers, false in others
    fails = "fails"
    open = "open"  # the runs cannot decide
    not_testable = "not testable here"  # data or sizes of the claim are unavailable
    not_run = "not run"


class Fidelity(StrEnum):
    """Closeness of a run to the paper's own, the closest first."""

    algebra = "algebra"
    printed = "as printed"
    authors = "authors' code"
    scaled = "scaled"
    stand_in = "stand-in"
    ours = "our settings"  # a test that the paper does not describe

    @property
    def distance(self) -> int:
        """Distance from the paper: 0 for algebra, 5 for our own settings."""
        return list(Fidelity).index(self)


@dataclass(frozen=True)
class Judgement:
    """The grade of a part of a claim, with the effects that it rests on."""

    grade: Grade
    effects: tuple[Effect, ...]
    ranks: Ranks | None = None  # for a comparison over data sets
    note: str = ""  # such as the tolerance at which the grade changes


def combined(grades: Iterable[Grade]) -> Grade:
    """Combine the grades of the core parts of a claim.

    The first case that applies decides:

    1. `not run` if there is no grade or a part has not run.
    2. The common grade if all agree.
    3. If one other grade occurs beside `open`: `mixed` if it is `mixed` or `fails`, since a claim with a
       false half does not hold; else `open`.
    4. `direction only` if the grades are `holds` and `direction only`.
    5. `mixed` otherwise, such as if one part holds and another fails.
    """
    distinct = set(grades)
    if not distinct or Grade.not_run in distinct:
        return Grade.not_run
    if len(distinct) == 1:
        return distinct.pop()
    if len(distinct - {Grade.open}) == 1:
        return Grade.mixed if distinct & {Grade.mixed, Grade.fails} else Grade.open
    if distinct == {Grade.holds, Grade.direction}:
        return Grade.direction
    return Grade.mixed


def combined_cases(effects: Iterable[Effect], worst: Iterable[bool] = ()) -> Grade:
    """Grade a claim from its cases, such as data sets.

    The claim holds if more than half of the cases support it and no entry of `worst` is true. It fails if
    more than half contradict it. It is mixed if some support and others contradict it, and open otherwise.
    Cases whose outcome is in `NOT_VOTING` do not count. `worst` has one entry per effect; by default all are
    false.
    """
    voting = [effect.held for effect in effects if effect.outcome not in NOT_VOTING]
    half = len(voting) / 2
    supporting, contradicting = voting.count(True), voting.count(False)
    if supporting > half and not any(worst):
        return Grade.holds
    if contradicting > half:
        return Grade.fails
    return Grade.mixed if supporting and contradicting else Grade.open
