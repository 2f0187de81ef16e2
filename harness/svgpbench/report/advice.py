"""Which method the records of near cases speak for: a ranking by paired intervals, and what it rests on.

Methods are ranked within an experiment, whose cells are paired; never across experiments, whose settings
differ. On each data set a method is beaten where another of the field is better by rule 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from svgpbench.metrics import METRICS, loss
from svgpbench.papers.grades import Effect, Outcome
from svgpbench.papers.pairs import OneDataSet, data_sets
from svgpbench.report.cases import Case, Question, cases_in, near, nearest
from svgpbench.report.frames import final_frame
from svgpbench.report.means import mean_and_error
from svgpbench.report.pareto import COSTS, costs_of

MOST_NAMES: Final = 5
"""Methods that an answer names."""


def rule(within: float) -> str:
    """How cases are found and methods ranked."""
    return (
        "a case is near where it has the likelihood, and N (rows to train on), D and M that are each "
        f"within a factor of {within:g} of those asked for; methods are ranked within an experiment, as they "
        "ran there, by on how few near data sets another of the field is better (95 % interval of the paired "
        "difference beyond the region of practical equivalence), then by average rank of their means"
    )


@dataclass(frozen=True)
class Ranked:
    """A method of a field."""

    method: str
    beaten: tuple[str, ...]  # data sets on which another is better
    undecided: int  # data sets on which that is open, and none is better
    decided: bool  # whether an interval says anything of it anywhere
    rank: float  # average, by the means
    flops: float  # medians over data sets
    seconds: float
    against: tuple[Effect, ...]  # by data set; positive: the first of the field is better than this


@dataclass(frozen=True)
class Field:
    """Near cases of one experiment and the methods that ran on all of these, the best first."""

    experiment: str
    metric: str
    cases: tuple[Case, ...]
    methods: tuple[Ranked, ...]
    records: int
    notes: tuple[str, ...]

    @property
    def unbeaten(self) -> list[Ranked]:
        """Those that no other is better than on any data set."""
        return [one for one in self.methods if not one.beaten]

    @property
    def answer(self) -> str:
        """What follows, in a sentence or two."""
        title, best = METRICS[self.metric].title, self.unbeaten
        if len(self.methods) < 2:
            return "one method alone: nothing to choose from"
        if not any(one.decided for one in self.methods):
            return f"nothing is decided in {title} between the {len(self.methods)} methods"
        if not best:
            return f"every method is beaten in {title} on some data set"
        names = ", ".join(one.method for one in best[:MOST_NAMES])
        more = f" and {len(best) - MOST_NAMES} more" if len(best) > MOST_NAMES else ""
        said = f"never beaten in {title}: {names}{more}"
        if len(best) == len(self.methods):
            said = f"no method is shown to be worse than another in {title}"
        counted = [one for one in best if not math.isnan(one.flops)]
        if len(best) > 1 and counted:
            cheapest = min(counted, key=lambda one: one.flops)
            said += f"; of these {cheapest.method} takes the fewest FLOPs"
        return said

    def to_json(self) -> dict[str, Any]:
        """The whole, numbers in full."""
        return {
            "experiment": self.experiment,
            "metric": self.metric,
            "answer": self.answer,
            "records": self.records,
            "cases": [
                {
                    "data": c.data, "likelihood": c.likelihood, "N": c.n, "D": c.dimensions,
                    "M": list(c.inducing),
                }
                for c in self.cases
            ],
            "methods": [
                {
                    "method": one.method,
                    "beaten_on": list(one.beaten),
                    "undecided_on": one.undecided,
                    "average_rank": _plain(one.rank),
                    "flops": _plain(one.flops),
                    "seconds": _plain(one.seconds),
                    "first_is_better_by": [
                        {
                            "data": e.of, "difference": _plain(e.value), "outcome": str(e.outcome),
                            "interval": [_plain(e.low), _plain(e.high)], "note": e.note,
                        }
                        for e in one.against
                    ],
                }
                for one in self.methods
            ],
            "notes": list(self.notes),
        }  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """What the records of a folder say of a question; without fields there is no evidence."""

    question: Question
    fields: tuple[Field, ...]
    nearest: tuple[Case, ...]  # where none is near
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The whole, numbers in full."""
        return {
            "question": self.question.to_json(),
            "evidence": bool(self.fields),
            "rule": rule(self.question.within),
            "fields": [field.to_json() for field in self.fields],
            "nearest": [case.text for case in self.nearest],
            "notes": list(self.notes),
        }


def advise(results: Path, question: Question, metric: str) -> Advice:
    """What the records of a folder say; raises `UserError` as `cases_in` does."""
    cases, notes = cases_in(results)
    here = near(cases, question)
    found: dict[tuple[str, str], list[Case]] = {}
    for case in here:
        found.setdefault((case.experiment, case.likelihood), []).append(case)
    fields = [field_of(question, metric, several) for several in found.values()]
    known = tuple(field for field in fields if field is not None)
    far = () if known else tuple(nearest(cases, question))
    return Advice(question, known, far, tuple(notes))


def field_of(question: Question, metric: str, cases: Sequence[Case]) -> Field | None:
    """The ranking on the near cases of one experiment; None where they have nothing of the metric."""
    records = [r for case in cases for r in case.records if question.takes(r)]
    if not records:
        return None
    frame = final_frame(records)
    ended = frame[frame["status"] == "ok"]
    if ended.empty or ended[metric].isna().all():
        return None
    ran = {str(data): frozenset(of["method"]) for data, of in frame.groupby("data")}
    field = _widest(list(ran.values()))
    there = {data for data, here in ran.items() if field <= here}
    kept = [case for case in cases if case.data in there]
    out = [str(name) for name in frame["method"].unique() if name not in field]
    plain = [r for r in records if r.config.perturbation == 0 and r.config.data.title in there]
    costs, notes = costs_of(plain)
    if out:
        notes.append(f"not on every near data set, and left out: {', '.join(out)}")
    if len(kept) < len(cases):
        apart = f"{len(cases) - len(kept)} of {len(cases)} near data sets"
        notes.append(f"left out, for want of some of these methods: {apart}")
    frame = frame[frame["method"].isin(field) & frame["data"].isin(there)]
    ranked = _ranked(frame, costs, metric, [str(name) for name in frame["method"].unique()])
    return Field(kept[0].experiment, metric, tuple(kept), tuple(ranked), len(plain), tuple(notes))


def _widest(ran: Sequence[frozenset[str]]) -> frozenset[str]:
    """The methods whose number times that of their common data sets is largest; in a tie every set's.

    Args:
        ran: the methods that ran on each data set.
    """
    together = [frozenset.intersection(*ran), *sorted(set(ran), key=sorted)]
    return max(together, key=lambda field: len(field) * sum(field <= here for here in ran))


def _ranked(
    frame: pd.DataFrame, costs: pd.DataFrame, metric: str, field: Sequence[str]
) -> list[Ranked]:
    """The methods of a field, the best first."""
    if not field:
        return []
    sets = data_sets(frame, metric)
    outcomes = {name: list(_outcomes(sets, name, field)) for name in field}
    beaten = {
        name: tuple(data for data, found in on.items() if Outcome.better in found)
        for name, on in ((name, dict(outcomes[name])) for name in field)
    }
    undecided = {
        name: sum(Outcome.better not in f and Outcome.undecided in f for _, f in outcomes[name])
        for name in field
    }
    ranks = _average_ranks(frame, metric, field)
    order = sorted(field, key=lambda name: (len(beaten[name]), ranks[name]))
    plain = frame[(frame["perturbation"] == 0) & (frame["status"] == "ok")]
    spent = plain.assign(**{cost: plain["cell_id"].map(costs[cost]) for cost in COSTS})
    return [
        Ranked(
            name,
            beaten[name],
            undecided[name],
            any(found - {Outcome.undecided} for _, found in outcomes[name]),
            ranks[name],
            _typical(spent, name, "flops"),
            _typical(spent, name, "seconds"),
            () if name == order[0] else tuple(one.effect(order[0], name) for one in sets),
        )
        for name in order
    ]


def _outcomes(
    sets: Sequence[OneDataSet], name: str, field: Sequence[str]
) -> Iterator[tuple[str, set[str]]]:
    """By data set, what the others of the field are to a method."""
    for one in sets:
        yield one.data, {one.effect(other, name).outcome for other in field if other != name}


def _average_ranks(frame: pd.DataFrame, metric: str, field: Sequence[str]) -> dict[str, float]:
    """Mean ranks over data sets by the means, ties shared, a method with failed cells last."""
    plain = frame[frame["perturbation"] == 0]
    better = METRICS[metric].better
    rows = {}
    for data, cells in plain.groupby("data", sort=False):
        rows[data] = {name: _loss(cells[cells["method"] == name], metric, better) for name in field}
    ranks = pd.DataFrame.from_dict(rows, orient="index").rank(axis="columns", na_option="bottom")
    return {name: float(ranks[name].mean()) for name in field}


def _loss(cells: pd.DataFrame, metric: str, better: Any) -> float:
    if (cells["status"] != "ok").any():
        return math.nan
    return loss(mean_and_error(cells, metric)[0], better)


def _typical(spent: pd.DataFrame, name: str, column: str) -> float:
    """The median over data sets of the median over cells."""
    mine = spent[spent["method"] == name]
    return float(mine.groupby("data")[column].median().median()) if len(mine) else math.nan


def _plain(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
