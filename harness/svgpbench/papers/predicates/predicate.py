"""Base classes of predicates, which grade a part of a claim from a frame of results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, Literal

import pandas as pd
from pydantic import Field, model_validator

from svgpbench.config import Strict
from svgpbench.papers.grades import Judgement, over_cases
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.rules import RULES, Rules


class Predicate(Strict, ABC):
    """A part of a claim, graded from the records of one artefact.

    Core parts decide the claim's grade. An erratum part holds if the print has an error. All other parts are
    conditions, which are shown with the claim and do not affect its grade.
    """

    says: str  # short description of the part
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
        """Grade the part from a frame of results."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Names of the methods that the part is about."""
        return ()


class AtTheEnd(Predicate):
    """A part about the results of methods at the end of a run.

    With `budget` "converged", the part is undecided if a bound moves beyond its region in the last quarter
    of the runs. With "equal", the claim is about the printed number of steps at the printed rates.
    """

    budget: Literal["converged", "equal"] = "converged"

    @property
    def converged(self) -> bool:
        """True if runs must have converged."""
        return self.budget == "converged"


def judge_cases(effects: Iterable[Effect]) -> Judgement:
    """Grade a part from its cases, such as data sets; it does not hold if a case is worse."""
    effects = tuple(effects)
    worst = [effect.outcome == Outcome.worse for effect in effects]
    return Judgement(over_cases(effects, worst), effects)
