"""Translation of the `metric` of a printed number to one of our metrics in the printed units.

`nlpd` and `held-out elbo` are metrics by name or lower-case title. `held-out elbo / 1e5` is divided by 1e5.
`mean mae`, `median mae` and `mean rank in mae` are statistics over data sets. `accuracy %` and
`test log-likelihood` increase as our metrics `error_rate` and `nlpd_original` decrease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pandas as pd

from svgpbench.metrics import METRICS

Statistic: TypeAlias = Literal["mean", "median", "rank"]
STATISTICS: dict[str, Statistic] = {"mean rank in ": "rank", "mean ": "mean", "median ": "median"}
"""Statistic by the words before the metric; longer words come first."""

TURNED = {
    "accuracy %": ("error_rate", -100.0, 100.0),
    "test log-likelihood": ("nlpd_original", -1.0, 0.0),
}
"""Our metric, factor and offset, by printed name."""

STEPS = "steps to the optimum"
UNITS = " / "


@dataclass(frozen=True)
class Quantity:
    """A metric of cells in the units of the print, or a statistic of it over data sets."""

    metric: str
    factor: float = 1.0
    offset: float = 0.0
    statistic: Statistic | None = None

    def in_units(self, value: float) -> float:
        """Return one of our numbers in the units of the print."""
        return self.factor * value + self.offset

    def of_cells(self, cells: pd.DataFrame) -> pd.Series[float]:
        """Return the metric of some cells in the units of the print."""
        return self.factor * cells[self.metric] + self.offset


def read_quantity(printed: str) -> Quantity | None:
    """Return the quantity that a paper prints under a name; None if records do not have it."""
    name, _, units = printed.partition(UNITS)
    for words, statistic in STATISTICS.items():
        if name.startswith(words):
            quantity = _cell_quantity(name.removeprefix(words), units)
            return quantity and replace(quantity, statistic=statistic)
    return Quantity(STEPS) if name == STEPS else _cell_quantity(name, units)


def _cell_quantity(name: str, units: str) -> Quantity | None:
    if name in TURNED:
        return Quantity(*TURNED[name])
    for metric in METRICS.values():
        if name in (metric.name, metric.title.lower()):
            return Quantity(metric.name, 1.0 / float(units or 1))
    return None
