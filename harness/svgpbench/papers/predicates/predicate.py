"""Base classes of predicates, which grade a part of a claim from a frame of results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated

import pandas as pd
from pydantic import Field, PositiveFloat, model_validator

from svgpbench.config import Strict
from svgpbench.papers.grades import Judgement, combined_cases
from svgpbench.stats.designs import Design
from svgpbench.stats.effects import NOT_VOTING, Effect, Outcome
from svgpbench.stats.measures import MEASURES, Measure, MeasureName
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

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the frame that the part names, or that a computed frame must have."""
        return ()

    @property
    def printed_in_regions(self) -> tuple[float, ...]:
        """Effects that the paper prints, in multiples of what matters."""
        return ()

    def lacks(self, design: Design) -> str:
        """Return what a design lacks whose runs cannot decide the part, whatever comes out; else nothing."""
        return ""


class AtTheEnd(Predicate):
    """A part about the results of methods after an equal number of steps.

    `printed_effect` is the difference that the paper prints, or a list of several. `smallest_effect` is the
    smallest one that matters for the claim, in place of the region of the measure. Both are in the unit that
    data sets share: a share of the second method's value for a measure whose region is one, nats per datum
    for a bound, else the measure's own.
    """

    metric: MeasureName
    printed_effect: float | tuple[float, ...] = ()
    smallest_effect: PositiveFloat | None = None

    @model_validator(mode="after")
    def _could_see_what_is_printed(self) -> AtTheEnd:
        if self.smallest_effect is None:
            return self
        # without a printed effect the default, 0, refuses any: a smaller region must rest on print
        if self.smallest_effect >= min(map(abs, self.printed_effects), default=0.0):
            raise ValueError(
                "a smallest effect lies below the printed one; give printed_effect, and a smaller "
                "smallest_effect"
            )
        return self

    @property
    def printed_effects(self) -> tuple[float, ...]:
        """The printed differences, also if there is one or none."""
        printed = self.printed_effect
        return printed if isinstance(printed, tuple) else (printed,)

    @property
    def printed_in_regions(self) -> tuple[float, ...]:
        return tuple(effect / self.measure.smallest for effect in self.printed_effects)

    @property
    def measure(self) -> Measure:
        """The measure, with the smallest effect that matters for the claim."""
        return MEASURES[self.metric].with_smallest(self.smallest_effect)

    def shown_by(self, effects: Iterable[Effect], lasting: Iterable[Effect] = ()) -> str:
        """Return the smallest effect that the runs could have shown, beside the printed one, as text.

        It is half the width of the interval of the difference: a smaller one is not told from 0. Of several
        cases it is the least and the largest. `lasting` are the effects with intervals widened by their
        change over the last quarter. Empty if no effect has an interval.
        """
        at_the_end = self._half_widths(effects)
        if not at_the_end:
            return ""
        text = f"smallest effect these runs could show: {at_the_end}"
        if printed := self.printed_effects:
            text += f" (printed: {self.measure.in_words(min(printed), max(printed))})"
        widened = self._half_widths(lasting)
        return f"{text}; for one that lasts: {widened}" if widened not in ("", at_the_end) else text

    def _half_widths(self, effects: Iterable[Effect]) -> str:
        """Return the least and the largest half width of intervals, in the unit of `printed_effect`."""
        ends = (effect.in_regions for effect in effects if effect.in_regions)
        halves = [self.measure.smallest * (high - low) / 2 for _, low, high in ends]
        known = [half for half in halves if math.isfinite(half)]
        return self.measure.in_words(min(known), max(known)) if known else ""


def supports(outcome: str, good: set[Outcome]) -> bool | None:
    """Return True if an outcome is in `good`; None if it is undecided or does not count."""
    if outcome == Outcome.undecided or outcome in NOT_VOTING:
        return None
    return outcome in good


def judge_cases(effects: Iterable[Effect]) -> Judgement:
    """Grade a part from its cases, such as data sets; it does not hold if a case is worse."""
    effects = tuple(effects)
    worst = [effect.outcome == Outcome.worse for effect in effects]
    return Judgement(combined_cases(effects, worst), effects)
