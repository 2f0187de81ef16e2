"""Units, intervals, outcomes and convergence times of a case, by docs/claims.md, without the package."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats
from second_cells import Floats, Run, majority

RATIO = 1.1
TRAINING = ("elbo", "noise_variance", "log_")  # measures of the training rows begin so
THIRDS = {"early": (0, 1), "midway": (1, 2), "late": (2, 3)}
SHARE = {
    "rmse": 0.01,
    "mae": 0.01,
    "nmae": 0.01,
    "crps": 0.01,
    "nmse": 0.02,
    "noise_variance": 0.05,
}
WIDTH = {"nlpd": 0.01, "coverage": 0.01, "bound_gap": 0.01, "error_rate": 0.005, "log": 0.05}
FAMILY = {"q-svgp": "Gaussian", "t-svgp": "Gaussian", "orth": "γ ∪ β", "hybrid": "γ ∪ β"}
THETA = {
    "log_variance": "variance",
    "log_lengthscale": "lengthscale_mean",
    "log_noise": "noise_variance",
}
UNCOUNTED = ("not learned", "the same number in every run", "one of the data sets averaged over")


class Rules(NamedTuple):
    """Each rule as docs/claims.md and docs/claim-rules.md have it; False is its opposite."""

    corrected: bool = True  # the variance of a mean over splits has n_test/n_train in it
    rows_covered: bool = True  # a region per row counts `training.rows`
    last_quarter: bool = True  # the number of a run on minibatches is a mean over its last quarter
    unstable: bool = True  # beside an unstable method the numbers are medians of the last quarter
    no_better: bool = True  # "better" fails below the region
    smallest_effect: bool = True  # a declared smallest effect takes the region's place
    non_inferiority: bool = True  # "at least as good" asks about minus the region
    chaos: bool = True  # what rounding moves by more than itself is undecided
    not_learned: bool = True  # a data set that no method learns does not vote
    majority: bool = True  # a classification set is learned where the most frequent class is beaten
    no_difference: bool = True  # where all numbers are the same, none can be better
    sets_as_units: bool = True  # without an interval of runs, data sets make one
    trained: bool = True  # a set on which one of two methods did not train is no unit
    censored_says_nothing: bool = True  # two runs that have not converged are no tie
    larger_start: bool = True  # the way starts at the larger of the first bounds
    raw_start: bool = True  # first bounds are not smoothed
    finite_start: bool = True  # the first bound is the first finite one
    smoothed: bool = True  # bounds of minibatches by a running median
    starts_as_units: bool = True  # `sooner` by an interval over five starts or more
    touching: bool = True  # brackets of bands that touch are decided
    fails_beside_open: bool = True  # `mixed`
    widened: bool = True  # twice the steps widen an interval by three times the change
    favoured: bool = True  # a decision that favours an unstable method does not last
    twice_the_steps: bool = False  # intervals are widened by three times the last quarter's change
    scale: float = 1.0  # of regions and thresholds
    tolerances: tuple[float, ...] = (0.05, 0.01, 0.001)

    @property
    def ratio(self) -> float:
        return self.scaled(RATIO)

    def scaled(self, ratio: float) -> float:
        """Return a threshold of ratios, scaled."""
        return float(ratio**self.scale)


VARIANTS: dict[str, Rules] = {
    "threshold halved": Rules(scale=0.5),
    "threshold doubled": Rules(scale=2.0),
    "tolerance 5 % alone": Rules(tolerances=(0.05,)),
    "tolerance 1 % alone": Rules(tolerances=(0.01,)),
    "tolerance 0.1 % alone": Rules(tolerances=(0.001,)),
    "the way from the lower start": Rules(larger_start=False),
    "without the chaos rule": Rules(chaos=False),
    "twice the steps": Rules(twice_the_steps=True),
}
"""Steadiness and lasts: the rules under which a claim is graded again."""


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


def signed_ranks(units: Floats) -> tuple[float, float, float]:
    """Return the Hodges–Lehmann estimate and the interval of Wilcoxon's signed ranks."""
    count = len(units)
    pairs = np.sort([(units[i] + units[j]) / 2 for i in range(count) for j in range(i, count)])
    ways = np.ones(1)  # of each sum of ranks, over all signs
    for rank in range(1, count + 1):
        without, having = np.append(ways, np.zeros(rank)), np.append(np.zeros(rank), ways)
        ways = without + having
    below = np.cumsum(ways) / 2**count
    end = int(np.sum(below <= 0.025))  # the place of an end among the averages, from either side
    return float(np.median(pairs)), float(pairs[end - 1]), float(pairs[-end])


def beside(low: float, high: float, region: float) -> str:
    """Say where an interval, or the range of some runs, lies beside the region."""
    if low > region:
        return "better"
    if high < -region:
        return "worse"
    return "equal" if -region <= low and high <= region else "undecided"


def against(low: float, high: float, region: float, rules: Rules) -> str:
    """Say the same for a claim of better, which also fails below the region."""
    outcome = beside(low, high, region)
    below = rules.no_better and outcome == "undecided" and high < region
    return "no better" if below else outcome


def not_below(low: float, high: float, region: float) -> str:
    """Say whether an interval, or the range of some runs, lies above minus the region."""
    return "no worse" if low > -region else "worse" if high < -region else "undecided"


def outcome_of(claim: str, low: float, high: float, region: float, rules: Rules) -> str:
    """Say what an interval says of a claim of better, no worse, equal or worse."""
    if claim == "no worse" and rules.non_inferiority:
        return not_below(low, high, region)
    return against(low, high, region, rules) if claim == "better" else beside(low, high, region)


def smoothed_bound(run: Run, rules: Rules) -> Floats:
    """Return the bound by look; of minibatches its running median over nine looks, or fewer."""
    raw = run.trace["elbo"]
    return running_median(raw.tobytes()) if rules.smoothed and run.minibatches else raw


@functools.lru_cache(maxsize=4096)
def running_median(raw_bytes: bytes) -> Floats:
    raw = np.frombuffer(raw_bytes)
    quarter = len(raw) // 4
    half = 4 if len(raw) >= 36 else max(0, quarter - 1) // 2
    around = (raw[max(0, at - half) : at + half + 1] for at in range(len(raw)))
    return np.array([np.median(looks) for looks in around])


def covered(run: Run, rules: Rules) -> int:
    """Return the number of rows that the bound covers."""
    rows = run.config["training"].get("rows") if rules.rows_covered else None
    return int(rows or run.n_train)


def at_moment(name: str) -> tuple[str, str]:
    method, _, moment = name.partition(" @ ")
    return method, moment


def of_whole_trace(metric: str) -> bool:
    return metric == "elbo_drop" or metric.rpartition("_")[2] in ("area", *THIRDS)


def per_row(metric: str) -> bool:
    return metric.startswith("elbo") or metric == "heldout_elbo"


def larger_is_better(metric: str) -> bool:
    return per_row(metric) and metric != "elbo_drop"


def score(number: float, metric: str) -> float:
    """Return a number that is larger for a better one."""
    if metric == "coverage":  # of the central 95 %
        return -abs(number - 0.95)
    return number if larger_is_better(metric) else -number


def series(run: Run, metric: str) -> Floats | None:
    """Return a metric by evaluation; None where the trace does not have it."""
    if metric in THETA:
        theta = run.trace.get(THETA[metric])
        return None if theta is None else np.log(theta)
    if metric == "bound_gap":  # a datum
        return run.trace["elbo"] / covered(run, Rules()) + run.trace["nlpd"]
    return run.trace.get(metric)


def quarter(run: Run, first: float, last: float) -> npt.NDArray[np.bool_]:
    """Return which evaluations lie between two shares of the last evaluated iteration."""
    look = run.trace["iteration"] / run.trace["iteration"][-1]
    return np.asarray((look >= first) & (look < last))


def number_of(  # noqa: PLR0911
    run: Run, metric: str, moment: str, median: bool, rules: Rules
) -> float:
    """Return the number of a run, or its number after some iterations or seconds."""
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
    if of in THIRDS:
        first, last = (run.end * third / 3 for third in THIRDS[of])
        return float(np.mean(run.trace[name][(look > first) & (look <= last)]))
    by_look = series(run, metric)
    if by_look is not None and median:
        return float(np.median(by_look[quarter(run, 0.75, math.inf)]))
    if by_look is not None and run.minibatches and rules.last_quarter:
        return float(np.mean(by_look[quarter(run, 0.75, math.inf)]))
    if metric in THETA:
        return math.log(run.metrics[THETA[metric]])
    if metric == "bound_gap":
        return run.metrics["elbo"] / covered(run, Rules()) + run.metrics["nlpd"]
    return run.metrics[metric]


def change_of(run: Run, metric: str, moment: str) -> float:
    """Return the change of a number over the last quarter; NaN where it is not recorded."""
    if moment or of_whole_trace(metric):
        return 0.0  # more steps do not move it
    by_look = series(run, metric)
    before = quarter(run, 0.5, 0.75)
    until = run.trace["iteration"] <= 0.75 * run.trace["iteration"][-1]
    if by_look is None or not (before.any() if run.minibatches else until.any()):
        return math.nan
    if run.minibatches:
        return float(np.mean(by_look[quarter(run, 0.75, math.inf)]) - np.mean(by_look[before]))
    return float(by_look[-1] - by_look[until][-1])


def fall_of(run: Run) -> float:
    """Return by how much the bound falls in the last quarter."""
    late = run.trace["elbo"][quarter(run, 0.75, math.inf)]
    if run.minibatches:
        return float(np.mean(run.trace["elbo"][quarter(run, 0.5, 0.75)]) - np.mean(late))
    return float(np.max(np.maximum.accumulate(late) - late))


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

    def __init__(self, those: Iterable[Run], rules: Rules, smallest: float | None = None) -> None:
        self.rules = rules
        self.smallest = smallest if rules.smallest_effect else None
        self.gain: float | None = None
        self.plain: dict[str, dict[tuple[int, int], Run]] = {}
        self.perturbed: dict[str, dict[tuple[int, int], Run]] = {}
        self.falls: dict[str, float] = {}  # of the median run
        for run in those:
            kind = self.perturbed if run.perturbed else self.plain
            kind.setdefault(run.method, {})[run.key] = run

    def failures(self, first: str, second: str) -> str:
        """Return the outcome where cells failed, else nothing."""
        mine, other = (sum(not run.ok for run in self.plain[m].values()) for m in (first, second))
        if not mine and not other:
            return ""
        return "undecided" if mine == other else "worse" if mine > other else "better"

    def unit(self, pair: Sequence[str], metric: str) -> float:
        """Return one in the shared unit: the second method's value, the rows of a bound, or 1."""
        if self.gain is not None:
            return self.gain
        if per_row(metric):
            those = [run for name in pair for run in self.plain[at_moment(name)[0]].values()]
            return float(np.mean([covered(run, self.rules) for run in those]))
        if metric in SHARE:
            last, moment = at_moment(pair[-1])
            median = self.any_unstable(pair)
            values = [
                number_of(run, metric, moment, median, self.rules)
                for run in self.plain[last].values()
            ]
            return abs(float(np.mean(values)))
        return 1.0

    def share(self, metric: str) -> float:
        """Return half the width of practical equivalence in the shared unit."""
        if self.smallest is not None:
            return self.rules.scale * self.smallest
        if per_row(metric):
            return self.rules.scale * 0.1 / 100
        base = metric.removesuffix("_area")
        return self.rules.scale * (
            SHARE.get(metric) or WIDTH["log" if base.startswith("log_") else base]
        )

    def set_region_by_gain(self, metric: str, share: float, method: str) -> None:
        """Make the region a share of a method's gain over N(0, 1), the unit that sets share."""
        constant = {"rmse": 1.0, "nlpd": 0.5 * math.log(2.0 * math.pi) + 0.5}[metric]
        runs = self.plain[method].values()
        numbers = [number_of(run, metric, "", False, self.rules) for run in runs]
        self.smallest, self.gain = share, abs(constant - float(np.mean(numbers)))

    def region(self, pair: Sequence[str], metric: str) -> float:
        """Return half the width of practical equivalence; a share is one of the last method's mean."""
        return self.share(metric) * self.unit(pair, metric)

    def unstable(self, name: str) -> bool:
        """Return whether the bound of a method falls at the end of its median run."""
        method, moment = at_moment(name)
        those = list(self.plain[method].values())
        if moment or not all(run.ok for run in those):
            return False
        if method not in self.falls:
            self.falls[method] = float(np.median([fall_of(run) for run in those]))
        rows = float(np.mean([covered(run, self.rules) for run in those]))
        return self.falls[method] > self.rules.scale * 0.1 / 100 * rows

    def any_unstable(self, pair: Sequence[str]) -> bool:
        return self.rules.unstable and any(map(self.unstable, pair))

    def differences(
        self, pair: Sequence[str], metric: str, perturbed: bool = False, change: bool = False
    ) -> pd.Series[float]:
        """Return paired differences by (split, seed), positive in favour of the first method."""
        kind = self.perturbed if perturbed else self.plain
        (first, at), (second, other_at) = map(at_moment, pair)
        keys = sorted(set(kind.get(first, {})) & set(kind.get(second, {})))
        median = self.any_unstable(pair) and not change

        def one(method: str, key: tuple[int, int], moment: str) -> float:
            run = kind[method][key]
            number = number_of(run, metric, moment, median, self.rules)
            if change:
                return score(number, metric) - score(
                    number - change_of(run, metric, moment), metric
                )
            return score(number, metric)

        values = [one(first, key, at) - one(second, key, other_at) for key in keys]
        return pd.Series(values, pd.MultiIndex.from_tuples(keys or [(0, 0)])[: len(keys)], float)

    def units(self, values: pd.Series[float], metric: str) -> tuple[Floats, float, bool]:
        """Return the units, n_test/n_train where they are splits, and whether they are enough."""
        splits, seeds = (np.array(values.groupby(level=at).mean(), float) for at in (0, 1))
        if metric.startswith(TRAINING) or len(splits) == 1:
            return seeds, 0.0, len(seeds) >= 5
        those = [run for of_method in self.plain.values() for run in of_method.values()]
        shares = [run.n_test / run.n_train for run in those]
        return splits, float(np.mean(shares)) if self.rules.corrected else 0.0, True

    def has_interval(self, pair: Sequence[str], metric: str) -> bool:
        return self.units(self.differences(pair, metric), metric)[2]

    def lasting(self, outcome: str, change: float, pair: Sequence[str]) -> str:
        """Return the outcome that twice the steps would leave."""
        if not self.rules.twice_the_steps:
            return outcome
        favoured = {"better": 0, "no worse": 0, "worse": 1, "no better": 1}.get(outcome)
        if math.isnan(change):
            return "undecided"
        if self.rules.favoured and favoured is not None and self.unstable(pair[favoured]):
            return "undecided"
        return outcome

    def widening(self, change: float) -> float:
        wider = self.rules.twice_the_steps and self.rules.widened
        return float(3 * abs(np.nan_to_num(change))) if wider else 0.0

    def nothing_differs(self, pair: Sequence[str], metric: str, claim: str) -> bool:
        same = bool((self.differences(pair, metric) == 0).all())
        return self.rules.no_difference and claim == "better" and same

    def compared(self, pair: Sequence[str], metric: str, claim: str) -> Effect:
        """Compare the first method of a pair with the second."""
        if failed := self.failures(*(at_moment(name)[0] for name in pair)):
            return Effect(failed)
        difference, region = self.differences(pair, metric), self.region(pair, metric)
        if self.nothing_differs(pair, metric, claim):
            return Effect("the same number in every run", 0.0, 0.0, 0.0)
        units, overlap, enough = self.units(difference, metric)
        if not enough:
            return Effect("undecided", float(difference.mean()))
        value, low, high = interval(units, overlap)
        change = float(self.differences(pair, metric, change=True).mean())
        low, high = low - self.widening(change), high + self.widening(change)
        outcome = outcome_of(claim, low, high, region, self.rules)
        limit = -region if claim == "no worse" and self.rules.non_inferiority else 0.0
        splits = difference.groupby(level=0).mean()
        bound = region if outcome == "no better" else limit
        agree = (splits > bound).all() or (splits < bound).all()
        signed = outcome in ("better", "worse", "no better", "no worse")
        if metric.startswith(TRAINING) and signed and not agree:
            outcome = "undecided"
        moved = self.differences(pair, metric, perturbed=True)
        if self.rules.chaos and len(moved):
            ran_both_ways = difference.loc[moved.index].mean()
            if abs(moved.mean() - ran_both_ways) > abs(ran_both_ways - limit):
                outcome = "undecided"
        return Effect(self.lasting(outcome, change, pair), value, low, high)

    def trained(self, method: str) -> bool:
        """Return whether a method predicts better than the mean or the most frequent class."""
        those = list(self.plain[at_moment(method)[0]].values())
        of_all = [run for of_method in self.plain.values() for run in of_method.values()]
        recorded = [
            name
            for name in ("nmae", "nmse", "error_rate")
            if any(np.isfinite(run.metrics.get(name, math.nan)) for run in of_all)
        ]
        if not recorded or not self.rules.not_learned:
            return True
        share, error = recorded[0], 1.0
        if share == "error_rate":
            most_frequent = majority(those[0].config["data"]["name"])
            if most_frequent is None or not self.rules.majority:
                return True
            error = 1.0 - most_frequent
        values = [
            number_of(run, share, "", False, self.rules) if share in run.metrics else math.nan
            for run in those
        ]
        return not pd.Series(values).mean() >= 0.95 * error

    def learned(self) -> bool:
        """Return whether a method of the part trained."""
        return any(map(self.trained, self.plain))

    def times(
        self, method: str, compared: Sequence[str], tau: float, known: Sequence[Run]
    ) -> Floats:
        """Return T(τ) of a method by run: infinite where it has not converged, NaN of a failed run."""
        result = []
        for key, run in sorted(self.plain[method].items()):
            firsts = [self.first_bound(self.plain[name][key]) for name in compared]
            start = max(firsts) if self.rules.larger_start else min(firsts)
            alike = (x for x in known if x.key == key and family(x) == family(run))
            best = max(np.nanmax(smoothed_bound(x, self.rules)) for x in alike)
            region = self.rules.scale * 0.1 / 100 * covered(run, self.rules)
            near = smoothed_bound(run, self.rules) >= best - tau * max(best - start, region)
            stays = np.logical_and.accumulate(near[::-1])[::-1]
            looks = run.trace["iteration"][stays]
            result.append((looks[0] if len(looks) else math.inf) if run.ok else math.nan)
        return np.array(result)

    def first_bound(self, run: Run) -> float:
        bounds = run.trace["elbo"] if self.rules.raw_start else smoothed_bound(run, self.rules)
        return float(bounds[np.isfinite(bounds)][0] if self.rules.finite_start else bounds[0])
