"""Grades of claims, and the fidelity of what was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.ranks import Ranks


class Grade(StrEnum):
    """What the evidence says of a claim or of a part of one; computed, never written by hand."""

    holds = "holds"
    corrected = "holds, corrected"  # once a stated error of the print is mended
    direction = "direction only"  # the sign is as claimed, the size is not
    mixed = "mixed"  # true in some of the cases that the claim covers, false in others
    fails = "fails"
    open = "open"  # the data cannot tell
    not_testable = "not testable here"  # data or sizes of the claim cannot be had
    not_run = "not run"


class Fidelity(StrEnum):
    """How close a run is to what the paper did, the closest first."""

    algebra = "algebra"
    printed = "as printed"
    authors = "authors' code"
    scaled = "scaled"
    stand_in = "stand-in"

    @property
    def distance(self) -> int:
        """0 for algebra, larger the further from the paper."""
        return list(Fidelity).index(self)


@dataclass(frozen=True)
class Judgement:
    """The grade of a part of a claim, with the effects that it rests on."""

    grade: Grade
    effects: tuple[Effect, ...]
    ranks: Ranks | None = None  # where it rests on data sets
    note: str = ""  # such as the tolerance at which the grade turns


def combined(grades: Iterable[Grade]) -> Grade:
    """Combine the grades of the core parts of a claim.

    `not run` where a part has not run; the grade itself where all agree; `mixed` where one part holds and
    another fails; `open` where the only other grade is one and the same; `direction only` where parts hold
    and hold in direction.
    """
    found = set(grades)
    if not found or Grade.not_run in found:
        return Grade.not_run
    if len(found) == 1:
        return found.pop()
    if len(found - {Grade.open}) == 1:
        return Grade.mixed if Grade.mixed in found else Grade.open
    if found == {Grade.holds, Grade.direction}:
        return Grade.direction
    return Grade.mixed


def over_cases(effects: Iterable[Effect], worst: Iterable[bool] = ()) -> Grade:
    """Grade a claim from its cases, such as data sets.

    It holds where more than half of the cases speak for it and none is at its worst; it fails where more
    than half speak against it; it is mixed where some speak for and others against; else it is open. A data
    set that no method learns takes no part. `worst`: one for each effect; none, where left out.
    """
    effects = list(effects)
    at_worst = any(worst)
    voting = [effect.held for effect in effects if effect.outcome != Outcome.not_learned]
    half = len(voting) / 2
    held, failed = voting.count(True), voting.count(False)
    if held > half and not at_worst:
        return Grade.holds
    if failed > half:
        return Grade.fails
    return Grade.mixed if held and failed else Grade.open
