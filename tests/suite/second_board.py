"""The statistics of the board a second time, written from docs/board.md alone.

Loops over rows, pandas and SciPy; nothing of `svgpbench.suite` is imported. Slow and plain on purpose.
"""

from __future__ import annotations

import math
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

VOTE = 0.01
FAST = 1.5


class Estimate(NamedTuple):
    """A mean over problems with its 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(values: list[float]) -> Estimate:
    """Return the mean and the percentile interval of 10,000 bootstrap means."""
    n = len(values)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan)
    drawn = np.asarray(values)[np.random.default_rng(0).integers(n, size=(10000, n))].mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(float(np.mean(values)), float(low), float(high))


def in_order(names: pd.Series) -> list[str]:
    """Return the different names in the order of the table."""
    return list(dict.fromkeys(names))


def share(constant: float, nlpd: float, best: float, failed: bool) -> float:
    """Return the share of the possible gain."""
    if failed or math.isnan(nlpd) or constant <= best:
        return 0.0
    return max(0.0, (constant - nlpd) / (constant - best))


class SecondBoard:
    """A board of two tables; references are the entrants that take no rank."""

    def __init__(
        self, runs: pd.DataFrame, trials: pd.DataFrame, references: tuple[str, ...] = ()
    ) -> None:
        self.runs, self.trials = runs, trials
        self.best: dict[tuple[str, int], float] = {}
        self.constant: dict[tuple[str, int], float] = {}
        for row in runs.itertuples():
            key = (row.problem, row.fold)
            if not math.isnan(row.constant_nlpd):
                self.constant[key] = row.constant_nlpd
            if row.status == "ok" and not math.isnan(row.nlpd):
                self.best[key] = min(self.best.get(key, math.inf), row.nlpd)
        self.by_pair = {
            (str(e), str(p)): list(of.sort_values("fold").itertuples())
            for (e, p), of in runs.groupby(["entrant", "problem"])
        }
        self.entrants = [e for e in in_order(runs.entrant) if e not in references]
        every = in_order(runs.problem)
        self.problems = [p for p in every if self.possible_gain(p) >= VOTE]
        self.silent = [p for p in every if p not in self.problems]

    def possible_gain(self, problem: str) -> float:
        """Return the mean over folds of the gain from the constant to the best known."""
        folds = set(self.runs.fold[self.runs.problem == problem])
        keys = [(problem, fold) for fold in sorted(folds)]
        if not all(key in self.best for key in keys):
            return -math.inf
        return float(np.mean([self.constant[key] - self.best[key] for key in keys]))

    def of(self, entrant: str, problem: str) -> list[Any]:
        """Return the runs of an entrant on a problem, by fold."""
        return self.by_pair.get((entrant, problem), [])

    def taken(self, entrant: str) -> list[str]:
        """Return the voting problems that an entrant takes part in."""
        return [p for p in self.problems if self.of(entrant, p)]

    def shares(self, entrant: str, column: str = "nlpd") -> dict[str, float]:
        """Return the mean share over folds of each problem."""
        return {
            p: float(
                np.mean(
                    [
                        share(
                            self.constant[p, row.fold],
                            getattr(row, column),
                            self.best[p, row.fold],
                            row.status != "ok",
                        )
                        for row in self.of(entrant, p)
                    ]
                )
            )
            for p in self.taken(entrant)
        }

    def mean_nlpd(self, entrant: str, problem: str) -> float:
        """Return the mean over folds, infinite where a fold failed."""
        rows = self.of(entrant, problem)
        whole = all(row.status == "ok" and not math.isnan(row.nlpd) for row in rows)
        return float(np.mean([row.nlpd for row in rows])) if whole else math.inf

    def ranks(self, entrant: str) -> dict[str, float]:
        """Return the rank of an entrant on each problem."""
        result = {}
        for p in self.taken(entrant):
            own = self.mean_nlpd(entrant, p)
            others = [
                self.mean_nlpd(e, p) for e in self.entrants if e != entrant and p in self.taken(e)
            ]
            below, level = sum(x < own for x in others), sum(x == own for x in others)
            result[p] = 1 + below + level / 2
        return result

    def estimate(self, values: dict[str, float]) -> Estimate:
        """Return the mean over problems, in the order of the table, with its interval."""
        return estimate([values[p] for p in self.problems if p in values])

    def finished(self, entrant: str, column: str) -> float:
        """Return the share of an entrant's tasks that it finishes."""
        times = [
            row.status == "ok" and math.isfinite(getattr(row, column))
            for p in self.taken(entrant)
            for row in self.of(entrant, p)
        ]
        return sum(times) / len(times) if times else math.nan

    def fastest(self, problem: str, fold: int, column: str) -> float:
        """Return the smallest time of a task."""
        times = [
            getattr(row, column)
            for e in self.entrants
            for row in self.of(e, problem)
            if row.fold == fold
        ]
        return min((t for t in times if math.isfinite(t)), default=math.inf)

    def fast(self, entrant: str, factor: float = FAST, column: str = "seconds_90") -> float:
        """Return the share of tasks that an entrant finishes within a factor of the fastest."""
        counted = quick = 0
        for p in self.taken(entrant):
            for row in self.of(entrant, p):
                best = self.fastest(p, row.fold, column)
                if math.isfinite(best):
                    counted += 1
                    quick += getattr(row, column) <= factor * best
        return quick / counted if counted else math.nan

    def compared(self, one: str, other: str, problem: str) -> int:
        """Return 1 where the first is better, 0 where they are level, -1 where it is worse."""
        a, b = self.of(one, problem), self.of(other, problem)
        failed = [math.isinf(self.mean_nlpd(x, problem)) for x in (one, other)]
        if any(failed):
            return int(failed[1]) - int(failed[0])
        difference = np.array([y.nlpd - x.nlpd for x, y in zip(a, b, strict=True)])
        k = len(difference)  # 5; of one fold the sign counts
        if k == 1:
            return int(difference[0] > 0) - int(difference[0] < 0)
        error = difference.std(ddof=1) * math.sqrt(1 / k + 1 / (k - 1))
        width = float(stats.t.ppf(0.975, k - 1)) * error
        mean = difference.mean()
        return int(mean > width) - int(mean < -width)

    def pair(self, one: str, other: str) -> tuple[int, int, int]:
        """Count the problems on which the first is better, level and worse."""
        both = [p for p in self.taken(one) if p in self.taken(other)]
        signs = [self.compared(one, other, p) for p in both]
        return signs.count(1), signs.count(0), signs.count(-1)

    def probability(self, one: str, other: str) -> Estimate:
        """Return the probability that the first is better on a new problem."""
        better, level, worse = self.pair(one, other)
        n = better + level + worse
        beta = stats.beta(better + level / 2 + 0.5, worse + level / 2 + 0.5)
        low, high = beta.ppf([0.025, 0.975])
        return Estimate((better + level / 2) / n if n else 0.5, float(low), float(high))

    def trial_shares(self, entrant: str) -> dict[str, dict[tuple[float, float], float]]:
        """Return the share of every pair of the first round on each problem."""
        first = min(self.runs.fold)
        result: dict[str, dict[tuple[float, float], float]] = {}
        for p in self.problems:
            rows = self.trials[
                (self.trials.problem == p)
                & (self.trials.entrant == entrant)
                & (self.trials.stage == 1)
            ]
            for row in rows.itertuples():
                result.setdefault(p, {})[row.e_rate, row.m_rate] = share(
                    self.constant[p, first],
                    row.nlpd,
                    self.best[p, first],
                    row.status != "ok",
                )
        return result

    def default_rates(self, entrant: str, without: str | None) -> tuple[float, float] | None:
        """Return the pair with the largest mean share over the other problems."""
        shares = {p: of for p, of in self.trial_shares(entrant).items() if p != without}
        if not shares:
            return None
        pairs = sorted({pair for of in shares.values() for pair in of})
        means = {pair: float(np.mean([of[pair] for of in shares.values()])) for pair in pairs}
        largest = max(means.values())
        return min(pair for pair in pairs if means[pair] == largest)

    def prices(self, entrant: str) -> dict[str, float]:
        """Return the share that the default rates give away on each problem."""
        result = {}
        for p, of in self.trial_shares(entrant).items():
            rates = self.default_rates(entrant, p)
            if rates is not None:
                result[p] = max(of.values()) - of[rates]
        return result

    def untuned(self, entrant: str) -> float:
        """Return the median price of the default rates."""
        prices = self.prices(entrant)
        return median(prices.values()) if prices else math.nan


def pairs_of(board: SecondBoard) -> list[tuple[str, str]]:
    """Return all pairs of different entrants."""
    return [(a, b) for a, b in product(board.entrants, repeat=2) if a != b]
