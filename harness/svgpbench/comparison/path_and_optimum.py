"""Differences of two methods where their runs end, beside those at the optimum of each family of q.

A difference that runs show and optima do not belongs to the path: steps, rates and the budget. A difference
that both show belongs to the family.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from svgpbench.comparison.comparison import ComparedMeasure, Comparison
from svgpbench.errors import UserError
from svgpbench.output.table import Column, Table, number
from svgpbench.stats.effects import Effect, Outcome, with_interval
from svgpbench.stats.measures import MEASURES

METRICS = ("elbo", "log_variance", "log_lengthscale", "log_noise")
"""Measures that are compared by default."""

MEANING = (
    "difference: paired by split and start, positive if A's bound is higher or its hyperparameter smaller, "
    "with its 95 % interval; ±: what a difference must exceed to matter; the path: the runs differ and the "
    "optima are equal; the family: both differ alike; and the path: their intervals are apart"
)


class PathAndOptimum(NamedTuple):
    """A measure on a data set: the difference where runs end and at the optima."""

    metric: str
    data: str
    ends: ComparedMeasure
    optima: ComparedMeasure

    @property
    def verdict(self) -> str:
        """Cause of a difference of the runs, the path or the family; empty if the intervals do not tell."""
        return verdict(self.ends.effect, self.optima.effect)


def verdict(ends: Effect, optima: Effect) -> str:
    """Return what a difference of runs belongs to, by the outcomes of the runs and of the optima."""
    differs = (Outcome.better, Outcome.worse)
    if ends.outcome not in differs:
        return "none" if ends.outcome == Outcome.equal else ""
    if optima.outcome == Outcome.equal:
        return "the path"
    if optima.outcome not in differs:
        return ""
    if optima.outcome != ends.outcome:
        return "the path, against the family"
    intervals = (ends.low, ends.high, optima.low, optima.high)
    # no comparison with NaN is true: without an interval the verdict is "the family"
    low, high, low_optima, high_optima = (math.nan if x is None else x for x in intervals)
    # other runs, so they do not pair; intervals that do not meet are the stricter test of two
    apart = low > high_optima or high < low_optima
    return "the family and the path" if apart else "the family"


def side_by_side(ends: Comparison, optima: Comparison) -> list[PathAndOptimum]:
    """Return the measures and data sets that both comparisons have.

    Raises `UserError` if there are none.
    """
    of_optima = {(row.metric, row.shared["data"]): row for row in optima.rows}
    rows = [
        PathAndOptimum(row.metric, row.shared["data"], row, of_optima[key])
        for row in ends.rows
        if (key := (row.metric, row.shared["data"])) in of_optima
    ]
    if not rows:
        data = ", ".join(dict.fromkeys(row.shared["data"] for row in optima.rows))
        raise UserError(f"the optima are of other data sets than the runs: {data}")
    return rows


def table(rows: Sequence[PathAndOptimum], ends: Comparison, optima: Comparison) -> Table:
    """Return the rows as a table."""
    columns = (
        *(Column("data set", wrap=False), Column("measure", wrap=False)),
        number(f"runs: {ends.first} against {ends.second}", with_interval),
        number(f"optima: {optima.first} against {optima.second}", with_interval),
        *(number("±", ".2g"), Column("belongs to")),
    )
    values = [
        [x.data, MEASURES[x.metric].title, x.ends.effect, x.optima.effect, x.ends.region, x.verdict]
        for x in rows
    ]
    return Table(columns, values, "Where runs end, and the optimum of each family")
