"""What every predicate is, and how outcomes on several data sets become one verdict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pandas as pd

from svgpbench.config import Strict
from svgpbench.papers.verdict import Finding, Outcome, Verdict


class Predicate(Strict, ABC):
    """A part of a claim: which artefact's records decide it, and how."""

    says: str  # the part in a few words
    artefact: str

    @abstractmethod
    def judge(self, frame: pd.DataFrame) -> Finding:
        """The verdict on a frame of results."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Labels of the methods it is about."""
        return ()


def over_data_sets(held: Sequence[bool], failed: Sequence[bool], worst: Sequence[bool]) -> Verdict:
    """One verdict from those on several data sets.

    Reproduced where it held on more than half and is at its worst on none; not reproduced where it failed
    on more than half; partly where it held on some and failed on others; else undecided.
    """
    half = len(held) / 2
    if sum(held) > half and not any(worst):
        return Verdict.reproduced
    if sum(failed) > half:
        return Verdict.not_reproduced
    return Verdict.partly if any(held) and any(failed) else Verdict.undecided


def better_over_data_sets(outcomes: Sequence[str], at_least: bool = False) -> Verdict:
    """The verdict where a method is to be better on data sets, or with `at_least` better or equal: rule 5."""
    good = {Outcome.better, Outcome.equal} if at_least else {Outcome.better}
    bad = {Outcome.better, Outcome.equal, Outcome.worse} - good
    return over_data_sets(
        [outcome in good for outcome in outcomes],
        [outcome in bad for outcome in outcomes],
        [outcome == Outcome.worse for outcome in outcomes],
    )
