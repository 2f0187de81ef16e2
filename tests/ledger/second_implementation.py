"""The claims' statistics once more, from docs/claims.md and the committed files alone, without the package.

`grade_part` re-derives one part of a claim whose artefact rests on records: the outcome of each case with its value and
interval, and the grade. `Rules` switches single rules to their opposite, so that a test can show that each of them matters.
"""

from __future__ import annotations

import functools
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "harness" / "svgpbench" / "papers"
EXPERIMENTS = ROOT / "harness" / "svgpbench" / "experiments"
RESULTS = ROOT / "results"
TOLERANCES = (0.05, 0.01, 0.001)
RATIO = 1.1
TRAINING = ("elbo", "noise_variance", "log_")  # measures of the training rows, by the start of their name
LARGER = ("elbo", "elbo_area", "elbo_early", "heldout_elbo")  # of all others smaller is better
SHARE = {"rmse": 0.01, "mae": 0.01, "nmae": 0.01, "nmse": 0.02, "noise_variance": 0.05}
WIDTH = {"nlpd": 0.01, "nlpd_area": 0.01, "error_rate": 0.005}
MACHINE = ("oom", "timeout", "crashed", "skipped", "error")


class Rules(NamedTuple):
    """Each rule as docs/claims.md has it; False is its opposite."""

    corrected: bool = True  # the variance of a mean over splits has n_test/n_train in it
    rows_covered: bool = True  # a region per row counts `training.rows`
    non_inferiority: bool = True  # "at least as good" asks about minus the region
    censored_says_nothing: bool = True  # two runs that have not converged are no tie
    larger_start: bool = True  # the way starts at the larger of the first bounds
    smoothed: bool = True  # bounds of minibatches by a running median
    unstable: bool = True  # a bound that falls in the last quarter decides nothing
    not_learned: bool = True  # a data set that no method learns does not vote


class Effect(NamedTuple):
    """One case of a part: its outcome, and the value with its interval where there is one."""

    outcome: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


class Graded(NamedTuple):
    """A part's grade and its effects by case; with tolerances by (tolerance, case)."""

    grade: str
    effects: dict[Any, Effect]


class NotRun(Exception):
    """Records of a part are not there."""


def toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def merged(*layers: dict[str, Any]) -> dict[str, Any]:
    """Nested settings, of which a later layer goes before an earlier."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


def states(stated: Any, recorded: Any) -> bool:
    """Whether a record's settings have everything that is stated."""
    if isinstance(stated, dict) and isinstance(recorded, dict):
        return all(key in recorded and states(value, recorded[key]) for key, value in stated.items())
    return bool(stated == recorded)


def leaves(stated: Any) -> int:
    return sum(map(leaves, stated.values())) if isinstance(stated, dict) else 1


@functools.cache
def records(experiment: str) -> pd.DataFrame:
    """All records of an experiment, with their configuration parsed."""
    path = RESULTS / f"{experiment}.parquet"
    if not path.exists():
        raise NotRun(experiment)
    frame = pd.read_parquet(path)
    frame["config"] = frame["config"].map(json.loads)
    frame["data"] = frame["data"].map(json.loads)
    for config in frame["config"]:
        config["data"]["factors"] = dict(config["data"].get("factors") or [])
    return frame


def problems(experiment: dict[str, Any], preset: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each case of a preset: its name in tables, and what its problem states."""
    for problem in experiment["problems"]:
        for entry in problem["data"]:
            data = {"name": entry} if isinstance(entry, str) else entry
            factors = data.get("factors", {})
            named = preset.get("data", [data["name"]])
            where = preset.get("where", {}).items()
            if not {data["name"], data["name"].split("@")[0]} & set(named):
                continue
            if all(factors[key] in levels for key, levels in where):
                label = ", ".join(f"{key}={value:g}" for key, value in factors.items())
                yield label or data["name"], {**problem, "data": data}


class Run(NamedTuple):
    """A cell: where it stands, its final metrics, and its trace."""

    case: str
    method: str
    fold: int
    seed: int
    perturbed: bool
    ok: bool
    status: str
    config: dict[str, Any]
    n_train: int
    n_test: int
    metrics: dict[str, float]
    trace: dict[str, np.ndarray]

    @property
    def end(self) -> int:
        training = self.config["training"]
        online = training["kind"] == "online"
        return int(training["online"]["iterations"] if online else training["em_iterations"])

    def region(self, rules: Rules) -> float:
        rows = self.config["training"].get("rows") if rules.rows_covered else None
        return 0.1 / 100 * min(rows or self.n_train, self.n_train)


@functools.cache
def runs(name: str, preset_name: str) -> tuple[list[Run], frozenset[tuple[Any, ...]]]:
    """The runs of a preset on its first backend, and the (case, method, fold, seed) that it asks for."""
    experiment = toml(EXPERIMENTS / f"{name}.toml")
    preset = experiment["presets"][preset_name]
    base = {key: experiment[key] for key in ("kernel", "inducing", "training", "jitter") if key in experiment}
    over = {key: preset[key] for key in ("kernel", "inducing", "training", "jitter") if key in preset}
    split = merged(experiment["split"], preset.get("split", {}))
    split |= {key: preset[key] for key in ("folds", "run_folds") if key in preset}
    folds = split.pop("run_folds", None) or list(range(split.get("folds", 1)))
    folds = [0] if split["kind"] == "fixed" else folds
    seeds = preset.get("seeds", experiment["seeds"])
    backend = preset.get("backends", experiment["backends"])[0]
    chosen = preset.get("methods", [method["label"] for method in experiment["methods"]])
    found, wanted = [], set()
    frame = records(name)
    for case, problem in problems(experiment, preset):
        entries = []
        for method in experiment["methods"]:
            own = {key: method[key] for key in ("kernel", "inducing", "training") if key in method}
            asked = {"name": method["name"], "options": method.get("options", {})}
            stated = merged(base, problem, own, over, {"split": split, "method": asked})
            title = method.get("row", method["label"]) if method["label"] in chosen else None
            entries.append((leaves(stated), stated, title))
            wanted |= {(case, title, fold, seed) for fold in folds for seed in seeds if title}
        entries.sort(key=lambda entry: -entry[0])
        for row in frame.to_dict("records"):
            config = row["config"]
            if config["data"]["name"] != problem["data"]["name"] or config["backend"]["name"] != backend:
                continue
            # options that a method does not state have their defaults, so that the fullest statement is the method's
            title = next((title for _, stated, title in entries if states(stated, config)), None)
            if title and config["split"]["fold"] in folds and config["seed"] in seeds:
                numbers = {key[7:]: value for key, value in row.items() if key.startswith("metric_")}
                trace = {key[6:]: np.asarray(value, float) for key, value in row.items()
                         if key.startswith("trace_") and value is not None and np.ndim(value) == 1}
                found.append(Run(case, title, config["split"]["fold"], config["seed"],
                                 config["perturbation"] > 0, row["status"] == "ok", row["status"], config,
                                 row["data"]["n_train"], row["data"]["n_test"], numbers, trace))  # fmt: skip
    return found, frozenset(wanted)


def bound(run: Run, rules: Rules) -> np.ndarray:
    """The bound by look; of minibatches its running median over nine looks, or over a quarter of a short trace."""
    raw = run.trace["elbo"]
    training = run.config["training"]
    if not rules.smoothed or (training["batch_size"] is None and training["kind"] != "online"):
        return raw
    quarter = len(raw) // 4
    window = 9 if len(raw) >= 36 else max(1, quarter - (quarter % 2 == 0))
    half = window // 2
    return np.array([np.median(raw[max(0, i - half) : i + half + 1]) for i in range(len(raw))])


def measure(run: Run, metric: str, at: str | None) -> float:
    """A number of a run, at its end or after some iterations or seconds."""
    look = run.trace["iteration"]
    if at:
        clock, limit = ("seconds", float(at[:-1])) if at.endswith("s") else ("iteration", float(at))
        return float(run.trace[metric][np.flatnonzero(run.trace[clock] <= limit)[-1]])
    if metric == "elbo_drop":
        late = run.trace["elbo"][look >= 10]
        return float(np.max(np.maximum.accumulate(late) - late))
    if metric.endswith("_area"):
        return float(np.mean(run.trace[metric.removesuffix("_area")]))
    if metric.endswith("_early"):
        return float(np.mean(run.trace[metric.removesuffix("_early")][look <= run.end / 3]))
    if metric.startswith("log_"):
        name = {"log_lengthscale": "lengthscale_mean", "log_noise": "noise_variance"}
        return math.log(run.metrics[name.get(metric, metric[4:])])
    return run.metrics[metric]


def over_cases(outcomes: Iterable[str], held: Sequence[str]) -> str:
    """The grade over data sets."""
    all_of = list(outcomes)
    holds = sum(outcome in held for outcome in all_of)
    fails = sum(outcome not in (*held, "undecided", "direction only") for outcome in all_of)
    partly = all_of.count("direction only")
    if holds * 2 > len(all_of) and not {"worse", "later"} & set(all_of):
        return "holds"
    if fails * 2 > len(all_of):
        return "fails"
    if (holds or partly) and fails:
        return "mixed"
    return "direction only" if (holds + partly) * 2 > len(all_of) else "open"


def combined(grades: Iterable[str]) -> str:
    """The grade of parts that vote together."""
    voted = set(grades)
    if "mixed" in voted or ("fails" in voted and voted & {"holds", "direction only"}):
        return "mixed"
    return next((grade for grade in ("fails", "open", "direction only", "holds") if grade in voted), "open")


def interval(units: np.ndarray, share: float = 0.0) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t; `share` is n_test/n_train where units are splits."""
    count, mean = len(units), float(np.mean(units))
    error = math.sqrt((1 / count + share) * np.var(units, ddof=1)) if count > 1 else math.inf
    half = float(stats.t.ppf(0.975, count - 1)) * error if count > 1 else math.inf
    return mean, mean - half, mean + half


def beside(low: float, high: float, region: float) -> str:
    """Where an interval, or the range of some runs, lies beside the region."""
    if low > region:
        return "better"
    if high < -region:
        return "worse"
    return "equal" if -region <= low and high <= region else "undecided"


class Cells:
    """The runs of one case, by method."""

    def __init__(self, case: str, those: Iterable[Run], rules: Rules) -> None:
        self.case, self.rules = case, rules
        self.plain: dict[str, dict[tuple[int, int], Run]] = {}
        self.perturbed: dict[str, dict[tuple[int, int], Run]] = {}
        for run in those:
            kind = self.perturbed if run.perturbed else self.plain
            kind.setdefault(run.method, {})[run.fold, run.seed] = run

    def failed(self, method: str) -> int:
        if any(run.status in MACHINE for run in self.plain[method].values()):
            raise NotRun(self.case)
        return sum(not run.ok for run in self.plain[method].values())

    def unsettled(self, method: str) -> bool:
        """Whether runs of the method still rise at their end in the median, or fall in any."""
        rises, falls = [], []
        for run in self.plain[method].values():
            late = bound(run, self.rules)[run.trace["iteration"] >= 0.75 * run.end]
            rises.append(late[-1] - late[0] - run.region(self.rules))
            falls.append(np.max(np.maximum.accumulate(late) - late) - run.region(self.rules))
        return bool(np.median(rises) > 0 or (self.rules.unstable and max(falls) > 0))

    def units(self, values: pd.Series, training: bool) -> tuple[np.ndarray, np.ndarray, float, bool]:
        """Units, means of the splits, n_test/n_train for the variance, and whether there are units enough."""
        folds = values.groupby(level=0).mean().to_numpy()
        if training or len(folds) == 1:
            seeds = values.groupby(level=1).mean().to_numpy()
            return seeds, folds, 0.0, len(seeds) >= 5
        some = next(iter(self.plain.values())).values()
        share = float(np.mean([run.n_test / run.n_train for run in some])) if self.rules.corrected else 0.0
        return folds, folds, share, True

    def compared(self, pair: Sequence[str], metric: str, equal_budget: bool, at_least: bool) -> Effect:
        """The first method of a pair beside the second."""
        (first, at), (second, other_at) = (split_name(name) for name in pair)
        lost = self.failed(first), self.failed(second)
        if any(lost):
            return Effect("undecided" if lost[0] == lost[1] else ("better", "worse")[lost[0] > lost[1]])
        difference, region = self.differences(self.plain, (first, at), (second, other_at), metric)
        training = metric.startswith(TRAINING)
        units, folds, share, enough = self.units(difference, training)
        value, low, high = interval(units, share)
        if at_least and self.rules.non_inferiority:
            outcome = "no worse" if low > -region else "worse" if high < -region else "undecided"
            sides = folds > -region
        else:
            outcome, sides = beside(low, high, region), folds > 0
        if training and outcome != "equal" and not (sides.all() or not sides.any()):
            outcome = "undecided"
        limit = -region if at_least and self.rules.non_inferiority else 0.0
        if first in self.perturbed and second in self.perturbed:
            moved, _ = self.differences(self.perturbed, (first, at), (second, other_at), metric)
            both = difference.loc[moved.index].mean()
            if abs(moved.mean() - both) > abs(both - limit):
                outcome = "undecided"
        ends = not (equal_budget or at or other_at)
        if not enough or (ends and (self.unsettled(first) or self.unsettled(second))):
            outcome = "undecided"
        return Effect(outcome, value, low, high)

    def differences(self, kind: dict[str, dict[tuple[int, int], Run]], first: tuple[str, str | None],
                    second: tuple[str, str | None], metric: str) -> tuple[pd.Series, float]:  # fmt: skip
        """Paired differences by (fold, seed), positive in favour of the first, and the region."""
        ours, theirs = kind[first[0]], kind[second[0]]
        both = sorted(set(ours) & set(theirs))
        sign = 1.0 if metric in LARGER else -1.0
        index = pd.MultiIndex.from_tuples(both)
        a = pd.Series([measure(ours[key], metric, first[1]) for key in both], index)
        b = pd.Series([measure(theirs[key], metric, second[1]) for key in both], index)
        if metric in SHARE:
            region = SHARE[metric] * float(b.mean())
        elif metric.startswith("elbo"):
            region = float(np.mean([ours[key].region(self.rules) for key in both]))
        else:
            region = 0.05 if metric.startswith("log_") else WIDTH[metric]
        return sign * (a - b), region

    def learned(self, methods: Sequence[str]) -> bool:
        """Whether some method predicts better than the mean of the targets."""
        def mean(method: str, metric: str) -> float:
            return float(np.mean([run.metrics.get(metric, 0.0) for run in self.plain[method].values()]))

        return not self.rules.not_learned or any(
            not (mean(method, "nmae") >= 0.95 or mean(method, "nmse") >= 0.95) for method in methods
        )

    def times(self, method: str, compared: Sequence[str], tau: float) -> dict[tuple[int, int], float]:
        """T(τ) of a method by run; infinite where the run has not converged."""
        result = {}
        for key, run in self.plain[method].items():
            firsts = [bound(self.plain[name][key], self.rules)[0] for name in compared]
            start = max(firsts) if self.rules.larger_start else min(firsts)
            same = [runs_of[key] for runs_of in self.plain.values() if key in runs_of]
            best = max(bound(other, self.rules).max() for other in same if family(other) == family(run))
            way = max(best - start, run.region(self.rules))
            below = np.flatnonzero(~(bound(run, self.rules) >= best - tau * way))
            after = below[-1] + 1 if len(below) else 0
            looks = run.trace["iteration"]
            result[key] = float(looks[after]) if after < len(looks) and run.ok else math.inf
        return result


def family(run: Run) -> tuple[Any, ...]:
    """What q a run can have: all Gaussians, 2M numbers, or a decoupled basis, and of what points."""
    name = run.config["method"]["name"]
    groups = {"q-svgp": "full", "t-svgp": "full", "sgpr": "full", "orth": "dec", "hybrid": "dec", "decoupled": "dec"}
    inducing = run.config["inducing"]
    return (groups.get(name, name), inducing["count"], inducing["gamma"], tuple(run.config["training"]["learn"]),
            run.config["method"]["options"].get("residual_variance"))  # fmt: skip


def split_name(name: str) -> tuple[str, str | None]:
    method, _, at = name.partition(" @ ")
    return method, at.replace(" ", "") or None


def cases(part: dict[str, Any], artefact: dict[str, Any], methods: Iterable[str], rules: Rules) -> dict[str, Cells]:
    """The cells of a part by case; raises where one that it needs is not there."""
    found, wanted = runs(artefact["experiment"], artefact["preset"])
    needed = {split_name(name)[0] for name in methods}
    here = {(run.case, run.method, run.fold, run.seed) for run in found if not run.perturbed}
    missing = {cell for cell in wanted if cell[1] in needed} - here
    if missing or not here:
        raise NotRun(f"{artefact['id']}: {len(missing)} cells")
    names = dict.fromkeys(run.case for run in found)
    return {case: Cells(case, (run for run in found if run.case == case), rules) for case in names}


def pairs_of(part: dict[str, Any]) -> dict[str, Sequence[str]]:
    if "settings" in part:
        return dict(part["settings"])
    methods = part["methods"]
    return {"": methods} if len(methods) == 2 else {f"{a}, {b}": (a, b) for a, b in zip(methods, methods[1:])}


def ordering(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    pairs, at_least = pairs_of(part), part.get("at_least", False)
    budget = part.get("budget") == "equal"
    everything = cases(part, artefact, [name for pair in pairs.values() for name in pair], rules)
    held = ("equal",) if part["predicate"] == "equality" else ("better", "no worse")
    effects = {}
    for case, cell in everything.items():
        for setting, pair in pairs.items():
            if cell.learned([split_name(name)[0] for name in pair]):
                effects[case, setting] = cell.compared(pair, part["metric"], budget, at_least)
    if "settings" not in part and len(pairs) > 1:
        by_pair = [[e.outcome for (_, s), e in effects.items() if s == setting] for setting in pairs]
        return Graded(combined(over_cases(outcomes, held) for outcomes in by_pair), effects)
    return Graded(over_cases((effect.outcome for effect in effects.values()), held), effects)


def every_run(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    wanted, pair = part.get("wanted", "better"), [split_name(name) for name in part["methods"]]
    effects = {}
    for case, cell in cases(part, artefact, part["methods"], rules).items():
        difference, region = cell.differences(cell.plain, pair[0], pair[1], part["metric"])
        low, high = difference.min(), difference.max()
        outcome = beside(low, high, region)
        if wanted == "no worse" and rules.non_inferiority:
            outcome = "no worse" if low > -region else "worse" if high < -region else "undecided"
        at_ends = part["metric"] == "elbo" and part.get("budget") != "equal" and not (pair[0][1] or pair[1][1])
        if at_ends and any(cell.unsettled(name) for name, _ in pair):
            outcome = "undecided"
        if cell.learned([name for name, _ in pair]):
            effects[case, ""] = Effect(outcome, float(difference.median()), low, high)
    return Graded(over_cases((e.outcome for e in effects.values()), (wanted,)), effects)


def suffices(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    ladder = part["ladder"]
    everything = cases(part, artefact, [name for pair in ladder.values() for name in pair], rules)
    last = list(ladder.values())[-1]
    effects = {(case, ""): cell.compared(last, part["metric"], part.get("budget") == "equal", True)
               for case, cell in everything.items() if cell.learned(last)}  # fmt: skip
    return Graded(over_cases((e.outcome for e in effects.values()), ("no worse",)), effects)


def number(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    effects = {}
    for case, cell in cases(part, artefact, [part["method"]], rules).items():
        plain = cell.plain[part["method"]]
        values = pd.Series([measure(run, part["metric"], None) for run in plain.values()],
                           pd.MultiIndex.from_tuples(list(plain)))  # fmt: skip
        units, _, share, _ = cell.units(values, part["metric"].startswith(TRAINING))
        value, low, high = interval(units, share)
        wider = part.get("spread", 0.0) + WIDTH[part["metric"]]
        outcome = "equal" if low - wider <= part["printed"] <= high + wider else "differs"
        if high - low > part["gap"] or (part.get("budget") != "equal" and cell.unsettled(part["method"])):
            outcome = "undecided"
        effects[case, ""] = Effect(outcome, value, low, high)
    return Graded(over_cases((e.outcome for e in effects.values()), ("equal",)), effects)


def by_tolerance(everything: dict[str, Cells], judge: Callable[[Cells, float], Effect | None],
                 held: Sequence[str]) -> Graded:  # fmt: skip
    """A part at each tolerance: cases that say nothing there are undecided."""
    effects, grades = {}, []
    for tau in TOLERANCES:
        here = {case: judge(cell, tau) for case, cell in everything.items()}
        if any(here.values()):
            said = {case: effect or Effect("undecided") for case, effect in here.items()}
            effects |= {(tau, case): effect for case, effect in said.items()}
            grades.append(over_cases((effect.outcome for effect in said.values()), held))
    return Graded(combined(grades), effects)


def sooner(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    ratio, methods = part.get("ratio", RATIO), part["methods"]

    def judge(cell: Cells, tau: float) -> Effect | None:
        ratios = speedups(cell, methods, tau)
        if not len(ratios):
            return None
        low, high = ratios.min(), ratios.max()
        if not part.get("faster", True):
            inside = (ratios >= 1 / RATIO) & (ratios <= RATIO)
            outcome = "together" if inside.all() else "undecided" if inside.any() else "apart"
        elif low > ratio:
            outcome = "sooner"
        elif low > RATIO:
            outcome = "direction only"
        else:
            outcome = "later" if high < 1 / RATIO else "as soon" if high <= RATIO else "undecided"
        return Effect(outcome, float(np.median(ratios)), low, high)

    return by_tolerance(cases(part, artefact, methods, rules), judge, ("sooner", "together"))


def speedups(cell: Cells, methods: Sequence[str], tau: float) -> np.ndarray:
    """T of the second method over T of the first, of the runs that say something."""
    first, second = (cell.times(method, methods, tau) for method in methods)
    ratios = []
    for key in first:
        if math.isfinite(first[key]) or math.isfinite(second[key]):
            ratios.append(second[key] / first[key] if math.isfinite(first[key]) else 0.0)
        elif not cell.rules.censored_says_nothing:
            ratios.append(1.0)
    return np.array(ratios)


def converges(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    compared = [part["method"], *part.get("beside", [])]

    def judge(cell: Cells, tau: float) -> Effect:
        times = np.array(list(cell.times(part["method"], compared, tau).values()))
        yes = times <= part["at_most"] if "at_most" in part else times >= part["at_least"]
        outcome = "held" if yes.all() else "undecided" if yes.any() else "failed"
        return Effect(outcome, float(np.median(times)), times.min(), times.max())

    return by_tolerance(cases(part, artefact, compared, rules), judge, ("held",))


def drifts(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    compared = [part["method"], *part.get("beside", [])]

    def judge(cell: Cells, tau: float) -> Effect | None:
        ranges = []
        for key, time in cell.times(part["method"], compared, tau).items():
            trace = cell.plain[part["method"]][key].trace
            after = trace["iteration"] >= time
            if after.any():
                logs = [np.log(trace[name][after]) for name in ("variance", "lengthscale_mean", "noise_variance")]
                ranges.append(max(np.ptp(log) for log in logs))
        if not ranges:
            return None
        yes = np.array(ranges) >= part["at_least"]
        outcome = "held" if yes.all() else "undecided" if yes.any() else "failed"
        return Effect(outcome, float(np.median(ranges)), min(ranges), max(ranges))

    return by_tolerance(cases(part, artefact, compared, rules), judge, ("held",))


def drives(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    everything, effects, grades = cases(part, artefact, part["methods"], rules), {}, []
    factors, at = part["factors"], 1 + part["factors"].index(part["factor"])
    for tau in TOLERANCES:
        rows, logs = [], []
        for cell in everything.values():
            levels = next(iter(cell.plain[part["methods"][0]].values())).config["data"]["factors"]
            for ratio in speedups(cell, part["methods"], tau):
                if 0 < ratio < math.inf:
                    rows.append([1.0, *(levels[f] if f == "minibatch" else math.log10(levels[f]) for f in factors)])
                    logs.append(math.log(ratio))
        design, y = np.array(rows), np.array(logs)
        slopes, _, rank, _ = np.linalg.lstsq(design, y)
        free = len(y) - rank
        noise = np.sum((y - design @ slopes) ** 2) / free
        half = stats.t.ppf(0.975, free) * math.sqrt(noise * np.linalg.inv(design.T @ design)[at, at])
        slope, width = float(slopes[at]), math.log(RATIO)
        inside, outside = abs(slope) + half < width, abs(slope) - half > width
        drive = part.get("drives", True)
        yes, no = (outside, inside) if drive else (inside, outside)
        outcome = "held" if yes else "failed" if no else "undecided"
        effects[tau, ""] = Effect(outcome, slope, slope - half, slope + half)
        grades.append(over_cases([outcome], ("held",)))
    return Graded(combined(grades), effects)


def leads(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    field, method = part["field"], part["method"]
    scores = []
    for cell in cases(part, artefact, field, rules).values():
        settled = part.get("budget") == "equal" or not any(map(cell.unsettled, field))
        if cell.learned(field) and settled:
            means = [np.mean([run.metrics[part["metric"]] for run in cell.plain[name].values()]) for name in field]
            scores.append(stats.rankdata(means) if part["statistic"] == "rank" else means)
    table = np.array(scores)
    if len(table) < 2:
        return Graded("open", {})
    centre = np.median if part["statistic"] == "median" else np.mean
    drawn = np.random.default_rng(0).integers(len(table), size=(10_000, len(table)))
    resampled = centre(table[drawn], axis=1)
    own, effects = field.index(method), {}
    for other, name in enumerate(field):
        if name != method:
            gains = resampled[:, other] - resampled[:, own]
            value = float(centre(table[:, other]) - centre(table[:, own]))
            low, high = np.quantile(gains, [0.025, 0.975])
            effects[name, ""] = Effect(beside(low, high, 0.0), value, float(low), float(high))
    outcomes = {effect.outcome for effect in effects.values()}
    grade = "holds" if outcomes == {"better"} else "fails" if "worse" in outcomes else "open"
    return Graded(grade, effects)


def band(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    """Widths of bands of rates as brackets, in decades."""
    effects = {}
    for case, cell in cases(part, artefact, [*part["wider"], *part["narrower"]], rules).items():
        a, b = (bracket(cell, part[key]) for key in ("wider", "narrower"))
        outcome = "better" if a[0] > b[1] else "worse" if a[1] < b[0] else "undecided"
        effects[case, ""] = Effect(outcome, a[0] - b[0], a[0] - b[1], a[1] - b[0])
    return Graded(over_cases((e.outcome for e in effects.values()), ("better",)), effects)


def bracket(cell: Cells, methods: Sequence[str]) -> tuple[float, float]:
    """Least and largest width of the widest run of neighbouring rates that serve all seeds."""
    rates = [math.log10(float(name.split()[-1])) for name in methods]
    elbo = {key: [cell.plain[m][key].metrics["elbo"] if cell.plain[m][key].ok else -math.inf for m in methods]
            for key in cell.plain[methods[0]]}  # fmt: skip
    region = next(iter(cell.plain[methods[0]].values())).region(cell.rules)
    serves = [all(row[i] >= max(row) - region for row in elbo.values()) for i in range(len(methods))]
    best = (0.0, 0.0)
    for start in range(len(methods)):
        for stop in range(start, len(methods)):
            if all(serves[start : stop + 1]):
                least = rates[stop] - rates[start]
                outer = math.inf if start == 0 or stop + 1 == len(rates) else rates[stop + 1] - rates[start - 1]
                best = max(best, (least, outer))
    return best


def stands(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    """The largest rate with which three seeds live, as a bracket, by problem."""
    named = {"t-SVGP": ("svgpbench", "t-svgp"), "q-SVGP": ("svgpbench", "q-svgp"), "GPflow": ("gpflow", "natgrad"),
             "GPyTorch": ("gpytorch", "ngd"), "GPJax": ("gpjax", "natgrad")}  # fmt: skip
    lines = [json.loads(line) for path in sorted((RESULTS / artefact["walks"]).glob("*.jsonl"))
             for line in path.read_text().splitlines()]  # fmt: skip
    centre = {"dtype": "float64", "jitter": 1e-6, "inducing": 50}
    walks = pd.DataFrame([line for line in lines if states(centre, line)])
    walks["seed"] = walks["seed"].fillna(0) if "seed" in walks else 0
    effects = {}
    for problem in walks["problem"].unique():
        limits = []
        for library, method in (named[name] for name in part["methods"]):
            own = walks[(walks["problem"] == problem) & (walks["library"] == library) & (walks["method"] == method)]
            lived = own[own["end"] == "lived"].groupby("rate")["seed"].nunique()
            lower = max(lived.index[lived >= 3], default=0.0)
            dead = own[own["end"].isin(["diverged", "not positive definite", "not finite", "raised"])]["rate"]
            limits.append((lower, min((rate for rate in dead if rate > lower), default=math.inf)))
        a, b = limits
        outcome = "better" if a[0] >= b[1] else "worse" if b[0] >= a[1] else "undecided"
        effects[problem, ""] = Effect(outcome, a[0] / b[0] if b[0] else math.nan)
    return Graded(over_cases((e.outcome for e in effects.values()), ("better",)), effects)


def timed(part: dict[str, Any], artefact: dict[str, Any], rules: Rules) -> Graded:
    """Ratios of times by round of one session: `ratio`, `as_long` and `gain`."""
    timing = artefact["timing"]
    path = RESULTS / timing["record"]
    if not path.exists():
        raise NotRun(path.name)
    recorded = {(c["problem"], c["step"], f"{c['source']} {c['method']}"): c for c in json.loads(path.read_text())["cells"]}
    quartiles = {}
    for problem in timing["problems"]:
        seconds = []
        for method in part["methods"]:
            steps = [recorded.get((problem, step, method)) for step in timing["steps"]]
            if not all(steps):
                raise NotRun(method)
            seconds.append(np.sum([[r["median_s"] for r in step["rounds"]] for step in steps if step], axis=0))
        quartiles[problem] = np.quantile(seconds[1] / seconds[0], [0.25, 0.5, 0.75])
    effects = {}
    for problem, (low, value, high) in quartiles.items():
        if part["predicate"] == "ratio":
            wide = part["at_least"]
            outcome = "better" if low >= wide else "fails" if low <= RATIO else "direction only"
        elif part["predicate"] == "as_long":
            inside = low >= 1 / RATIO and high <= RATIO
            outcome = "better" if inside else "fails" if low > RATIO or high < 1 / RATIO else "undecided"
        elif problem == part["than"]:
            continue
        else:
            base = quartiles[part["than"]]
            outcome = "better" if low > base[2] else "worse" if high < base[0] else "undecided"
        effects[problem, ""] = Effect(outcome, float(value), float(low), float(high))
    return Graded(over_cases((e.outcome for e in effects.values()), ("better",)), effects)


PREDICATES: dict[str, Callable[[dict[str, Any], dict[str, Any], Rules], Graded]] = {
    "ordering": ordering, "equality": ordering, "every-run": every_run, "suffices": suffices, "number": number,
    "sooner": sooner, "converges": converges, "drifts": drifts, "drives": drives, "leads": leads, "band": band,
    "stands": stands, "ratio": timed, "as_long": timed, "gain": timed,
}  # fmt: skip


def grade_part(paper: str, part: dict[str, Any], rules: Rules = Rules()) -> Graded:
    """Grade a part of a claim of the paper; raises `NotRun` where its records are not there."""
    artefacts = {entry["id"]: entry for entry in toml(PAPERS / paper / "paper.toml")["artefacts"]}
    return PREDICATES[part["predicate"]](part, artefacts[part["artefact"]], rules)


def core_parts(every: bool = False) -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    """(paper, claim, number of the part, part) of each core part that rests on records, or of every such part."""
    for path in sorted(PAPERS.glob("*/claims.toml")):
        for claim in toml(path)["claims"]:
            for place, part in enumerate(claim.get("parts", [])):
                if part["predicate"] in PREDICATES and (every or part.get("core")):
                    yield path.parent.name, claim["id"], place, part
