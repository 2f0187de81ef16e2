"""Units, intervals, outcomes and convergence times of a case, by docs/claims.md, without the package."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from second_cells import Floats, Run

RATIO = 1.1
TRAINING = ("elbo", "noise_variance", "log_")  # measures of the training rows begin so
LARGER = ("elbo", "elbo_area", "elbo_early", "heldout_elbo")  # of all others smaller is better
PER_ROW = ("elbo", "elbo_area", "elbo_early", "elbo_drop", "heldout_elbo")
SHARE = {"rmse": 0.01, "mae": 0.01, "nmae": 0.01, "nmse": 0.02, "noise_variance": 0.05}
WIDTH = {"nlpd": 0.01, "nlpd_area": 0.01, "bound_gap": 0.01, "error_rate": 0.005, "log": 0.05}
FAMILY = {"q-svgp": "Gaussian", "t-svgp": "Gaussian", "orth": "γ ∪ β", "hybrid": "γ ∪ β"}
THETA = {
    "variance": "variance",
    "lengthscale": "lengthscale_mean",
    "noise": "noise_variance",
}


class Rules(NamedTuple):
    """Each rule as docs/claims.md and docs/claim-rules.md have it; False is its opposite."""

    corrected: bool = True  # the variance of a mean over splits has n_test/n_train in it
    rows_covered: bool = True  # a region per row counts `training.rows`
    non_inferiority: bool = True  # "at least as good" asks about minus the region
    chaos: bool = True  # what rounding moves by more than itself is undecided
    censored_says_nothing: bool = True  # two runs that have not converged are no tie
    larger_start: bool = True  # the way starts at the larger of the first bounds
    smoothed: bool = True  # bounds of minibatches by a running median
    unstable: bool = True  # a bound that falls in the last quarter decides nothing
    not_learned: bool = True  # a data set that no method learns does not vote


class Effect(NamedTuple):
    """The outcome of one case, with a value and its interval where there are any."""

    outcome: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


def interval(units: Floats, overlap: float = 0.0) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval; `overlap` is n_test/n_train where units are splits."""
    count, mean = len(units), float(np.mean(units))
    error = math.sqrt((1 / count + overlap) * np.var(units, ddof=1))
    half = float(stats.t.ppf(0.975, count - 1)) * error
    return mean, mean - half, mean + half


def beside(low: float, high: float, region: float) -> str:
    """Say where an interval, or the range of some runs, lies beside the region."""
    if low > region:
        return "better"
    if high < -region:
        return "worse"
    return "equal" if -region <= low and high <= region else "undecided"


def not_below(low: float, high: float, region: float) -> str:
    """Say whether an interval, or the range of some runs, lies above minus the region."""
    return "no worse" if low > -region else "worse" if high < -region else "undecided"


def smoothed_bound(run: Run, rules: Rules) -> Floats:
    """Return the bound by look; of minibatches its running median over nine looks, or fewer."""
    raw = run.trace["elbo"]
    if not (rules.smoothed and run.minibatches):
        return raw
    quarter = len(raw) // 4
    half = 4 if len(raw) >= 36 else max(0, quarter - 1) // 2
    around = (raw[max(0, at - half) : at + half + 1] for at in range(len(raw)))
    return np.array([np.median(looks) for looks in around])


def covered(run: Run, rules: Rules) -> int:
    """Return the number of rows that the bound covers."""
    rows = run.config["training"].get("rows") if rules.rows_covered else None
    return int(rows or run.n_train)


def measure(run: Run, metric: str, moment: str) -> float:  # noqa: PLR0911
    """Return a number of a run, at its end or after some iterations or seconds."""
    look = run.trace["iteration"]
    if moment:
        clock = run.trace["seconds"] if moment.endswith(" s") else look
        passed = np.flatnonzero(clock <= float(moment.removesuffix(" s")))
        return float(run.trace[metric][passed[-1]])
    name, _, of = metric.rpartition("_")
    if metric == "elbo_drop":
        return max(0.0, float(np.max(-np.diff(run.trace["elbo"])[9:])))
    if of == "area":
        return float(np.mean(run.trace[name]))
    if of == "early":
        return float(np.mean(run.trace[name][look <= run.end / 3]))
    if metric.startswith("log_"):
        return math.log(run.metrics[THETA[of]])
    if metric == "bound_gap":  # a datum
        return run.metrics["elbo"] / covered(run, Rules()) + run.metrics["nlpd"]
    return run.metrics[metric]


def at_moment(name: str) -> tuple[str, str]:
    method, _, moment = name.partition(" @ ")
    return method, moment


def family(run: Run) -> tuple[Any, ...]:
    """Return what runs share that have one best bound."""
    method, inducing = run.config["method"], run.config["inducing"]
    name = "γ ∪ β" if method["options"].get("union") else FAMILY.get(method["name"], method["name"])
    learned, width = (
        run.config["training"]["learn"],
        method["options"].get("residual_variance", "prior"),
    )
    return name, inducing["count"], inducing["gamma"], tuple(learned), width


class Case:
    """The runs of one data set or cell of a grid, by method and by (split, seed)."""

    def __init__(self, those: Iterable[Run], rules: Rules) -> None:
        self.rules = rules
        self.plain: dict[str, dict[tuple[int, int], Run]] = {}
        self.perturbed: dict[str, dict[tuple[int, int], Run]] = {}
        for run in those:
            kind = self.perturbed if run.perturbed else self.plain
            kind.setdefault(run.method, {})[run.key] = run

    def failures(self, first: str, second: str) -> str:
        """Return the outcome where cells failed, else nothing."""
        mine, other = (sum(not run.ok for run in self.plain[m].values()) for m in (first, second))
        if not mine and not other:
            return ""
        return "undecided" if mine == other else "worse" if mine > other else "better"

    def region(self, methods: Sequence[str], metric: str) -> float:
        """Return half the width of practical equivalence; a share is one of the last method's mean."""
        if metric in PER_ROW:
            those = [run for name in methods for run in self.plain[at_moment(name)[0]].values()]
            return 0.1 / 100 * float(np.mean([covered(run, self.rules) for run in those]))
        if metric in SHARE:
            last, moment = at_moment(methods[-1])
            values = [measure(run, metric, moment) for run in self.plain[last].values()]
            return SHARE[metric] * abs(float(np.mean(values)))
        return WIDTH["log" if metric.startswith("log_") else metric]

    def differences(
        self, pair: Sequence[str], metric: str, perturbed: bool = False
    ) -> pd.Series[float]:
        """Return paired differences by (split, seed), positive in favour of the first method."""
        kind = self.perturbed if perturbed else self.plain
        (first, at), (second, other_at) = map(at_moment, pair)
        keys = sorted(set(kind.get(first, {})) & set(kind.get(second, {})))
        sign = 1.0 if metric in LARGER else -1.0
        values = [
            sign
            * (measure(kind[first][k], metric, at) - measure(kind[second][k], metric, other_at))
            for k in keys
        ]
        return pd.Series(values, pd.MultiIndex.from_tuples(keys or [(0, 0)])[: len(keys)], float)

    def units(self, values: pd.Series[float], metric: str) -> tuple[Floats, float, bool]:
        """Return the units, n_test/n_train where they are splits, and whether they are enough."""
        splits, seeds = (np.array(values.groupby(level=at).mean(), float) for at in (0, 1))
        if metric.startswith(TRAINING) or len(splits) == 1:
            return seeds, 0.0, len(seeds) >= 5
        those = [run for of_method in self.plain.values() for run in of_method.values()]
        shares = [run.n_test / run.n_train for run in those]
        return splits, float(np.mean(shares)) if self.rules.corrected else 0.0, True

    def compared(
        self, pair: Sequence[str], metric: str, equal_budget: bool, at_least: bool
    ) -> Effect:
        """Compare the first method of a pair with the second."""
        if failed := self.failures(*(at_moment(name)[0] for name in pair)):
            return Effect(failed)
        difference, region = self.differences(pair, metric), self.region(pair, metric)
        units, overlap, enough = self.units(difference, metric)
        if not enough or not (equal_budget or self.settled(pair)):
            return Effect("undecided", float(difference.mean()))
        value, low, high = interval(units, overlap)
        no_worse = at_least and self.rules.non_inferiority
        outcome = (not_below if no_worse else beside)(low, high, region)
        limit = -region if no_worse else 0.0
        splits = difference.groupby(level=0).mean()
        agree = (splits > limit).all() or (splits < limit).all()
        if metric.startswith(TRAINING) and outcome != "equal" and not agree:
            outcome = "undecided"
        moved = self.differences(pair, metric, perturbed=True)
        if self.rules.chaos and len(moved):
            ran_both_ways = difference.loc[moved.index].mean()
            if abs(moved.mean() - ran_both_ways) > abs(ran_both_ways - limit):
                outcome = "undecided"
        return Effect(outcome, value, low, high)

    def settled(self, methods: Sequence[str]) -> bool:
        """Whether the bound of methods neither rises in the median nor falls in any run at the end."""
        return not any(self._moves(name) for name in methods if not at_moment(name)[1])

    def _moves(self, method: str) -> bool:
        rises, falls, region = [], [], self.region([method], "elbo")
        for run in self.plain[method].values():
            look = run.trace["iteration"]
            late = smoothed_bound(run, self.rules)[look >= 0.75 * look[-1]]
            if len(late) < 2:
                return True
            rises.append(late[-1] - late[0])
            falls.append(np.max(np.maximum.accumulate(late) - late))
        return bool(np.median(rises) > region or (self.rules.unstable and max(falls) > region))

    def learned(self) -> bool:
        """Whether a method of the part predicts better than the mean of the targets."""
        everything = [run for of_method in self.plain.values() for run in of_method.values()]
        share = (
            "nmae"
            if any(np.isfinite(r.metrics.get("nmae", math.nan)) for r in everything)
            else "nmse"
        )
        hopeless = all(
            pd.Series([run.metrics.get(share, math.nan) for run in of_method.values()]).mean()
            >= 0.95
            for of_method in self.plain.values()
        )
        return not (self.rules.not_learned and hopeless)

    def times(
        self, method: str, compared: Sequence[str], tau: float, known: Sequence[Run]
    ) -> Floats:
        """Return T(τ) of a method by run: infinite where it has not converged, NaN of a failed run."""
        result = []
        for key, run in sorted(self.plain[method].items()):
            firsts = [smoothed_bound(self.plain[name][key], self.rules)[0] for name in compared]
            start = max(firsts) if self.rules.larger_start else min(firsts)
            alike = (x for x in known if x.key == key and family(x) == family(run))
            best = max(smoothed_bound(x, self.rules).max() for x in alike)
            way = max(best - start, 0.1 / 100 * covered(run, self.rules))
            near = smoothed_bound(run, self.rules) >= best - tau * way
            stays = np.logical_and.accumulate(near[::-1])[::-1]
            looks = run.trace["iteration"][stays]
            result.append((looks[0] if len(looks) else math.inf) if run.ok else math.nan)
        return np.array(result)
