"""Frames that a paper's own functions compute, for claims and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import pandas as pd

from svgpbench.errors import refuse_unknown
from svgpbench.experiments.schema import FigureEntry
from svgpbench.papers.evidence.base import Evidence, PartOfPaper
from svgpbench.plugins import COMPUTED, load, plugins


class ComputedEvidence(Evidence):
    """Frames that the paper's entry in `svgpbench.computed` computes at each look."""

    part_of_paper: ClassVar[PartOfPaper] = "theory"

    kind: Literal["computed"]
    figures: tuple[FigureEntry, ...] = ()

    @property
    def source(self) -> str:
        return "computed at each look"

    @property
    def description(self) -> str:
        return "computed afresh, no records"


@dataclass(frozen=True)
class Computation:
    """Computed frame of a claim: one row per case, named by its `check`."""

    frame: pd.DataFrame

    def rows_of(self, checks: Sequence[str]) -> pd.DataFrame:
        """Return the rows of some checks, or all rows if `checks` is empty.

        Raises `UserError` for an unknown check.
        """
        refuse_unknown("check", checks, self.frame["check"].unique())
        return self.frame[self.frame["check"].isin(checks)] if checks else self.frame

    @property
    def condition(self) -> str:
        """Numbers of checks and cases as text."""
        cases, checks = len(self.frame), self.frame["check"].nunique()
        return f"computed: {checks} check{'s' * (checks > 1)}, {cases} case{'s' * (cases > 1)}"


def compute(paper: str, claim: str) -> Computation | None:
    """Compute a claim's frame by the paper's entry in `svgpbench.computed`; None if it has none."""
    frame = computed_frame(paper, claim)
    return None if frame is None else Computation(frame)


ComputedFrame: TypeAlias = Callable[[str, str], pd.DataFrame | None]
"""Function from (paper, name) to the frame of a claim or a figure, or None."""


def computed_frame(paper: str, name: str) -> pd.DataFrame | None:
    """Compute the frame of a claim or of `ARTEFACT/FIGURE`; None if the paper's entry has none."""
    if paper not in plugins(COMPUTED):
        return None
    computations: Mapping[str, Callable[[], pd.DataFrame]] = load(COMPUTED, paper)
    return computations[name]() if name in computations else None
