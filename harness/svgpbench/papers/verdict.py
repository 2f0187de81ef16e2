"""What comes of a claim, and the figures it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from svgpbench.papers.ranks import Ranks


class Verdict(StrEnum):
    """What the records say of a claim; computed, never written by hand."""

    reproduced = "reproduced"
    not_reproduced = "not reproduced"
    partly = "partly"
    undecided = "undecided"
    not_run = "not run"


class Outcome(StrEnum):
    """What a 95 % interval says of a difference against its region of practical equivalence."""

    better = "better"
    worse = "worse"
    equal = "equal"
    undecided = "undecided"


@dataclass(frozen=True)
class Effect:
    """One comparison: a number, its 95 % interval (or quartiles, of times) and what they say."""

    of: str  # such as a data set
    outcome: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """What a predicate says of a frame of results."""

    verdict: Verdict
    effects: tuple[Effect, ...]
    ranks: Ranks | None = None  # where it rests on data sets


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a whole from those on its parts, all of which it claims.

    `not run` where a part is; `reproduced` and `not reproduced` where every part is; `partly` where one
    holds, in part at least, and another fails, in part at least; else `undecided`.
    """
    found = set(verdicts)
    if not found or Verdict.not_run in found:
        return Verdict.not_run
    if len(found) == 1:
        return found.pop()
    holds = found & {Verdict.reproduced, Verdict.partly}
    fails = found & {Verdict.not_reproduced, Verdict.partly}
    return Verdict.partly if holds and fails else Verdict.undecided


def on_stand_in(verdict: Verdict) -> Verdict:
    """What a verdict on a stand-in for the data of a claim says of it: in part at most, and no refutation."""
    said = {Verdict.reproduced: Verdict.partly, Verdict.not_reproduced: Verdict.undecided}
    return said.get(verdict, verdict)
