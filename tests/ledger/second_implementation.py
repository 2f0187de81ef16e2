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
    Case,
    Effect,
    Rules,
    at_moment,
    beside,
    interval,
    not_below,
)

TOLERANCES = (0.05, 0.01, 0.001)
LIBRARIES = {
    "t-SVGP": ("svgpbench", "t-svgp"),
    "q-SVGP": ("svgpbench", "q-svgp"),
    "GPflow": ("gpflow", "natgrad"),
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

    @property
    def equal_budget(self) -> bool:
        return bool(self.of.get("budget") == "equal")


def over_cases(
    effects: Iterable[Effect], held: Sequence[str], refuting: Sequence[str] = ("worse",)
) -> str:
    """Grade over data sets or other cases."""
    outcomes = [effect.outcome for effect in effects if effect.outcome != "not learned"]
    holds = sum(outcome in held for outcome in outcomes)
    fails = sum(outcome not in (*held, "undecided") for outcome in outcomes)
    if 2 * holds > len(outcomes) and not set(refuting) & set(outcomes):
        return "holds"
    if 2 * fails > len(outcomes):
        return "fails"
    return "mixed" if holds and fails else "open"


def combined(grades: Iterable[str]) -> str:
    """Combine grades as those of core parts."""
    found = set(grades)
    if len(found) == 1:
        return found.pop()
    if found == {"holds", "direction only"}:
        return "direction only"
    return "open" if len(found - {"open"}) == 1 and "mixed" not in found else "mixed"


def ordering(part: Part) -> Graded:
    pairs = part.of.get("settings") or {
        f"{first} against {second}": (first, second)
        for first, second in zip(part.of["methods"], part.of["methods"][1:], strict=False)
    }
    at_least, equality = part.of.get("at_least", False), part.of["predicate"] == "equality"
    held = ("equal",) if equality else ("better", "no worse")
    refuting = ("better", "worse") if equality else ("worse",)
    effects: dict[str, Effect] = {}
    grades = []
    for setting, pair in pairs.items():
        of_pair = {
            case: cells.compared(pair, part.of["metric"], part.equal_budget, at_least)
            if cells.learned()
            else Effect("not learned")
            for case, cells in part.cases.items()
        }
        grades.append(over_cases(of_pair.values(), held, refuting))
        effects |= {f"{setting}, {case}": effect for case, effect in of_pair.items()}
    if "settings" in part.of:
        return Graded(over_cases(effects.values(), held), effects)
    return Graded(combined(grades), effects)


def every_run(part: Part) -> Graded:
    wanted, pair, metric = part.of.get("wanted", "better"), part.of["methods"], part.of["metric"]
    ends = not part.equal_budget
    no_worse = wanted == "no worse" and part.rules.non_inferiority
    effects = {}
    for case, cells in part.cases.items():
        difference = cells.differences(pair, metric)
        low, high = float(difference.min()), float(difference.max())
        outcome = (not_below if no_worse else beside)(low, high, cells.region(pair, metric))
        effects[case] = Effect(outcome, float(difference.median()), low, high)
        if ends and not cells.settled(pair):
            effects[case] = Effect("undecided", float(difference.mean()))
        if failed := cells.failures(*(at_moment(name)[0] for name in pair)):
            effects[case] = Effect(failed)
        if not cells.learned():
            effects[case] = Effect("not learned")
    refuting = {"equal": ("better", "worse"), "worse": ("better",)}.get(wanted, ("worse",))
    held = ("better", "no worse") if wanted == "no worse" else (wanted,)
    return Graded(over_cases(effects.values(), held, refuting), effects)


def suffices(part: Part) -> Graded:
    effects = {}
    for case, cells in part.cases.items():
        rungs = [
            cells.compared(pair, part.of["metric"], part.equal_budget, True)
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
    values = -cells.differences([method, method], metric)
    numbers = [run.metrics[metric] for _, run in sorted(cells.plain[method].items())]
    units, overlap, enough = cells.units(values + numbers, metric)
    if not enough or not (part.equal_budget or cells.settled([method])):
        return Graded("open", {case: Effect("", float(np.mean(numbers)))})
    value, low, high = interval(units, overlap)
    wider = part.of.get("spread", 0.0) + cells.region([method], metric)
    agrees = low - wider <= printed <= high + wider
    if agrees and high - low > part.of["gap"]:
        return Graded("open", {case: Effect("too wide", value, low, high)})
    outcome = "as printed" if agrees else "not as printed"
    return Graded("holds" if agrees else "fails", {case: Effect(outcome, value, low, high)})


def at_tolerances(grade_at: Callable[[float], Graded | None]) -> Graded:
    """Grade a part at each tolerance; of each case the numbers of the middle one that speaks are shown."""
    speaking = [graded for graded in map(grade_at, TOLERANCES) if graded]
    if not speaking:
        return Graded("open", {"every data set": Effect("undecided")})
    effects = {}
    for case in dict.fromkeys(case for graded in speaking for case in graded.effects):
        said = [graded.effects[case] for graded in speaking if case in graded.effects]
        middle = said[(len(said) - 1) // 2]
        turns = len({effect.outcome for effect in said}) > 1
        effects[case] = middle._replace(outcome="turns with the tolerance") if turns else middle
    return Graded(combined(graded.grade for graded in speaking), effects)


def spoken(part: Part, case: str, tau: float) -> tuple[Floats, Floats]:
    """Return T of two methods in the runs of which at least one has converged."""
    methods, cells = part.of["methods"], part.cases[case]
    first, second = (cells.times(name, methods, tau, part.known[case]) for name in methods)
    says = ~(np.isinf(first) & np.isinf(second))
    if not part.rules.censored_says_nothing:
        first, second = (np.where(says, times, 1.0) for times in (first, second))
        return first, second
    return first[says], second[says]


def sooner(part: Part) -> Graded:
    claimed, faster = part.of.get("ratio", RATIO), part.of.get("faster", True)

    def outcome_of(ratios: Floats, ratio: float) -> str:
        if np.isnan(ratios).any():
            return "undecided"
        low, high = ratios.min(), ratios.max()
        if low > ratio:
            return "better"
        if high < 1 / ratio:
            return "worse"
        return "equal" if low >= 1 / ratio and high <= ratio else "undecided"

    def grade_at(tau: float) -> Graded | None:
        times = {case: spoken(part, case, tau) for case in part.cases}
        ratios = {case: second / first for case, (first, second) in times.items() if len(first)}
        grades, effects = [], {}
        for ratio in (claimed, RATIO):
            effects = {
                case: Effect(outcome_of(r, ratio), lower_median(r), r.min(), r.max())
                for case, r in ratios.items()
            }
            held, refuting = (("better",), ("worse",)) if faster else (("equal",), ())
            grades.append((over_cases(effects.values(), held, refuting), effects))
        grade, effects = grades[0]
        if faster and claimed > RATIO and grade != "holds" and grades[1][0] == "holds":
            grade = "direction only"
        return Graded(grade, effects) if effects else None

    return at_tolerances(grade_at)


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
    ends = part.of.get("at_least", 0.0), part.of.get("at_most", math.inf)

    def grade_at(tau: float) -> Graded:
        times = {
            case: cells.times(method, compared, tau, part.known[case])
            for case, cells in part.cases.items()
        }
        return in_every_run(times, *ends)

    return at_tolerances(grade_at)


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
        return in_every_run(ranges, part.of["at_least"], math.inf)

    return at_tolerances(grade_at)


def drives(part: Part) -> Graded:
    names, factor = part.of["factors"], part.of["factor"]

    def grade_at(tau: float) -> Graded | None:
        rows, logs = [], []
        for case, cells in part.cases.items():
            first, second = (next(iter(cells.plain[name].values())) for name in part.of["methods"])
            levels = first.config["data"]["factors"]
            for a, b in zip(*spoken(part, case, tau), strict=True):
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
            beside(slope - half, slope + half, math.log(RATIO)), "undecided"
        )
        wanted = "drives" if part.of.get("drives", True) else "leaves alone"
        grade = "open" if outcome == "undecided" else "holds" if outcome == wanted else "fails"
        return Graded(grade, {factor: Effect(outcome, slope, slope - half, slope + half)})

    return at_tolerances(grade_at)


def leads(part: Part) -> Graded:
    field, method, metric = part.of["field"], part.of["method"], part.of["metric"]
    if not (part.equal_budget or all(cells.settled(field) for cells in part.cases.values())):
        return Graded("open", {method: Effect("undecided")})
    table = pd.DataFrame(
        [
            [np.mean([run.metrics[metric] for run in cells.plain[name].values()]) for name in field]
            for _, cells in sorted(part.cases.items())
            if cells.learned()
        ],
        columns=field,
    )
    if len(table) < 5:
        return Graded("open", {method: Effect("undecided")})
    losses = table.rank(axis=1) if part.of["statistic"] == "rank" else table
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
            cells.plain[name][key].metrics[part.of["metric"]] for cells in part.cases.values()
        ]
        return float(np.std(values, ddof=1))

    for other in others:
        keys = sorted(any_case.plain[first])
        logs = [math.log(deviation(other, key) / deviation(first, key)) for key in keys]
        units, overlap, enough = any_case.units(
            pd.Series(logs, pd.MultiIndex.from_tuples(keys)), part.of["metric"]
        )
        settled = part.equal_budget or all(c.settled([first, other]) for c in part.cases.values())
        effects[other] = Effect("undecided")
        if enough and settled:
            value, low, high = interval(units, overlap)
            outcome = beside(low, high, math.log(RATIO))
            effects[other] = Effect(outcome, math.exp(value), math.exp(low), math.exp(high))
    return Graded(over_cases(effects.values(), ("better",)), effects)


def apart(first: tuple[float, ...], second: tuple[float, ...], same: bool) -> Effect:
    """Compare two limits by their brackets, in decades."""
    low, high = first[0] - second[1], first[1] - second[0]
    outcome = "better" if low > 0 else "worse" if high < 0 else "equal" if same else "undecided"
    return Effect(outcome, None, low, high)


def band(part: Part) -> Graded:
    effects = {}
    for case, cells in part.cases.items():
        a, b = (band_of(cells, part.of[key]) for key in ("wider", "narrower"))
        effects[case] = apart(a, b, a == b and a[0] > 0)
    return Graded(over_cases(effects.values(), ("better",)), effects)


def band_of(cells: Case, methods: Sequence[str]) -> tuple[float, ...]:
    """Return the least and largest width of the widest run of rates that serve all runs, and its ends."""
    rates = [math.log10(float(name.split()[-1])) for name in methods]
    runs_of = [[run for _, run in sorted(cells.plain[name].items())] for name in methods]
    bounds = np.array([[r.metrics["elbo"] if r.ok else -math.inf for r in x] for x in runs_of])
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


def stands(part: Part) -> Graded:
    files = sorted((RESULTS / part.artefact["walks"]).glob("*.jsonl"))
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    centre = {"dtype": "float64", "jitter": 1e-6, "inducing": 50, "steps": 1000}
    walks = pd.DataFrame([line for line in lines if fulfils(line, centre)])
    walks = walks[~walks["end"].isin(["error", "time-out", "killed"])]
    effects = {}
    for problem, on_problem in walks.groupby("problem", sort=False):
        limits = []
        for library, method in (LIBRARIES[name] for name in part.of["methods"]):
            own = on_problem[(on_problem["library"] == library) & (on_problem["method"] == method)]
            seeds = own["rate"].value_counts()
            dead = set(own.loc[own["end"] != "lived", "rate"])
            unrefuted = [rate for rate in on_problem["rate"].unique() if rate not in dead]
            known = [rate for rate in unrefuted if seeds.get(rate, 0) >= 3]
            limits.append(
                tuple(math.log10(max(x, default=0.0) or 1e-300) for x in (known, unrefuted))
            )
        same = limits[0] == limits[1] and limits[0][0] == limits[0][1]
        effects[str(problem)] = apart(limits[0], limits[1], same)
    return Graded(over_cases(effects.values(), ("better",)), effects)


def timed(part: Part) -> Graded:
    """Grade ratios of times by round of one session: `ratio`, `as_long` and `gain`."""
    timing, predicate, effects = part.artefact["timing"], part.of["predicate"], {}
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
        outcome = beside(math.log(low), math.log(high), math.log(RATIO))
        effects[problem] = Effect("" if predicate == "ratio" else outcome, value, low, high)
    if predicate == "gain":
        return Graded(over_cases(effects.values(), ("better",)), effects)
    if predicate == "as_long":
        words = {"equal": "holds", "undecided": "open"}
        return Graded(combined(words.get(e.outcome, "fails") for e in effects.values()), effects)
    most = part.of.get("at_most", math.inf)
    grades = (
        "holds"
        if low >= part.of["at_least"] and high <= most
        else "fails"
        if low <= RATIO
        else "direction only"
        for low, _, high in ratios.values()
    )
    return Graded(combined(grades), effects)


def reaches(part: Part) -> Graded:
    """Grade seconds of training to the quality at which the second method ends, on every seed."""
    plan = part.artefact["learning"]
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
        region = {"elbo": 1e-3 * TRAINING_ROWS[race["data"]["name"]], "nlpd": 0.01}
        ratios = []
        for seed in sorted(first.keys() & second.keys()):
            target = sign * second[seed][-1, column] - region[part.of["metric"]]
            mine, theirs = (
                crossing(x[seed][:, 0], sign * x[seed][:, column], target) for x in runs_of
            )
            ratios.append(theirs / mine)
        low, high = math.log(min(ratios)), math.log(max(ratios))
        outcome = beside(low, high, math.log(RATIO))
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
    "number": number, "sooner": sooner, "converges": converges, "drifts": drifts, "drives": drives,
    "leads": leads, "spread": spread, "band": band, "stands": stands,
    "ratio": timed, "as_long": timed, "gain": timed, "reaches": reaches,
}  # fmt: skip


def named(part: Settings) -> list[str]:
    """Return the methods that a part names."""
    pairs = [*part.get("settings", {}).values(), *part.get("ladder", {}).values()]
    keys = ("methods", "field", "beside", "wider", "narrower")
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
    found = runs(artefact["experiment"], artefact["preset"]) if "experiment" in artefact else []
    return grade_runs(part, artefact, found, rules or Rules())


def grade_runs(part: Settings, artefact: Settings, found: Sequence[Run], rules: Rules) -> Graded:
    """Grade a part by runs at hand."""
    methods, known, cases = set(named(part)), {}, {}
    for case in dict.fromkeys(run.case for run in found):
        of_case = [run for run in found if run.case == case]
        known[case] = [run for run in of_case if not run.perturbed]
        cases[case] = Case((run for run in of_case if run.method in methods), rules)
    return PREDICATES[part["predicate"]](Part(part, artefact, rules, cases, known))


def core_parts() -> Iterator[tuple[str, str, int, Settings]]:
    """Yield (paper, claim, place, part) of each core part that rests on records."""
    for path in sorted(PAPERS.glob("*/claims.toml")):
        for claim in toml(path)["claims"]:
            for place, part in enumerate(claim.get("parts", [])):
                if part.get("core") and part["predicate"] in PREDICATES:
                    yield path.parent.name, claim["id"], place, part
