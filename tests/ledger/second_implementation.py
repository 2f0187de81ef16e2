"""The claims' predicates once more, from docs/claims.md, docs/claim-rules.md and the committed files alone.

`grade_part` grades a part of a claim that rests on records: its grade, and the outcome of each case with its
value and interval. `Rules` turns single rules to their opposite, so that a test can show that each matters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from second_cells import PAPERS, RESULTS, Floats, NotRun, Run, Settings, fulfils, runs, toml
from second_statistics import (
    RATIO,
    SHARE,
    UNCOUNTED,
    Case,
    Effect,
    Rules,
    at_moment,
    beside,
    change_of,
    interval,
    number_of,
    outcome_of,
    signed_ranks,
)

LIBRARIES = {
    "t-SVGP": ("svgpbench", "t-svgp"),
    "q-SVGP": ("svgpbench", "q-svgp"),
    "GPflow": ("gpflow", "natgrad"),
    "GPyTorch": ("gpytorch", "ngd"),
    "GPJax": ("gpjax", "whitened"),
}


class Graded(NamedTuple):
    """A part's grade and its effects by case."""

    grade: str
    effects: dict[str, Effect]


class Part(NamedTuple):
    """What a predicate reads: the part as its file states it, its artefact, and its cases."""

    of: Settings
    artefact: Settings
    rules: Rules
    cases: dict[str, Case]
    known: dict[str, list[Run]]  # by case, also those of other methods


def over_cases(
    effects: Iterable[Effect], held: Sequence[str], refuting: Sequence[str] = ("worse",)
) -> str:
    """Grade over data sets or other cases."""
    outcomes = [effect.outcome for effect in effects if effect.outcome not in UNCOUNTED]
    holds = sum(outcome in held for outcome in outcomes)
    fails = sum(outcome not in (*held, "undecided") for outcome in outcomes)
    if 2 * holds > len(outcomes) and not set(refuting) & set(outcomes):
        return "holds"
    if 2 * fails > len(outcomes):
        return "fails"
    return "mixed" if holds and fails else "open"


def combined(grades: Iterable[str], rules: Rules) -> str:
    """Combine grades as those of core parts."""
    found = set(grades)
    if "not run" in found:
        return "not run"
    if len(found) == 1:
        return found.pop()
    if found == {"holds", "direction only"}:
        return "direction only"
    mixing = {"mixed", "fails"} if rules.fails_beside_open else {"mixed"}
    return "open" if len(found - {"open"}) == 1 and not mixing & found else "mixed"


def ordering(part: Part) -> Graded:
    pairs = part.of.get("settings") or {
        f"{first} against {second}": (first, second)
        for first, second in zip(part.of["methods"], part.of["methods"][1:], strict=False)
    }
    claim = (
        "equal"
        if part.of["predicate"] == "equality"
        else "no worse"
        if part.of.get("at_least")
        else "better"
    )
    held = {"equal": ("equal",), "better": ("better",), "no worse": ("better", "no worse")}[claim]
    refuting = ("better", "worse") if claim == "equal" else ("worse",)
    effects: dict[str, Effect] = {}
    grades = []
    for setting, pair in pairs.items():
        of_pair = effects_of(part, pair, claim)
        grades.append(over_cases(of_pair.values(), held, refuting))
        effects |= {f"{setting}, {case}": effect for case, effect in of_pair.items()}
    if "settings" in part.of:
        return Graded(over_cases(effects.values(), held), effects)
    return Graded(combined(grades, part.rules), effects)


def effects_of(part: Part, pair: Sequence[str], claim: str) -> dict[str, Effect]:
    """Compare two methods on each data set, or over the data sets where these are the units."""
    metric, cases = part.of["metric"], part.cases
    effects = {
        case: cells.compared(pair, metric, claim) if cells.learned() else Effect("not learned")
        for case, cells in cases.items()
    }
    ended = [
        case
        for case, cells in cases.items()
        if not cells.failures(*(at_moment(name)[0] for name in pair))
        and effects[case].outcome not in UNCOUNTED
    ]
    units = {
        case: cases[case]
        for case in ended
        if all(map(cases[case].trained, pair)) or not part.rules.trained
    }
    none = not any(cases[case].has_interval(pair, metric) for case in ended)
    if not (part.rules.sets_as_units and none and len(units) >= 6):
        return effects
    shares = {
        case: float(cells.differences(pair, metric).mean()) / cells.unit(pair, metric)
        for case, cells in units.items()
    }
    changes = [
        float(cells.differences(pair, metric, change=True).mean()) / cells.unit(pair, metric)
        for cells in units.values()
    ]
    value, low, high = signed_ranks(np.array([*shares.values()]))
    change = value - signed_ranks(np.array([*shares.values()]) - changes)[0]
    any_case = next(iter(units.values()))
    low, high = low - any_case.widening(change), high + any_case.widening(change)
    region = any_case.share(metric)
    if claim == "no worse":
        outcome = "no worse" if low > -region else "worse" if high < 0 else "undecided"
    else:
        outcome = "better" if low > 0 else "worse" if high < 0 else ""
        outcome = outcome or outcome_of(claim, low, high, region, part.rules)
    lasting = [cells.lasting(outcome, change, pair) for cells in units.values()]
    if 2 * lasting.count("undecided") > len(lasting):  # unstable on more than half of the sets
        outcome = "undecided"
    averaged = {
        case: Effect("one of the data sets averaged over", shares.get(case)) for case in ended
    }
    return {f"{len(units)} data sets": Effect(outcome, value, low, high), **effects, **averaged}


def every_run(part: Part) -> Graded:
    wanted, pair, metric = part.of.get("wanted", "better"), part.of["methods"], part.of["metric"]
    effects = {}
    for case, cells in part.cases.items():
        if failed := cells.failures(*(at_moment(name)[0] for name in pair)):
            effects[case] = Effect(failed)
        elif cells.nothing_differs(pair, metric, wanted):
            effects[case] = Effect("the same number in every run", 0.0, 0.0, 0.0)
        else:
            difference = cells.differences(pair, metric)
            changes = cells.differences(pair, metric, change=True)
            wider = changes.map(cells.widening)
            low, high = float((difference - wider).min()), float((difference + wider).max())
            outcome = outcome_of(wanted, low, high, cells.region(pair, metric), part.rules)
            outcome = cells.lasting(outcome, float(changes.mean()), pair)
            effects[case] = Effect(outcome, float(difference.median()), low, high)
        if not cells.learned():
            effects[case] = Effect("not learned")
    refuting = {"equal": ("better", "worse"), "worse": ("better",)}.get(wanted, ("worse",))
    held = ("better", "no worse") if wanted == "no worse" else (wanted,)
    return Graded(over_cases(effects.values(), held, refuting), effects)


def more_often(part: Part) -> Graded:
    """Count the runs in which the first method is better among those that differ."""
    pair, metric = part.of["methods"], part.of["metric"]
    differences = pd.concat(
        [cells.differences(pair, metric) for cells in part.cases.values() if cells.learned()]
    )
    better, differing = int((differences > 0).sum()), int((differences != 0).sum())
    low = stats.beta.ppf(0.025, better, differing - better + 1) if better else 0.0
    high = stats.beta.ppf(0.975, better + 1, differing - better) if better < differing else 1.0
    outcome = beside(float(low) - 0.5, float(high) - 0.5, 0.0)
    outcome = outcome if outcome in ("better", "worse") else "undecided"
    grade = {"better": "direction only", "worse": "fails"}.get(outcome, "open")
    value = better / differing if differing else math.nan
    return Graded(grade, {"all runs": Effect(outcome, value, float(low), float(high))})


def suffices(part: Part) -> Graded:
    effects = {}
    for case, cells in part.cases.items():
        rungs = [
            cells.compared(pair, part.of["metric"], "no worse")
            for pair in part.of["ladder"].values()
        ]
        enough = len(rungs) - 1
        while enough and rungs[enough - 1].outcome == rungs[-1].outcome == "no worse":
            enough -= 1
        effects[case] = rungs[enough] if cells.learned() else Effect("not learned")
    return Graded(over_cases(effects.values(), ("no worse", "better")), effects)


def number(part: Part) -> Graded:
    method, metric, printed = part.of["method"], part.of["metric"], part.of["printed"]
    ((case, cells),) = part.cases.items()
    median = cells.any_unstable([method])
    ordered = sorted(cells.plain[method].items())
    keys = pd.MultiIndex.from_tuples([key for key, _ in ordered])
    numbers = [number_of(run, metric, "", median, part.rules) for _, run in ordered]
    units, overlap, enough = cells.units(pd.Series(numbers, keys), metric)
    if not enough:
        return Graded("open", {case: Effect("", float(np.mean(numbers)))})
    value, low, high = interval(units, overlap)
    change = float(np.mean([change_of(run, metric, "") for _, run in ordered]))
    low, high = low - cells.widening(change), high + cells.widening(change)
    wider = part.of.get("spread", 0.0) + cells.region([method], metric)
    agrees = low - wider <= printed <= high + wider
    if agrees and high - low > part.of["gap"]:
        return Graded("open", {case: Effect("too wide", value, low, high)})
    outcome = "as printed" if agrees else "not as printed"
    return Graded("holds" if agrees else "fails", {case: Effect(outcome, value, low, high)})


def at_tolerances(part: Part, grade_at: Callable[[float], Graded | None]) -> Graded:
    """Grade a part at each tolerance; of each case the numbers of the middle one that speaks are shown."""
    speaking = [graded for graded in map(grade_at, part.rules.tolerances) if graded]
    if not speaking:
        return Graded("open", {"every data set": Effect("undecided")})
    effects = {}
    for case in dict.fromkeys(case for graded in speaking for case in graded.effects):
        said = [graded.effects[case] for graded in speaking if case in graded.effects]
        middle = said[(len(said) - 1) // 2]
        turns = len({effect.outcome for effect in said}) > 1
        effects[case] = middle._replace(outcome="turns with the tolerance") if turns else middle
    return Graded(combined((graded.grade for graded in speaking), part.rules), effects)


def both_times(part: Part, case: str, tau: float) -> tuple[Floats, Floats, pd.MultiIndex]:
    """Return T of two methods in the runs of which at least one has converged, and these runs."""
    methods, cells = part.of["methods"], part.cases[case]
    first, second = (cells.times(name, methods, tau, part.known[case]) for name in methods)
    keys = pd.MultiIndex.from_tuples(sorted(cells.plain[methods[0]]))
    says = ~(np.isinf(first) & np.isinf(second))
    if not part.rules.censored_says_nothing:
        first, second = (np.where(says, times, 1.0) for times in (first, second))
        return first, second, keys
    return first[says], second[says], keys[says]


def sooner(part: Part) -> Graded:
    claimed, faster = part.of.get("ratio", RATIO), part.of.get("faster", True)

    def seen(case: str, tau: float) -> tuple[float, float, float] | None:
        """Return the middle, the least and the most of T₂/T₁, or its interval over starts."""
        first, second, keys = both_times(part, case, tau)
        if not len(first):
            return None
        ends = [
            np.array([part.cases[case].plain[name][key].trace["iteration"][-1] for key in keys])
            for name in part.of["methods"]
        ]
        logs = pd.Series(np.log(np.minimum(second, ends[1]) / np.minimum(first, ends[0])), keys)
        starts = np.array(logs.groupby(level=1).mean(), float)
        by_starts = part.rules.starts_as_units and not part.of.get("every_run")
        if by_starts and len(starts) >= 5:
            value, low, high = map(math.exp, interval(starts))
            return value, low, high
        ratios = second / first
        return lower_median(ratios), float(ratios.min()), float(ratios.max())

    def grade_at(tau: float) -> Graded | None:
        found = {case: seen(case, tau) for case in part.cases}
        grades: list[tuple[str, dict[str, Effect]]] = []
        for ratio in (part.rules.scaled(claimed), part.rules.ratio):
            effects: dict[str, Effect] = {}
            for case, ends in found.items():
                if ends is None:
                    continue
                value, low, high = ends
                outcome = "undecided"
                if not math.isnan(value):
                    outcome = outcome_of(
                        "better" if faster else "equal",
                        log_of(low),
                        log_of(high),
                        math.log(ratio),
                        part.rules,
                    )
                effects[case] = Effect(outcome, value, low, high)
            held, refuting = (("better",), ("worse",)) if faster else (("equal",), ())
            grades.append((over_cases(effects.values(), held, refuting), effects))
        grade, effects = grades[0]
        if faster and claimed > RATIO and grade != "holds" and grades[1][0] == "holds":
            grade = "direction only"
        return Graded(grade, effects) if effects else None

    return at_tolerances(part, grade_at)


def log_of(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def lower_median(values: Floats) -> float:
    """Return the lower of two middle values: an infinite time has no mean with another."""
    return float(np.quantile(values, 0.5, method="lower"))


def in_every_run(values: Mapping[str, Floats], low: float, high: float) -> Graded:
    """Grade numbers of runs between two ends: all of them, some, or none."""
    effects = {}
    for case, of_case in values.items():
        inside = (of_case >= low) & (of_case <= high)
        outcome = "inside" if inside.all() else "some inside" if inside.any() else "outside"
        effects[case] = Effect(outcome, lower_median(of_case), of_case.min(), of_case.max())
        if np.isnan(of_case).any():
            effects[case] = Effect("undecided")
    said = {effect.outcome for effect in effects.values()}
    if "undecided" in said:
        return Graded("open", effects)
    grades = {"inside": "holds", "outside": "fails", "some inside": "mixed"}
    return Graded(grades[said.pop()] if len(said) == 1 else "mixed", effects)


def converges(part: Part) -> Graded:
    method, compared = part.of["method"], [part.of["method"], *part.of.get("beside", [])]
    scale = part.rules.scale
    ends = scale * part.of.get("at_least", 0.0), scale * part.of.get("at_most", math.inf)

    def grade_at(tau: float) -> Graded:
        times = {
            case: cells.times(method, compared, tau, part.known[case])
            for case, cells in part.cases.items()
        }
        return in_every_run(times, *ends)

    return at_tolerances(part, grade_at)


def drifts(part: Part) -> Graded:
    method, compared = part.of["method"], [part.of["method"], *part.of.get("beside", [])]

    def moved(run: Run, time: float) -> float:
        after = run.trace["iteration"] >= time
        names = [x for x in ("variance", "lengthscale_mean", "noise_variance") if x in run.trace]
        logs = [np.log(run.trace[name][after]) for name in names]
        return max(float(np.ptp(log)) for log in logs) if after.any() else math.nan

    def grade_at(tau: float) -> Graded:
        ranges = {}
        for case, cells in part.cases.items():
            times = cells.times(method, compared, tau, part.known[case])
            ordered = [run for _, run in sorted(cells.plain[method].items())]
            ranges[case] = np.array(
                [moved(run, at) for run, at in zip(ordered, times, strict=True)]
            )
        return in_every_run(ranges, part.rules.scale * part.of["at_least"], math.inf)

    return at_tolerances(part, grade_at)


def drives(part: Part) -> Graded:
    names, factor = part.of["factors"], part.of["factor"]

    def grade_at(tau: float) -> Graded | None:
        rows, logs = [], []
        for case, cells in part.cases.items():
            first, second = (next(iter(cells.plain[name].values())) for name in part.of["methods"])
            levels = first.config["data"]["factors"]
            for a, b in zip(*both_times(part, case, tau)[:2], strict=True):
                rows.append([levels[name] for name in names])
                logs.append(
                    math.log(min(b, second.end) / min(a, first.end))
                )  # censored: its budget
        columns = [np.log10(x) if (x > 0).all() else x for x in np.array(rows).T]
        design, y = np.column_stack([np.ones(len(logs)), *columns]), np.array(logs)
        free = len(y) - design.shape[1]
        if free < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
            return Graded("open", {factor: Effect("undecided")})
        slopes = np.linalg.lstsq(design, y)[0]
        noise, at = np.sum((y - design @ slopes) ** 2) / free, 1 + names.index(factor)
        error = math.sqrt(noise * np.linalg.inv(design.T @ design)[at, at])
        half, slope = float(stats.t.ppf(0.975, free)) * error, float(slopes[at])
        outcome = {"better": "drives", "worse": "drives", "equal": "leaves alone"}.get(
            beside(slope - half, slope + half, math.log(part.rules.ratio)), "undecided"
        )
        wanted = "drives" if part.of.get("drives", True) else "leaves alone"
        grade = "open" if outcome == "undecided" else "holds" if outcome == wanted else "fails"
        return Graded(grade, {factor: Effect(outcome, slope, slope - half, slope + half)})

    return at_tolerances(part, grade_at)


def leads(part: Part) -> Graded:
    field, method, metric = part.of["field"], part.of["method"], part.of["metric"]
    table = pd.DataFrame(
        [
            [
                np.mean(
                    [
                        number_of(r, metric, "", False, part.rules)
                        for r in cells.plain[name].values()
                    ]
                )
                for name in field
            ]
            for _, cells in sorted(part.cases.items())
            if cells.learned()
        ],
        columns=field,
    )
    if len(table) < 5:
        return Graded("open", {method: Effect("undecided")})
    losses = table.round(12).rank(axis=1) if part.of["statistic"] == "rank" else table
    centre = np.median if part.of["statistic"] == "median" else np.mean
    drawn = np.random.default_rng(0).integers(len(table), size=(10_000, len(table)))
    resampled, effects = centre(losses.to_numpy()[drawn], axis=1), {}
    own = field.index(method)
    for at, other in enumerate(field):
        if other != method:
            low, high = np.quantile(resampled[:, at] - resampled[:, own], [0.025, 0.975])
            gain = float(centre(losses[other]) - centre(losses[method]))
            effects[other] = Effect(beside(low, high, 0.0), gain, float(low), float(high))
    outcomes = {effect.outcome for effect in effects.values()}
    grade = "holds" if outcomes == {"better"} else "fails" if "worse" in outcomes else "open"
    return Graded(grade, effects)


def spread(part: Part) -> Graded:
    first, *others = part.of["methods"]
    effects, any_case = {}, next(iter(part.cases.values()))

    def deviation(name: str, key: tuple[int, int]) -> float:
        values = [
            number_of(cells.plain[name][key], part.of["metric"], "", False, part.rules)
            for cells in part.cases.values()
        ]
        return float(np.std(values, ddof=1))

    for other in others:
        keys = sorted(any_case.plain[first])
        logs = [math.log(deviation(other, key) / deviation(first, key)) for key in keys]
        units, overlap, enough = any_case.units(
            pd.Series(logs, pd.MultiIndex.from_tuples(keys)), part.of["metric"]
        )
        effects[other] = Effect("undecided")
        if enough:
            value, low, high = interval(units, overlap)
            outcome = beside(low, high, math.log(part.rules.ratio))
            effects[other] = Effect(outcome, math.exp(value), math.exp(low), math.exp(high))
    return Graded(over_cases(effects.values(), ("better",)), effects)


def apart(
    first: tuple[float, ...], second: tuple[float, ...], same: bool, touching: bool = False
) -> Effect:
    """Compare two limits by their brackets, in decades; brackets that touch may be decided."""
    low, high = first[0] - second[1], first[1] - second[0]
    outcome = "equal" if same else "undecided"
    if low > 0 or (touching and low == 0 and not same):
        outcome = "better"
    elif high < 0 or (touching and high == 0 and not same):
        outcome = "worse"
    return Effect(outcome, None, low, high)


def band(part: Part) -> Graded:
    effects = {}
    for case, cells in part.cases.items():
        a, b = (band_of(cells, part.of[key]) for key in ("wider", "narrower"))
        effects[case] = apart(a, b, a == b and a[0] > 0, part.rules.touching)
    return Graded(over_cases(effects.values(), ("better",)), effects)


def band_of(cells: Case, methods: Sequence[str]) -> tuple[float, ...]:
    """Return the least and largest width of the widest run of rates that serve all runs, and its ends."""
    rates = [math.log10(float(name.split()[-1])) for name in methods]
    runs_of = [[run for _, run in sorted(cells.plain[name].items())] for name in methods]
    bounds = bounds_of(runs_of, cells.rules)
    serves = (bounds >= bounds.max(axis=0) - cells.region(methods, "elbo")).all(axis=1)
    beyond = [-math.inf, *rates, math.inf]
    ranges = [
        (rates[last] - rates[first], beyond[last + 2] - beyond[first], rates[first], rates[last])
        for first in range(len(rates))
        for last in range(first, len(rates))
        if serves[first : last + 1].all()
    ]
    return max(
        ranges, key=lambda x: x[0], default=(0.0, float(np.diff(rates).max()), math.nan, math.nan)
    )


def bounds_of(runs_of: Sequence[Sequence[Run]], rules: Rules) -> Floats:
    """Return the bounds of runs, minus infinity where one failed."""
    return np.array(
        [
            [number_of(run, "elbo", "", False, rules) if run.ok else -math.inf for run in of_method]
            for of_method in runs_of
        ]
    )


def tolerates(part: Part) -> Graded:
    share, effects = part.of.get("share", 0.1), {}
    for case, cells in part.cases.items():
        limits = []
        for methods in (part.of["first"], part.of["second"]):
            runs_of = [[run for _, run in sorted(cells.plain[name].items())] for name in methods]
            rates = [of_rate[0].config["training"][part.of["rate"]] for of_rate in runs_of]
            bounds, rules = bounds_of(runs_of, part.rules), part.rules
            firsts = np.array([[cells.first_bound(run) for run in x] for x in runs_of])
            best = bounds.max(axis=0)
            works = bounds >= best - share * rules.scale * (best - firsts)
            unrefuted = [
                rate for rate, all_work in zip(rates, works.all(axis=1), strict=True) if all_work
            ]
            known = unrefuted if works.shape[1] >= 3 else []
            limits.append(tuple(map(log_rate, (known, unrefuted))))
        same = limits[0] == limits[1] and limits[0][0] == limits[0][1]
        effects[case] = apart(limits[0], limits[1], same)
    return Graded(over_cases(effects.values(), ("better",)), effects)


def log_rate(rates: Sequence[float]) -> float:
    return math.log10(max(rates, default=0.0) or 1e-300)


def sensitive(part: Part) -> Graded:
    metric, effects = part.of["metric"], {}
    for case, cells in part.cases.items():
        ranges = []
        for methods in (part.of["more"], part.of["less"]):
            keys = sorted(cells.plain[methods[0]])
            by_rate = [
                [
                    number_of(run, metric, "", False, part.rules) if run.ok else math.inf
                    for run in (cells.plain[name][key] for key in keys)
                ]
                for name in methods
            ]
            table = np.array(by_rate)
            failed = np.isinf(table).any(axis=0)
            ranges.append(np.where(failed, math.inf, np.ptp(table, axis=0)))
        difference = ranges[0] - ranges[1]
        low, high = float(difference.min()), float(difference.max())
        finite = ranges[1][np.isfinite(ranges[1])]
        share = float(np.mean(finite)) if len(finite) else 0.0
        unit = share if metric in SHARE else cells.unit(methods, metric)
        outcome = "undecided"
        if len(difference) >= 3 and not np.isnan(difference).any():
            outcome = outcome_of("better", low, high, cells.share(metric) * unit, part.rules)
        effects[case] = Effect(outcome, float(np.median(difference)), low, high)
        if not cells.learned():
            effects[case] = Effect("not learned")
    return Graded(over_cases(effects.values(), ("better",)), effects)


def within(part: Part) -> Graded:
    values = {
        case: np.array(
            [
                number_of(run, part.of["metric"], "", False, part.rules) if run.ok else math.nan
                for _, run in sorted(cells.plain[part.of["method"]].items())
            ]
        )
        for case, cells in part.cases.items()
    }
    ends = part.of.get("at_least", -math.inf), part.of.get("at_most", math.inf)
    return in_every_run(values, *ends)


def stands(part: Part) -> Graded:
    files = sorted((RESULTS / part.artefact["evidence"]["folder"]).glob("*.jsonl"))
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    centre = {"dtype": "float64", "jitter": 1e-6, "inducing": 50, "steps": 1000}
    walks = pd.DataFrame([line for line in lines if fulfils(line, centre)])
    walks = walks[~walks["status"].isin(["error", "timeout", "crashed"])]
    effects = {}
    for problem, on_problem in walks.groupby("problem", sort=False):
        limits = []
        owns = [
            on_problem[(on_problem["library"] == library) & (on_problem["method"] == method)]
            for library, method in (LIBRARIES[name] for name in part.of["methods"])
        ]
        if any(own.empty for own in owns):  # a library without the likelihood
            continue
        for own in owns:
            seeds = own["rate"].value_counts()
            dead = set(own.loc[own["status"] != "ok", "rate"])
            unrefuted = [rate for rate in on_problem["rate"].unique() if rate not in dead]
            known = [rate for rate in unrefuted if seeds.get(rate, 0) >= 3]
            limits.append(tuple(map(log_rate, (known, unrefuted))))
        same = limits[0] == limits[1] and limits[0][0] == limits[0][1]
        effects[str(problem)] = apart(limits[0], limits[1], same)
    return Graded(over_cases(effects.values(), ("better",)), effects)


def timed(part: Part) -> Graded:
    """Grade ratios of times by round of one session: `ratio`, `as-long` and `gain`."""
    timing, predicate, effects = part.artefact["evidence"], part.of["predicate"], {}
    if not (RESULTS / timing["record"]).exists():
        raise NotRun(timing["record"])
    cells = json.loads((RESULTS / timing["record"]).read_text())["cells"]
    rounds = {(c["problem"], c["step"], f"{c['source']} {c['method']}"): c["rounds"] for c in cells}
    ratios = {}
    for problem in timing["problems"]:
        wanted = [
            [(problem, step, method) for step in timing["steps"]] for method in part.of["methods"]
        ]
        if missing := [key for keys in wanted for key in keys if not rounds.get(key)]:
            raise NotRun(f"times of {missing[0]}")
        turns = zip(*(rounds[key] for keys in wanted for key in keys), strict=False)
        clean = [
            [turn["median_s"] for turn in x] for x in turns if all(turn["clean"] for turn in x)
        ]
        first, second = np.array(clean).reshape(len(clean), 2, -1).sum(axis=2).T
        ratios[problem] = tuple(map(float, np.quantile(second / first, [0.25, 0.5, 0.75])))
        if len(clean) < 5:
            return Graded("open", {problem: Effect("")})
    if predicate == "gain":
        least, middle, most = ratios.pop(part.of["than"])
        ratios = {
            p: (low / most, value / middle, high / least)
            for p, (low, value, high) in ratios.items()
        }
    for problem, (low, value, high) in ratios.items():
        outcome = beside(math.log(low), math.log(high), math.log(part.rules.ratio))
        effects[problem] = Effect("" if predicate == "ratio" else outcome, value, low, high)
    if predicate == "gain":
        return Graded(over_cases(effects.values(), ("better",)), effects)
    if predicate == "as-long":
        words = {"equal": "holds", "undecided": "open"}
        grades = [words.get(effect.outcome, "fails") for effect in effects.values()]
        return Graded(combined(grades, part.rules), effects)
    least, most = (
        part.rules.scaled(part.of.get(key, otherwise))
        for key, otherwise in (("at_least", 1.0), ("at_most", math.inf))
    )
    refuted = part.rules.scaled(part.of.get("refuted_at", RATIO))
    grades = [
        "holds"
        if low >= least and high <= most
        else "fails"
        if low <= refuted
        else "direction only"
        for low, _, high in ratios.values()
    ]
    return Graded(combined(grades, part.rules), effects)


def reaches(part: Part) -> Graded:
    """Grade seconds of training to the quality at which the second method ends, on every seed."""
    plan = part.artefact["evidence"]["plan"]
    declared = toml(next(PAPERS.glob(f"*/plans/{plan}.toml")))
    lines = [
        json.loads(line)
        for path in sorted((RESULTS / "learning").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    effects = {}
    for problem, race in declared["problems"].items():
        runs_of: list[dict[int, Floats]] = []
        for name in part.of["methods"]:
            library, _, method = name.partition(" ") if " " in name else ("svgpbench", "", name)
            own: dict[int, Settings] = {}
            for line in lines:
                here = (line["problem"], line["library"], line["method"], line["search"])
                asked = line["seconds"] == race["seconds"] and line["seed"] in declared["seeds"]
                if here != (problem, library, method, False) or not asked:
                    continue
                if line["seed"] not in own or disturbed(line) <= disturbed(own[line["seed"]]):
                    own[line["seed"]] = line
            if not own:
                raise NotRun(f"{problem} {name}")
            runs_of.append({seed: np.array(line["looks"]) for seed, line in own.items()})
        first, second = runs_of
        column, sign = {"elbo": (2, 1.0), "nlpd": (3, -1.0)}[part.of["metric"]]
        scale = part.rules.scale
        region = {"elbo": scale * 1e-3 * TRAINING_ROWS[race["data"]["name"]], "nlpd": scale * 0.01}
        ratios = []
        for seed in sorted(first.keys() & second.keys()):
            target = sign * second[seed][-1, column] - region[part.of["metric"]]
            mine, theirs = (
                crossing(x[seed][:, 0], sign * x[seed][:, column], target) for x in runs_of
            )
            ratios.append(theirs / mine)
        low, high = math.log(min(ratios)), math.log(max(ratios))
        outcome = beside(low, high, math.log(part.rules.ratio))
        value = float(np.median(ratios))
        effects[problem] = Effect(outcome, value, min(ratios), max(ratios))
    refuting = ("worse", "equal")
    return Graded(over_cases(effects.values(), ("better",), refuting), effects)


TRAINING_ROWS = {"mnist": 60_000}


def disturbed(line: Settings) -> float:
    """Return the CPU that other processes took from a run."""
    return float(line.get("other_cores", 0.0))


def crossing(seconds: Floats, scores: Floats, target: float) -> float:
    """Return when a score is first at its target, on straight lines between looks."""
    for place, score in enumerate(scores):
        if score >= target:
            if place == 0:
                return float(seconds[0])
            share = (target - scores[place - 1]) / (score - scores[place - 1])
            return float(seconds[place - 1] + share * (seconds[place] - seconds[place - 1]))
    return math.inf


PREDICATES: dict[str, Callable[[Part], Graded]] = {
    "ordering": ordering, "equality": ordering, "every-run": every_run, "suffices": suffices,
    "more-often": more_often, "tolerates": tolerates, "sensitive": sensitive, "within": within,
    "number": number, "sooner": sooner, "converges": converges, "drifts": drifts, "drives": drives,
    "leads": leads, "spread": spread, "band": band, "stands": stands,
    "ratio": timed, "as-long": timed, "gain": timed, "reaches": reaches,
}  # fmt: skip


def named(part: Settings) -> list[str]:
    """Return the methods that a part names."""
    pairs = [*part.get("settings", {}).values(), *part.get("ladder", {}).values()]
    keys = ("methods", "field", "beside", "wider", "narrower", "first", "second", "more", "less")
    lists = [
        *pairs,
        *(part.get(key, []) for key in keys),
        [part[key] for key in ["method"] if key in part],
    ]
    return [at_moment(name)[0] for names in lists for name in names]


def grade_part(paper: str, part: Settings, rules: Rules | None = None) -> Graded:
    """Grade a part of a claim of the paper; raises `NotRun` where its records are not there."""
    entries = toml(PAPERS / paper / "paper.toml")["artefacts"]
    artefact = next(entry for entry in entries if entry["id"] == part["artefact"])
    evidence = artefact["evidence"]
    of_runs = evidence["kind"] == "experiment"
    found = runs(evidence["experiment"], evidence["preset"]) if of_runs else []
    return grade_runs(part, artefact, found, rules or Rules())


def grade_runs(part: Settings, artefact: Settings, found: Sequence[Run], rules: Rules) -> Graded:
    """Grade a part by runs at hand."""
    methods, known, cases = set(named(part)), {}, {}
    for case in dict.fromkeys(run.case for run in found):
        of_case = [run for run in found if run.case == case]
        known[case] = [run for run in of_case if not run.perturbed]
        own = (run for run in of_case if run.method in methods)
        cases[case] = Case(own, rules, part.get("smallest_effect"))
        if share := part.get("gain_share"):
            cases[case].set_region_by_gain(part["metric"], share, part["gain_of"])
    return PREDICATES[part["predicate"]](Part(part, artefact, rules, cases, known))


def parts_of_records() -> Iterator[tuple[str, str, int, Settings]]:
    """Yield (paper, claim, place, part) of each part that rests on records."""
    for path in sorted(PAPERS.glob("*/claims.toml")):
        for claim in toml(path)["claims"]:
            for place, part in enumerate(claim.get("parts", [])):
                if part["predicate"] in PREDICATES:
                    yield path.parent.name, claim["id"], place, part
