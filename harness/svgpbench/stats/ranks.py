"""Average ranks of methods over data sets, with intervals. They depend on the set of methods."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from svgpbench.metrics import Better, loss
from svgpbench.stats.differences import LEVEL, bootstrap, percentile_interval

FEWEST = 5
"""The fewest data sets for a bootstrap interval over data sets."""
TIE_DIGITS = 12
"""Decimals to which means must agree to share a rank: sums in another order round otherwise."""

ENOUGH = 10
"""The fewest data sets for which a critical difference can tell methods apart."""


class Rank(NamedTuple):
    """A method's mean rank, 1 the best, with its 95 % bootstrap interval over data sets."""

    method: str
    mean: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The rank as text, such as `1.83 [1.50, 2.17]`."""
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


class Ranks(NamedTuple):
    """The ranks of several methods, and the number of data sets that they are averaged over."""

    data_sets: int
    by_method: tuple[Rank, ...]  # in the order of the methods

    @property
    def leaders(self) -> tuple[Rank, ...]:
        """The ranks of the methods that share the best mean."""
        best = min(rank.mean for rank in self.by_method)
        return tuple(rank for rank in self.by_method if rank.mean == best)

    def to_json(self) -> dict[str, Any]:
        """Return the number of data sets and the rank of each method for JSON."""
        return {"data_sets": self.data_sets, "methods": [x._asdict() for x in self.by_method]}

    @property
    def text(self) -> str:
        """All ranks on one line."""
        listed = ", ".join(f"{rank.method} {rank.text}" for rank in self.by_method)
        return f"average rank among {len(self.by_method)} methods on {self.data_sets} data sets: {listed}"


def average_ranks(
    frame: pd.DataFrame, column: str, better: Better, methods: Iterable[str]
) -> Ranks | None:
    """Return the average ranks of methods by the mean of a column on each data set.

    Only data sets with cells of all methods count, unless all methods failed there. Ties share a rank, and
    a method with a failed cell or a missing value is ranked last. None if there are fewer than five data
    sets or two methods.

    Args:
        frame: one row per cell of one backend.
        column: the metric.
        better: the direction in which the metric is better.
        methods: the labels of the methods.
    """
    methods = list(methods)
    plain = frame[(frame["perturbation"] == 0) & frame["method"].isin(methods)]
    losses = loss(plain[column].astype(float), better).where(plain["status"] == "ok")
    means = means_on_sets(plain, losses, methods).dropna(how="all")
    if len(means) < FEWEST or len(methods) < 2:
        return None
    ranks = means.round(TIE_DIGITS).rank(axis="columns", na_option="bottom").to_numpy()
    low, high = percentile_interval(bootstrap(ranks, np.mean))
    rows = zip(methods, ranks.mean(axis=0), low, high, strict=True)
    return Ranks(len(ranks), tuple(Rank(name, *map(float, numbers)) for name, *numbers in rows))


def means_on_sets(
    plain: pd.DataFrame, numbers: pd.Series[float], methods: list[str]
) -> pd.DataFrame:
    """Return means [data sets, methods] of the sets with cells of every method; NaN if a number is."""
    groups = numbers.groupby([plain["data"], plain["method"]])
    # without its failed cells, a method's mean would look too good
    means = groups.agg(lambda x: x.mean(skipna=False)).unstack()
    complete = groups.size().unstack().reindex(columns=methods).notna().all(axis="columns")
    return means.reindex(columns=methods)[complete]


def critical_difference(methods: int, data_sets: int) -> float:
    """Return the least difference of two mean ranks that is significant at 5 %.

    Source: Demsar 2006, the test of Nemenyi.
    """
    from scipy.stats import studentized_range  # takes long to import

    # the range counts deviations of one mean rank; the root below is of a difference, √2 as large
    quantile = float(studentized_range.ppf(LEVEL, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * data_sets))
