"""Advice on methods at the end of training, from the records of near cases.

Methods are compared within an experiment, whose cells are paired, and never across experiments, whose
settings differ. Runs that have not converged or are unstable at their rates are named, but not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import pandas as pd

from svgpbench.comparison.advice_by_time import TimedField, timed_fields
from svgpbench.comparison.cases import (
    LEAST_DATA,
    Case,
    Question,
    cases_in,
    near,
    nearest,
    why_no_advice,
)
from svgpbench.experiments import Experiment, load_experiment, shipped_experiments
from svgpbench.experiments.schema import Rates
from svgpbench.json_values import json_value
from svgpbench.metrics import METRICS, loss
from svgpbench.results.best_rates import at_best_rates
from svgpbench.results.pareto import COSTS, costs_of
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import frame_of
from svgpbench.stats.differences import non_inferiority_outcome
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.means import mean_and_error
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.over_sets import data_sets
from svgpbench.stats.pairs import OneDataSet, is_learned

MOST_NAMES: Final = 3
"""Most methods that an answer names."""
HOLDS: Final = {Outcome.better, Outcome.equal, Outcome.no_worse}
"""Outcomes of a method that is no worse than another."""


def rule(factor: float) -> str:
    """Return the text on how near cases are found and when a method is recommended."""
    return (
        "A record is near if it has the same likelihood and its N (training rows), D and M are each within a "
        f"factor of {factor:g} of yours. A method is recommended on three conditions. Its experiment "
        "searched the learning rates of all methods alike, or they need none. Its runs have converged and "
        f"are stable. Of at least {LEAST_DATA} data sets it is no worse than every other such method on more "
        "than half, and worse on none (95 % interval of the paired difference). Variants and outputs of a "
        "table count as one data set"
    )


@dataclass(frozen=True)
class Unsettled:
    """A method that has not converged or is unstable on a data set, so that it is not compared."""

    method: str
    data: str
    why: str


@dataclass(frozen=True)
class Ranked:
    """A compared method, whose runs have all converged and are stable."""

    method: str
    beaten: tuple[str, ...]  # sources on which another method is better
    undecided: int  # sources without a better method but an undecided one
    recommended: bool  # see `_is_no_worse`, against each other method
    rank: float  # average over data sets, by the means
    flops: float  # median over data sets
    seconds: float
    against: tuple[Effect, ...]  # by data set; positive if the first of the field is better


@dataclass(frozen=True)
class ExperimentField:
    """Near cases of one experiment, and the methods that ran on all of them, best first."""

    experiment: str
    metric: str
    rates: Rates
    cases: tuple[Case, ...]
    counted: tuple[Case, ...]  # with two or more converged and stable methods
    methods: tuple[Ranked, ...]
    unsettled: tuple[Unsettled, ...]
    failed: tuple[str, ...]  # methods with failed cells
    tried: int  # methods that ran on all cases
    records: int
    hours: float  # of training per data set, all methods, splits and starts
    notes: tuple[str, ...]

    @property
    def sources(self) -> int:
        """Number of independent data sets (sources) that the answer is based on."""
        return len({case.source for case in self.counted})

    @property
    def recommended(self) -> list[Ranked]:
        """Recommended methods; empty if `why_not` has a reason."""
        return [] if self.why_not else [ranked for ranked in self.methods if ranked.recommended]

    @property
    def why_not(self) -> tuple[str, ...]:
        """Reasons for recommending no method, each a phrase; empty if one is recommended."""
        number = "no method" if not self.methods else "one method alone"
        too_few = f"{number} is known to have converged and to be stable"
        return why_no_advice(
            self.rates != "as printed",
            too_few if len(self.methods) < 2 else "",
            self.sources,
            "" if any(ranked.recommended for ranked in self.methods) else "worse",
        )

    @property
    def answer(self) -> str:
        """The advice in one sentence."""
        if self.why_not:
            return f"no advice: {'; '.join(self.why_not)}"
        best = self.recommended
        names = ", ".join(ranked.method for ranked in best[:MOST_NAMES])
        more = f" and {len(best) - MOST_NAMES} more" if len(best) > MOST_NAMES else ""
        extent = f"{len(self.methods)} methods on {self.sources} data sets"
        answer = f"{names}{more}: no worse than any of {extent}"
        if len(best) > 1 and self.cheapest is not None:
            answer += f"; of these {self.cheapest.method} takes the fewest FLOPs"
        return answer

    @property
    def cheapest(self) -> Ranked | None:
        """The recommended method with the fewest FLOPs, or None if none are counted."""
        counted = [ranked for ranked in self.recommended if not math.isnan(ranked.flops)]
        return min(counted, key=lambda ranked: ranked.flops, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for JSON, with numbers in full."""
        content: dict[str, Any] = json_value({
            "experiment": self.experiment,
            "metric": self.metric,
            "rates": self.rates,
            "answer": self.answer,
            "recommended": [ranked.method for ranked in self.recommended],
            "why_not": self.why_not,
            "data_sets": self.sources,
            "records": self.records,
            "cases": [
                {
                    "data": case.data, "source": case.source, "counted": case in self.counted,
                    "likelihood": case.likelihood,
                    "N": case.n, "D": case.dimensions, "M": case.inducing,
                }
                for case in self.cases
            ],
            "methods": [
                {
                    "method": ranked.method,
                    "beaten_on": ranked.beaten,
                    "undecided_on": ranked.undecided,
                    "average_rank": ranked.rank,
                    "flops": ranked.flops,
                    "seconds": ranked.seconds,
                    "first_is_better_by": [
                        {
                            "data": effect.of, "difference": effect.value,
                            "outcome": str(effect.outcome),
                            "interval": [effect.low, effect.high], "note": effect.note,
                        }
                        for effect in ranked.against
                    ],
                }
                for ranked in self.methods
            ],
            "not_compared": self.unsettled,
            "failed": self.failed,
            "hours_a_data_set": self.hours,
            "notes": self.notes,
        })  # fmt: skip
        return content


@dataclass(frozen=True)
class Advice:
    """The answer of a folder of records to a question. Without fields there is no evidence."""

    question: Question
    metric: str
    fields: tuple[ExperimentField, ...]  # at the end of training
    timed: tuple[TimedField, ...]  # by time to a test density
    nearest: tuple[Case, ...]  # if none is near
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the advice for JSON, with numbers in full."""
        return {
            "question": self.question.to_json(),
            "evidence": bool(self.fields or self.timed),
            "rule": rule(self.question.within),
            "fields": [field.to_json() for field in self.fields],
            "timed": [field.to_json() for field in self.timed],
            "nearest": [case.text for case in self.nearest],
            "notes": list(self.notes),
        }


def advise(
    results: Path,
    question: Question,
    metric: str,
    experiments: Sequence[Experiment] = (),
    shipped: Path | None = None,
) -> Advice:
    """Return the advice that a folder of records, and the shipped records beside it, give on a question.

    Args:
        results: folder of records; its subfolder `learning` has those of `svgpbench learn`.
        shipped: folder of records that count too. Of a data set in an experiment that both folders have,
            the folder with more records counts.
        question: the data of the user.
        metric: a score with a region of practical equivalence.
        experiments: those of the user, which declare if rates were searched.

    Raises:
        UserError: as `cases_in` does.
    """
    rates = marks(experiments)
    found: dict[tuple[str, str, str], Case] = {}
    notes: list[str] = []
    folders = [results] if shipped is None else [results, shipped]
    for folder in folders:
        cases, left_out = cases_in(folder)
        notes += [line for line in left_out if line not in notes]
        for case in cases:
            earlier = found.setdefault((case.experiment, case.likelihood, case.data), case)
            if len(case.records) > len(earlier.records):
                found[case.experiment, case.likelihood, case.data] = case
    cases = list(found.values())
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in near(cases, question):
        groups.setdefault((case.experiment, case.likelihood), []).append(case)
    fields = [
        field_of(question, metric, near_cases, rates.get(experiment, "as printed"))
        for (experiment, _), near_cases in groups.items()
    ]
    recorded = tuple(field for field in fields if field is not None)
    timed: tuple[TimedField, ...] = ()
    for folder in folders if metric == "nlpd" else ():
        timed = timed or timed_fields(folder / "learning", question)
    far = () if recorded or timed else tuple(nearest(cases, question))
    return Advice(question, metric, recorded, timed, far, tuple(notes))


def marks(experiments: Sequence[Experiment]) -> dict[str, Rates]:
    """Return the declared origin of the rates (`rates`) of shipped and given experiments, by name."""
    shipped = [load_experiment(name) for name in shipped_experiments()]
    return {experiment.name: experiment.rates for experiment in (*shipped, *experiments)}


def field_of(
    question: Question, metric: str, cases: Sequence[Case], rates: Rates = "as printed"
) -> ExperimentField | None:
    """Compare methods on the near cases of one experiment. Return None if no record has the metric."""
    records = [r for case in cases for r in case.records if question.accepts(r)]
    if not records:
        return None
    frame = frame_of(records)
    ended = frame[frame["status"] == "ok"]
    if ended.empty or ended[metric].isna().all():
        return None
    if rates == "searched":
        frame = at_best_rates(frame, records)
    ran = {str(data): frozenset(cells["method"]) for data, cells in frame.groupby("data")}
    field = _widest(list(ran.values()))
    complete = {data for data, methods in ran.items() if field <= methods}
    field_cases = [case for case in cases if case.data in complete]
    notes = []
    if out := [str(name) for name in frame["method"].unique() if name not in field]:
        notes.append(f"not on every near data set, and left out: {', '.join(out)}")
    if len(field_cases) < len(cases):
        apart = f"{len(cases) - len(field_cases)} of {len(cases)} near data sets"
        notes.append(f"left out, for want of some of these methods: {apart}")
    frame = frame[frame["method"].isin(field) & frame["data"].isin(complete)]
    plain_cells = frame[frame["perturbation"] == 0]
    unsettled = tuple(_unsettled(plain_cells))
    counted = _counted(plain_cells, unsettled)
    converged = field - {run.method for run in unsettled if run.data in counted}
    voting = [case for case in field_cases if case.data in counted]
    compared = frame[frame["data"].isin(counted) & frame["method"].isin(converged)]
    plain = [r for r in records if r.config.perturbation == 0 and r.config.data.title in complete]
    cells = set(compared["cell_id"])
    costs, cost_notes = costs_of(r for r in plain if r.cell_id in cells)  # counting takes long
    failed = plain_cells.loc[plain_cells["status"] != "ok", "method"].unique()
    return ExperimentField(
        field_cases[0].experiment,
        metric,
        rates,
        tuple(field_cases),
        tuple(voting),
        tuple(_ranked(compared, costs, metric, {case.data: case.source for case in voting})),
        unsettled,
        tuple(map(str, failed)),
        len(field),
        len(plain),
        _hours(records),
        (*notes, *cost_notes),
    )


def _hours(records: Sequence[Record]) -> float:
    """Return the median over data sets of the hours of training of all runs, including a search of rates."""
    spent: dict[str, float] = {}
    for record in records:
        if not record.config.is_replica:
            data = record.config.data.title
            spent[data] = spent.get(data, 0.0) + float(record.timing.get("train_s") or 0.0)
    return median(spent.values()) / 3600


def _widest(ran: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the set of methods that maximises its size times the number of data sets that all ran on.

    In a tie, the methods that ran on every data set are preferred.

    Args:
        ran: the methods that ran on each data set.
    """
    together = [frozenset.intersection(*ran), *sorted(set(ran), key=sorted)]
    return max(together, key=lambda field: len(field) * sum(field <= methods for methods in ran))


def _unsettled(plain_cells: pd.DataFrame) -> Iterator[Unsettled]:
    """Yield each method that has not, or is not known to have, converged on a data set."""
    ended = plain_cells[plain_cells["status"] == "ok"]
    for (data, method), cells in ended.groupby(["data", "method"], sort=False):
        if why := _unconverged(cells, str(method)):
            yield Unsettled(str(method), str(data), why)


def _unconverged(cells: pd.DataFrame, method: str) -> str:
    """Return why a method has not converged on a data set or is unstable there; empty if it has.

    All conditions are on the last quarter of a run. A method has not converged if the median rise of its
    bound over cells exceeds the region. It is unstable at its rate if the bound of any cell falls by more
    than the region below an earlier value. It is not known to have converged if the bound of a cell lacks
    two finite values.
    """
    region = MEASURES["elbo"].region_at(0.0, float(cells["n_bound"].mean()))
    rise = float(cells["bound_rise"].median(skipna=False))
    fall = float(cells["bound_fall"].max())
    if math.isnan(rise):
        why = "its bound lacks two finite values in the last quarter"
        return f"{method} is not known to have converged: {why}"
    if rise > region:
        return f"{method} has not converged: its bound rose by {rise:.3g} in the last quarter"
    if fall > region:
        return f"{method} is unstable at its rate: its bound fell by {fall:.3g} in the last quarter"
    return ""


def _counted(plain_cells: pd.DataFrame, unsettled: Sequence[Unsettled]) -> set[str]:
    """Return the data sets that some method learns, and on which two or more methods can be compared."""
    out = {(run.data, run.method) for run in unsettled}
    return {
        str(data)
        for data, cells in plain_cells.groupby("data")
        if sum((data, name) not in out for name in cells["method"].unique()) > 1
        and is_learned(cells)
    }


def _ranked(
    frame: pd.DataFrame, costs: pd.DataFrame, metric: str, sources: Mapping[str, str]
) -> list[Ranked]:
    """Return the compared methods of a frame, best first; `sources` maps data sets to sources."""
    field = [str(name) for name in frame["method"].unique()]
    if len(field) < 2:
        return [Ranked(name, (), 0, False, 1.0, math.nan, math.nan, ()) for name in field]
    sets = data_sets(frame, metric)
    rivals = {name: _outcomes_of_rivals(sets, name, field, sources) for name in field}
    beaten = {
        name: tuple(source for source, outcomes in by_source.items() if Outcome.better in outcomes)
        for name, by_source in rivals.items()
    }
    undecided = {
        name: sum(
            Outcome.better not in outcomes and Outcome.undecided in outcomes
            for outcomes in by_source.values()
        )
        for name, by_source in rivals.items()
    }
    ranks = _average_ranks(frame, metric, field)
    order = sorted(field, key=lambda name: (len(beaten[name]), ranks[name]))
    good = frame[(frame["perturbation"] == 0) & (frame["status"] == "ok")]
    spent = good.assign(**{cost: good["cell_id"].map(costs[cost]) for cost in COSTS})
    return [
        Ranked(
            name,
            beaten[name],
            undecided[name],
            all(_is_no_worse(sets, name, rival, sources) for rival in field if rival != name),
            ranks[name],
            _typical(spent, name, "flops"),
            _typical(spent, name, "seconds"),
            () if name == order[0] else tuple(data_set.effect(order[0], name) for data_set in sets),
        )
        for name in order
    ]


def _outcomes_of_rivals(
    sets: Sequence[OneDataSet], name: str, field: Sequence[str], sources: Mapping[str, str]
) -> dict[str, set[str]]:
    """Return the outcomes of the other methods against a method, by source."""
    outcomes: dict[str, set[str]] = {}
    for data_set in sets:
        outcomes.setdefault(sources[data_set.data], set()).update(
            data_set.effect(rival, name).outcome for rival in field if rival != name
        )
    return outcomes


def _is_no_worse(
    sets: Sequence[OneDataSet], name: str, rival: str, sources: Mapping[str, str]
) -> bool:
    """Return True if `name` is no worse than `rival` on more than half of the sources and worse on none."""
    by_source: dict[str, list[str]] = {}
    for data_set in sets:
        outcome = data_set.effect(name, rival, judge=non_inferiority_outcome).outcome
        by_source.setdefault(sources[data_set.data], []).append(outcome)
    worse = any(Outcome.worse in outcomes for outcomes in by_source.values())
    no_worse = sum(set(outcomes) <= HOLDS for outcomes in by_source.values())
    return not worse and 2 * no_worse > len(by_source)


def _average_ranks(frame: pd.DataFrame, metric: str, field: Sequence[str]) -> dict[str, float]:
    """Return the average ranks over data sets by the means. Ties share a rank, and failures are last."""
    plain_cells = frame[frame["perturbation"] == 0]
    rows = {
        data: {name: _loss(cells[cells["method"] == name], metric) for name in field}
        for data, cells in plain_cells.groupby("data", sort=False)
    }
    ranks = pd.DataFrame.from_dict(rows, orient="index").rank(axis="columns", na_option="bottom")
    return {name: float(ranks[name].mean()) for name in field}


def _loss(cells: pd.DataFrame, metric: str) -> float:
    """Return the loss of the mean over cells, NaN if a cell failed."""
    if (cells["status"] != "ok").any():
        return math.nan
    return loss(mean_and_error(cells, metric)[0], METRICS[metric].better)


def _typical(spent: pd.DataFrame, name: str, column: str) -> float:
    """Return the median over data sets of the median of a cost over cells, NaN without cells."""
    cells = spent[spent["method"] == name]
    return float(cells.groupby("data")[column].median().median()) if len(cells) else math.nan
