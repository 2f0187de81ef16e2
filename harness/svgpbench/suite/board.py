"""Statistics of the board: shares of the possible gain, ranks, times, pairs and the price of default rates.

A problem is the unit everywhere: folds of one table are averaged first. A failed run is last, its share is 0,
and its time is infinite. A problem on which no entrant beats the best constant prediction does not vote.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import beta

from svgpbench.config import RatePair
from svgpbench.stats.differences import LEVEL, Sample, bootstrap, percentile_interval
from svgpbench.suite.outcomes import Outcomes

Floats = npt.NDArray[np.float64]
LEAST_GAIN: Final = 0.01
"""Nats per row by which some entrant must beat the constant prediction for a problem to vote."""
FACTORS: Final = (1.1, 1.5, 2.0, 4.0)
"""Factors of the performance profile."""


class Estimate(NamedTuple):
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    def text(self, form: str = ".2f") -> str:
        """Return such as `1.83 [1.50, 2.17]`."""
        return f"{self.mean:{form}} [{self.low:{form}}, {self.high:{form}}]"

    def percent(self) -> str:
        """Return such as `83 % [75, 90]`."""
        return f"{100 * self.mean:.0f} % [{100 * self.low:.0f}, {100 * self.high:.0f}]"


class Standing(NamedTuple):
    """An entrant on the board."""

    entrant: str
    problems: int  # on which it took part
    rank: Estimate  # by NLPD at the end
    share: Estimate  # of the possible gain in NLPD, at the end
    share_tenth: Estimate  # at a tenth of the budget
    within: dict[float, float]
    """Share of tasks that it brings to 90 % within each factor of the fastest entrant's time."""
    finished_90: float  # share of tasks that reach 90 % of the possible gain
    finished_99: float
    default_price: float  # median share of the possible gain that the default rates give away
    failed_trials: float  # share
    failed_runs: float
    ms: float  # geometric mean over problems of an iteration's time, relative to the entrant of least rank


class Pair(NamedTuple):
    """Two entrants over problems: on how many the first is better, level and worse."""

    first: str
    second: str
    better: int
    level: int
    worse: int

    @property
    def problems(self) -> int:
        """Number of problems on which both took part."""
        return self.better + self.level + self.worse

    @property
    def probability(self) -> Estimate:
        """Probability that the first is better on a new problem; level problems count half to each.

        The interval is that of a beta posterior with Jeffreys' prior.
        """
        wins, losses = self.better + 0.5 * self.level, self.worse + 0.5 * self.level
        low, high = (
            float(beta.ppf(tail, wins + 0.5, losses + 0.5))
            for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
        )
        problems = wins + losses
        return Estimate(wins / problems if problems else 0.5, low, high)


class Board:
    """The board over some problems; every number is of candidates, references stand beside."""

    def __init__(
        self, outcomes: Outcomes, entrants: Sequence[str], problems: Sequence[str] | None = None
    ) -> None:
        runs = outcomes.runs
        if problems is not None:
            runs = runs[runs["problem"].isin(problems)]
        self.outcomes, self.runs = outcomes, runs
        self.trials = outcomes.trials[outcomes.trials["problem"].isin(set(runs["problem"]))]
        self.folds = int(runs["fold"].nunique())
        self.silent = self._silent()
        self.problems = [x for x in dict.fromkeys(runs["problem"]) if x not in self.silent]
        present = set(runs.loc[runs["problem"].isin(self.problems), "entrant"])
        self.entrants = [x for x in entrants if x in present]
        self._voting = runs[
            runs["problem"].isin(self.problems) & runs["entrant"].isin(self.entrants)
        ]

    def _silent(self) -> list[str]:
        """Return the problems on which no entrant gains."""
        gain = self.runs["constant_nlpd"] - self.runs["best_nlpd"]
        # not NaN, which means skip: a fold on which every run failed silences its problem
        gain = gain.where(np.isfinite(self.runs["best_nlpd"]), -np.inf)
        keys = [self.runs["problem"], self.runs["fold"]]  # a failed run may have no constant
        means = gain.groupby(keys).mean().groupby("problem").mean()
        # not `<`, which is False for NaN: a problem without any gain to average has no vote
        return [str(name) for name in means.index[~(means >= LEAST_GAIN)]]

    def losses(self) -> pd.DataFrame:
        """Return the mean NLPD over folds, [problem × entrant].

        It is infinite where a run failed, and missing where an entrant took no part.
        """
        nlpd = self._voting["nlpd"].where(self._voting["status"] == "ok", np.inf)
        return self._table(nlpd.fillna(np.inf))

    def shares(self, column: str = "nlpd") -> pd.DataFrame:
        """Return the mean share of the possible gain over folds, [problem × entrant].

        A share below 0, that of a run that is worse than the constant prediction or failed, counts as 0; so
        does every share on a fold whose best known is no better than the constant prediction.
        """
        runs = self._voting
        share = share_of_gain(runs["constant_nlpd"], runs[column], runs["best_nlpd"])
        return self._table(share.where(runs["status"] == "ok", 0.0))

    def ranks(self) -> pd.DataFrame:
        """Return ranks by the mean NLPD, [problem × entrant]; ties share their mean rank."""
        return self.losses().rank(axis="columns")

    def factors(self, level: str) -> pd.DataFrame:
        """Return times over that of the fastest entrant, [problem and fold × entrant].

        They are infinite where the level was not reached, and missing where an entrant took no part. Tasks
        that no entrant finishes do not count.
        """
        table = self.seconds(level)
        least = table.min(axis="columns")
        least = least[np.isfinite(least)]
        factors: pd.DataFrame = table.loc[least.index].div(least, axis="index")
        return factors

    def seconds(self, level: str) -> pd.DataFrame:
        """Return times [problem and fold × entrant], infinite where the level was not reached."""
        seconds = self._voting[level].where(self._voting["status"] == "ok", np.inf).fillna(np.inf)
        keys = [self._voting[key] for key in ("problem", "fold", "entrant")]
        table: pd.DataFrame = seconds.groupby(keys, sort=False).first().unstack("entrant")
        return table.reindex(columns=self.entrants)

    def _table(self, values: pd.Series[float]) -> pd.DataFrame:
        """Return means over folds, [problem × entrant], in the order of the board."""
        keys = [self._voting["problem"], self._voting["entrant"]]
        means: pd.DataFrame = values.groupby(keys).mean().unstack("entrant")
        return means.reindex(index=self.problems, columns=self.entrants)

    def references(self) -> dict[str, pd.Series[float]]:
        """Return the mean share of the possible gain of references, by problem."""
        searched = set(self.outcomes.trials["entrant"])  # a reference has no rates to search
        runs = self.runs[~self.runs["entrant"].isin(searched)]
        runs = runs[runs["problem"].isin(self.problems)]
        share = share_of_gain(runs["constant_nlpd"], runs["nlpd"], runs["best_nlpd"])
        share = share.where(runs["status"] == "ok", 0.0)
        return {
            str(name): values.groupby(runs["problem"]).mean()
            for name, values in share.groupby(runs["entrant"])
        }

    @functools.cache  # noqa: B019 (a board lives as long as its command)
    def rows(self) -> list[Standing]:
        """Return the entrants, the lowest average rank first."""
        ranks, shares, tenths = self.ranks(), self.shares(), self.shares("nlpd_tenth")
        factors, ninety, ninety_nine = (
            self.factors("seconds_90"),
            self.seconds("seconds_90"),
            self.seconds("seconds_99"),
        )
        prices, speed = self.default_prices(), self._relative_ms(ranks)
        failed = self._voting["status"] != "ok"
        failed_runs = failed.groupby(self._voting["entrant"]).mean()
        failed_trials = (self.trials["status"] != "ok").groupby(self.trials["entrant"]).mean()
        rows = [
            Standing(
                entrant=entrant,
                problems=int(ranks[entrant].notna().sum()),
                rank=over_problems(ranks[entrant]),
                share=over_problems(shares[entrant]),
                share_tenth=over_problems(tenths[entrant]),
                within={x: float((factors[entrant].dropna() <= x).mean()) for x in FACTORS},
                finished_90=float(np.isfinite(ninety[entrant].dropna()).mean()),
                finished_99=float(np.isfinite(ninety_nine[entrant].dropna()).mean()),
                default_price=float(prices[entrant].median()) if entrant in prices else np.nan,
                failed_trials=float(failed_trials.get(entrant, np.nan)),
                failed_runs=float(failed_runs.get(entrant, np.nan)),
                ms=speed[entrant],
            )
            for entrant in self.entrants
        ]
        return sorted(rows, key=lambda row: row.rank.mean)

    def to_json(self) -> dict[str, Any]:
        """Return the board for JSON: entrants, pairs, and the NLPD of each entrant on each problem."""
        rows = self.rows()
        names = [row.entrant for row in rows]
        pairs = [self.pair(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        return {
            "problems": self.problems,
            "no_vote": self.silent,
            "entrants": [
                row._asdict()
                | {key: getattr(row, key)._asdict() for key in ("rank", "share", "share_tenth")}
                for row in rows
            ],
            "pairs": [x._asdict() | {"probability": x.probability._asdict()} for x in pairs],
            "nlpd": self.losses().to_dict("index"),
        }

    def _relative_ms(self, ranks: pd.DataFrame) -> dict[str, float]:
        # geometric means: the ratio of A to B is then one over that of B to A
        log_ms = self._table(np.log(self._voting["ms"]))
        reference = log_ms[ranks.mean().idxmin()] if self.entrants else 0.0
        means = np.exp(log_ms.sub(reference, axis="index").mean())
        return {str(name): float(value) for name, value in means.items()}

    def pair(self, first: str, second: str) -> Pair:
        """Compare two entrants problem by problem.

        One is better where the 95 % interval of the paired difference over folds excludes 0. Where only one
        of them failed on a fold, the other is better; where both did, they are level.
        """
        outcomes = []
        for problem in self.problems:
            of = self._voting[self._voting["problem"] == problem]
            sides = [of[of["entrant"] == x].set_index("fold") for x in (first, second)]
            if not (len(sides[0]) and len(sides[1])):
                continue
            ok = [bool(side["nlpd"].where(side["status"] == "ok").notna().all()) for side in sides]
            if not all(ok):
                outcomes.append(ok[0] - ok[1])
                continue
            low, high = fold_interval((sides[0]["nlpd"] - sides[1]["nlpd"]).to_numpy(np.float64))
            outcomes.append(int(high < 0) - int(low > 0))
        counts = [outcomes.count(x) for x in (1, 0, -1)]
        return Pair(first, second, *counts)

    def default_prices(self) -> pd.DataFrame:
        """Return the share of the possible gain that default rates give away, [problem × entrant].

        The default of an entrant on a problem is the pair of rates with the largest mean share of the
        possible gain in the first round of trials on all other problems. Its price is the share of the best
        pair of that round less its own. A failed trial has no gain.
        """
        shares = self.trial_shares()
        prices: dict[str, dict[str, float]] = {}
        for entrant, table in shares.items():  # [problem × pair]
            for problem in table.index:
                # its own trials would flatter the default
                others = table.drop(index=problem)
                if len(others):
                    own = table.loc[problem]
                    price = float(own.max() - own[best_column(others)])
                    prices.setdefault(entrant, {})[str(problem)] = price
        return pd.DataFrame(prices).reindex(index=self.problems)

    def default_rates(self) -> dict[str, tuple[float, float]]:
        """Return each entrant's pair of rates with the largest mean share over the problems."""
        return {entrant: best_column(table) for entrant, table in self.trial_shares().items()}

    def at_edges(self) -> dict[str, RatePair]:
        """Return the shares of problems where the chosen rate of q, and of θ, is an end of the grid.

        At such a problem another grid might have given the entrant a better run.
        """
        searched = self.trials[self.trials["stage"] == 1]
        runs = self._voting[self._voting["e_rate"].notna()]
        shares: dict[str, RatePair] = {}
        for entrant in self.entrants:
            grid = searched[searched["entrant"] == entrant]
            chosen = runs[runs["entrant"] == entrant].groupby("problem").first()
            shares[entrant] = RatePair(
                *(
                    float(chosen[rate].isin([grid[rate].min(), grid[rate].max()]).mean())
                    for rate in ("e_rate", "m_rate")
                )
            )
        return shares

    def trial_shares(self) -> dict[str, pd.DataFrame]:
        """Return the shares of the possible gain of first-round trials, [problem × pair] by entrant.

        Held-out rows are scored, so the gain is the one between the constant prediction and the best NLPD
        of the problem's first fold, which those rows estimate as well.
        """
        first_fold = self.runs[self.runs["fold"] == 0].groupby("problem")
        # one number in all runs of a fold, but missing where a run failed, which `max` skips
        constant, best = first_fold["constant_nlpd"].max(), first_fold["best_nlpd"].max()
        trials = self.trials[
            (self.trials["stage"] == 1) & self.trials["problem"].isin(self.problems)
        ]
        constant, best = (trials["problem"].map(x).astype(np.float64) for x in (constant, best))
        share = share_of_gain(constant, trials["nlpd"], best)
        keys = [trials[key] for key in ("problem", "e_rate", "m_rate")]
        return {
            str(entrant): share[trials["entrant"] == entrant]
            .groupby([key[trials["entrant"] == entrant] for key in keys])
            .mean()
            .unstack(["e_rate", "m_rate"])
            .sort_index(axis="columns")
            for entrant in self.entrants
            if (trials["entrant"] == entrant).any()
        }


def share_of_gain(
    constant: pd.Series[float], nlpd: pd.Series[float], best: pd.Series[float]
) -> pd.Series[float]:
    """Return shares of the possible gain, 0 for none, for a missing NLPD, or if no gain is possible."""
    possible = constant - best
    # no upper limit: a new entrant may beat the best known, which it does not change
    share: pd.Series[float] = ((constant - nlpd) / possible).clip(lower=0.0)
    return share.where(possible > 0.0, 0.0).fillna(0.0)


def best_column(shares: pd.DataFrame) -> tuple[float, float]:
    """Return the pair of rates (e, m) with the largest mean share over problems, [problem × pair]."""
    # the first of equals: the columns are sorted, so it has the smaller rates
    best = int(np.argmax(shares.mean().to_numpy()))
    e_rate, m_rate = (float(shares.columns.get_level_values(level)[best]) for level in (0, 1))
    return e_rate, m_rate


def over_problems(values: pd.Series[float]) -> Estimate:
    """Return the mean over problems with its 95 % bootstrap interval; missing problems are left out."""
    x = values.dropna().to_numpy(dtype=np.float64)
    if not len(x):
        return Estimate(np.nan, np.nan, np.nan)
    return Estimate(float(x.mean()), *map(float, percentile_interval(bootstrap(x, np.mean))))


def fold_interval(differences: Floats) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired differences over folds [k]; a point if k = 1."""
    k = len(differences)
    if k == 1:
        return float(differences[0]), float(differences[0])
    # of k folds, the test part over the training part is 1/(k − 1)
    return Sample(differences, 1 / (k - 1), "splits").interval
