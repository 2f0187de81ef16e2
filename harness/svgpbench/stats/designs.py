"""Number of runs of a comparison, and whether they can decide anything, known before any of them has run."""

from __future__ import annotations

from typing import NamedTuple

from svgpbench.stats.differences import STARTS
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.over_sets import FEWEST_SETS


class Design(NamedTuple):
    """Numbers of data sets, of splits of each and of starts on each split."""

    sets: int
    splits: int
    starts: int

    @property
    def runs(self) -> int:
        """Number of runs of each method."""
        return self.sets * self.splits * self.starts

    def lacks_interval(self, metric: str, *, sets_are_units: bool = False) -> str:
        """Return what would make an interval of a difference on a data set; empty if there is one.

        With `sets_are_units`, six data sets make one where no data set has its own.
        """
        of_test = MEASURES[metric].rows == "test"
        if (of_test and self.splits > 1) or self.starts >= STARTS:
            return ""
        if sets_are_units and self.sets >= FEWEST_SETS:
            return ""
        enough = ["2 splits"] * of_test + [f"{STARTS} starts"]
        enough += [f"{FEWEST_SETS} data sets"] * sets_are_units
        return " or ".join(enough)

    def __str__(self) -> str:
        counts = ((self.sets, "data set"), (self.splits, "split"), (self.starts, "start"))
        return ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)
