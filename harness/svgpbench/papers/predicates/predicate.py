"""What every predicate is: a part of a claim, and how a frame of results grades it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

import pandas as pd
from pydantic import Field, model_validator

from svgpbench.config import Strict
from svgpbench.papers.grades import Judgement
from svgpbench.stats.rules import RULES, Rules


class Predicate(Strict, ABC):
    """A part of a claim: which artefact's records decide it, and how.

    Core parts decide the claim's grade. An erratum is a part that holds where the print errs. All other
    parts are conditions, which are shown beside the claim and never vote.
    """

    says: str  # the part in a few words
    artefact: str
    key: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None  # in the finding
    core: bool = False
    erratum: bool = False

    @model_validator(mode="after")
    def _has_one_role(self) -> Predicate:
        if self.core and self.erratum:
            raise ValueError("a part is core or an erratum; set one of them")
        return self

    @abstractmethod
    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        """Grade the part by a frame of results."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Labels of the methods it is about."""
        return ()


class AtTheEnd(Predicate):
    """A part about where methods end.

    `budget`: "converged" lets only runs decide whose bound neither rises nor falls back beyond its region in
    the last quarter; "equal" is for a claim about the printed number of steps at the printed rates.
    """

    budget: Literal["converged", "equal"] = "converged"

    @property
    def converged(self) -> bool:
        """Whether runs must have converged."""
        return self.budget == "converged"
