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
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.means import mean_and_error
from svgpbench.stats.pairs import OneDataSet, data_sets, is_learned, unconverged

MOST_NAMES: Final = 3
"""Most methods that an answer names."""
HOLDS: Final = (Outcome.better, Outcome.equal, Outcome.no_worse)


def rule(within: float) -> str:
    """Return the text on how near cases are found and when a method is recommended."""
    return (
        "a case is near where it has the likelihood, and N (rows to train on), D and M that are each within "
        f"a factor of {within:g} of those asked for. A method is recommended where the experiment searched "
        "rates for all methods alike or they need none, where its runs have converged and are stable, and "
        "where it is no worse than each other such method on more than half of at least "
        f"{LEAST_DATA} data sets and worse on none (95 % interval of the paired difference). Variants and "
        "outputs of a table count as one data set"
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
class Field:
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
        return [] if self.why_not else [one for one in self.methods if one.recommended]

    @property
    def why_not(self) -> tuple[str, ...]:
        """Reasons for recommending no method, each a phrase; empty if one is recommended."""
        return why_no_advice(
            self.rates != "as printed",
            _too_few_settled(len(self.methods)) if len(self.methods) < 2 else "",
            self.sources,
            "" if any(one.recommended for one in self.methods) else "worse",
        )

    @property
    def answer(self) -> str:
        """The advice in one sentence."""
        if self.why_not:
            return f"no advice: {'; '.join(self.why_not)}"
        best = self.recommended
        names = ", ".join(one.method for one in best[:MOST_NAMES])
        more = f" and {len(best) - MOST_NAMES} more" if len(best) > MOST_NAMES else ""
        said = f"{names}{more}: no worse than any of {len(self.methods)} methods on {self.sources} data sets"
        cheapest = self.cheapest
        if len(best) > 1 and cheapest is not None:
            said += f"; of these {cheapest.method} takes the fewest FLOPs"
        return said

    @property
    def cheapest(self) -> Ranked | None:
        """The recommended method with the fewest FLOPs, or None if none are counted."""
        counted = [one for one in self.recommended if not math.isnan(one.flops)]
        return min(counted, key=lambda one: one.flops) if counted else None

    def to_json(self) -> dict[str, Any]:
        """Return all of it, with numbers in full."""
        return {
            "experiment": self.experiment,
            "metric": self.metric,
            "rates": self.rates,
            "answer": self.answer,
            "recommended": [one.method for one in self.recommended],
            "why_not": list(self.why_not),
            "data_sets": self.sources,
            "records": self.records,
            "cases": [
                {
                    "data": c.data, "source": c.source, "counted": c in self.counted,
                    "likelihood": c.likelihood, "N": c.n, "D": c.dimensions, "M": list(c.inducing),
                }
                for c in self.cases
            ],
            "methods": [
                {
                    "method": one.method,
                    "beaten_on": list(one.beaten),
                    "undecided_on": one.undecided,
                    "average_rank": json_value(one.rank),
                    "flops": json_value(one.flops),
                    "seconds": json_value(one.seconds),
                    "first_is_better_by": [
                        {
                            "data": e.of, "difference": json_value(e.value), "outcome": str(e.outcome),
                            "interval": [json_value(e.low), json_value(e.high)], "note": e.note,
                        }
                        for e in one.against
                    ],
                }
                for one in self.methods
            ],
            "not_compared": [vars(one) for one in self.unsettled],
            "failed": list(self.failed),
            "hours_a_data_set": json_value(self.hours),
            "notes": list(self.notes),
        }  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """The answer of a folder of records to a question. Without fields there is no evidence."""

    question: Question
    metric: str
    fields: tuple[Field, ...]  # at the end of training
    timed: tuple[TimedField, ...]  # by time to a test density
    nearest: tuple[Case, ...]  # if none is near
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all of it, with numbers in full."""
        return {
            "question": self.question.to_json(),
            "evidence": bool(self.fields or self.timed),
            "rule": rule(self.question.within),
            "fields": [field.to_json() for field in self.fields],
            "timed": [field.to_json() for field in self.timed],
            "nearest": [case.text for case in self.nearest],
            "notes": list(self.notes),
        }


def advise(results: Path, question: Question, metric: str, own: Sequence[str] = ()) -> Advice:
    """Return the advice that a folder of records gives on a question.

    Args:
        results: folder of records; its subfolder `learning` has those of `svgpbench learn`.
        question: the data of the user.
        metric: a score with a region of practical equivalence.
        own: experiment files of the user, which declare if rates were searched.

    Raises:
        UserError: as `cases_in` and `load_experiment` do.
    """
    rates = marks([load_experiment(file) for file in own])
    cases, notes = cases_in(results)
    found: dict[tuple[str, str], list[Case]] = {}
    for case in near(cases, question):
        found.setdefault((case.experiment, case.likelihood), []).append(case)
    fields = [
        field_of(question, metric, several, rates.get(experiment, "as printed"))
        for (experiment, _), several in found.items()
    ]
    known = tuple(field for field in fields if field is not None)
    timed = timed_fields(results / "learning", question) if metric == "nlpd" else ()
    far = () if known or timed else tuple(nearest(cases, question))
    return Advice(question, metric, known, timed, far, tuple(notes))


def marks(own: Sequence[Experiment]) -> dict[str, Rates]:
    """Return the declared origin of the rates (`rates`) of each experiment, shipped or own, by name."""
    shipped = [load_experiment(name) for name in shipped_experiments()]
    return {experiment.name: experiment.rates for experiment in (*shipped, *own)}


def field_of(
    question: Question, metric: str, cases: Sequence[Case], rates: Rates = "as printed"
) -> Field | None:
    """Compare methods on the near cases of one experiment. Return None if no record has the metric."""
    records = [r for case in cases for r in case.records if question.takes(r)]
    if not records:
        return None
    frame = frame_of(records)
    ended = frame[frame["status"] == "ok"]
    if ended.empty or ended[metric].isna().all():
        return None
    if rates == "searched":
        frame = at_best_rates(frame, records)
    ran = {str(data): frozenset(of["method"]) for data, of in frame.groupby("data")}
    field = _widest(list(ran.values()))
    there = {data for data, here in ran.items() if field <= here}
    kept = [case for case in cases if case.data in there]
    costs, notes = costs_of(r for r in records if _is_plain(r, there))
    if out := [str(name) for name in frame["method"].unique() if name not in field]:
        notes.append(f"not on every near data set, and left out: {', '.join(out)}")
    if len(kept) < len(cases):
        apart = f"{len(cases) - len(kept)} of {len(cases)} near data sets"
        notes.append(f"left out, for want of some of these methods: {apart}")
    frame = frame[frame["method"].isin(field) & frame["data"].isin(there)]
    unsettled = tuple(_unsettled(frame))
    counted = _counted(frame, unsettled)
    settled = field - {one.method for one in unsettled if one.data in counted}
    voting = [case for case in kept if case.data in counted]
    compared = frame[frame["data"].isin(counted) & frame["method"].isin(settled)]
    plain_cells = frame[frame["perturbation"] == 0]
    failed = plain_cells.loc[plain_cells["status"] != "ok", "method"].unique()
    return Field(
        kept[0].experiment,
        metric,
        rates,
        tuple(kept),
        tuple(voting),
        tuple(_ranked(compared, costs, metric, {case.data: case.source for case in voting})),
        unsettled,
        tuple(map(str, failed)),
        len(field),
        len(costs),
        _hours(records),
        tuple(notes),
    )


def _hours(records: Sequence[Record]) -> float:
    """Return the median over data sets of the hours of training of all runs, including a search of rates."""
    spent: dict[str, float] = {}
    for record in records:
        if record.config.perturbation == 0:
            data = record.config.data.title
            spent[data] = spent.get(data, 0.0) + float(record.timing.get("train_s") or 0.0)
    return median(spent.values()) / 3600


def _is_plain(record: Record, there: set[str]) -> bool:
    return record.config.perturbation == 0 and record.config.data.title in there


def _widest(ran: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the set of methods that maximises its size times the number of data sets that all ran on.

    In a tie, the methods that ran on every data set are preferred.

    Args:
        ran: the methods that ran on each data set.
    """
    together = [frozenset.intersection(*ran), *sorted(set(ran), key=sorted)]
    return max(together, key=lambda field: len(field) * sum(field <= here for here in ran))


def _unsettled(frame: pd.DataFrame) -> Iterator[Unsettled]:
    """Yield each method that has not, or is not known to have, converged on a data set."""
    ended = frame[(frame["status"] == "ok") & (frame["perturbation"] == 0)]
    for (data, method), cells in ended.groupby(["data", "method"], sort=False):
        if said := unconverged(cells, [str(method)]):
            yield Unsettled(str(method), str(data), said)


def _counted(frame: pd.DataFrame, unsettled: Sequence[Unsettled]) -> set[str]:
    """Return the data sets that some method learns, and on which two or more methods can be compared."""
    out = {(one.data, one.method) for one in unsettled}
    plain_cells = frame[frame["perturbation"] == 0]
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
        return [_alone(name) for name in field]
    sets = data_sets(frame, metric)
    outcomes = {name: _outcomes(sets, name, field, sources) for name in field}
    beaten = {
        name: tuple(source for source, found in on.items() if Outcome.better in found)
        for name, on in outcomes.items()
    }
    undecided = {
        name: sum(
            Outcome.better not in found and Outcome.undecided in found for found in on.values()
        )
        for name, on in outcomes.items()
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
            all(_is_no_worse(sets, name, other, sources) for other in field if other != name),
            ranks[name],
            _typical(spent, name, "flops"),
            _typical(spent, name, "seconds"),
            () if name == order[0] else tuple(one.effect(order[0], name) for one in sets),
        )
        for name in order
    ]


def _alone(name: str) -> Ranked:
    return Ranked(name, (), 0, False, 1.0, math.nan, math.nan, ())


def _outcomes(
    sets: Sequence[OneDataSet], name: str, field: Sequence[str], sources: Mapping[str, str]
) -> dict[str, set[str]]:
    """Return the outcomes of the other methods against a method, by source."""
    found: dict[str, set[str]] = {}
    for one in sets:
        here = {one.effect(other, name).outcome for other in field if other != name}
        found.setdefault(sources[one.data], set()).update(here)
    return found


def _is_no_worse(
    sets: Sequence[OneDataSet], name: str, other: str, sources: Mapping[str, str]
) -> bool:
    """Return True if `name` is no worse than `other` on more than half of the sources and worse on none."""
    found: dict[str, list[str]] = {}
    for one in sets:
        effect = one.effect(name, other, no_worse=True)
        found.setdefault(sources[one.data], []).append(effect.outcome)
    worse = any(Outcome.worse in outcomes for outcomes in found.values())
    held = sum(all(one in HOLDS for one in outcomes) for outcomes in found.values())
    return not worse and 2 * held > len(found)


def _average_ranks(frame: pd.DataFrame, metric: str, field: Sequence[str]) -> dict[str, float]:
    """Return the average ranks over data sets by the means. Ties share a rank, and failures are last."""
    cells_of = frame[frame["perturbation"] == 0]
    better = METRICS[metric].better
    rows = {}
    for data, cells in cells_of.groupby("data", sort=False):
        rows[data] = {name: _loss(cells[cells["method"] == name], metric, better) for name in field}
    ranks = pd.DataFrame.from_dict(rows, orient="index").rank(axis="columns", na_option="bottom")
    return {name: float(ranks[name].mean()) for name in field}


def _loss(cells: pd.DataFrame, metric: str, better: Any) -> float:
    if (cells["status"] != "ok").any():
        return math.nan
    return loss(mean_and_error(cells, metric)[0], better)


def _typical(spent: pd.DataFrame, name: str, column: str) -> float:
    """Return the median over data sets of the median of a cost over cells, NaN without cells."""
    mine = spent[spent["method"] == name]
    return float(mine.groupby("data")[column].median().median()) if len(mine) else math.nan


def _too_few_settled(number: int) -> str:
    if number == 0:
        return "no method is known to have converged and to be stable"
    return "one method alone is known to have converged and to be stable"
