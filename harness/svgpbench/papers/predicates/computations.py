"""Predicates on computed frames: residuals of identities and exponents of counted costs."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from pydantic import PositiveFloat

from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.predicates.predicate import Predicate
from svgpbench.stats.effects import Effect
from svgpbench.stats.rules import RULES, Rules


class ComputedPart(Predicate):
    """A part decided by a computed frame, by the rows of some or all checks."""

    checks: tuple[str, ...] = ()  # empty: all

    @property
    def columns(self) -> tuple[str, ...]:
        return ("residual",)


class Identity(ComputedPart):
    """An identity: every `residual` is within a tolerance in magnitude. There is no interval."""

    predicate: Literal["identity"]
    tolerance: PositiveFloat = 1e-8

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        # max() skips NaN; `_grade_residuals` counts them, so that the part is open
        worst = float(frame["residual"].abs().max())
        tolerance = self.tolerance * rules.threshold
        return _grade_residuals(frame, "largest residual", worst, worst <= tolerance)


class Differs(ComputedPart):
    """A violated identity: every `residual` is at least `at_least` in magnitude."""

    predicate: Literal["differs"]
    at_least: PositiveFloat = 1e-3

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        least = float(frame["residual"].abs().min())
        at_least = self.at_least * rules.threshold
        return _grade_residuals(frame, "least residual", least, least >= at_least)


def _grade_residuals(frame: pd.DataFrame, subject: str, extreme: float, holds: bool) -> Judgement:
    """Grade by an extreme residual; open if a residual is NaN or the frame is empty."""
    missing = int(frame["residual"].isna().sum())
    if frame.empty or missing:
        note = f"{missing} of {len(frame)} residuals are not numbers"
        return Judgement(Grade.open, (Effect(subject, "", note=note),))
    effect = Effect(subject, "", extreme, held=holds)
    return Judgement(Grade.holds if holds else Grade.fails, (effect,))


class Exponent(ComputedPart):
    """A power law of a counted cost in one size, fitted over at least a decade; open over less."""

    predicate: Literal["exponent"]
    cost: str  # a column of the frame
    size: str  # a column of the frame
    power: float
    within: PositiveFloat = 0.05

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.size, self.cost)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        sizes, costs = (frame[column].to_numpy(float) for column in self.columns)
        subject = f"exponent of {self.size}"
        positive = int(np.sum((sizes > 0.0) & (costs > 0.0)))
        if frame.empty or positive < len(frame):
            note = f"{len(frame) - positive} of {len(frame)} rows have no positive size and cost"
            return Judgement(Grade.open, (Effect(subject, "", note=note),))
        if sizes.max() < 10 * sizes.min():
            return Judgement(Grade.open, (Effect(subject, "", note="less than a decade"),))
        slope = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
        near = abs(slope - self.power) <= self.within * rules.threshold
        effect = Effect(subject, "", slope, held=near)
        return Judgement(Grade.holds if near else Grade.fails, (effect,))
