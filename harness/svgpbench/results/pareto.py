"""Pareto front of accuracy against the cost of training, for each data set.

A method is worth its cost if no cheaper method is as good. Source: Ober et al. 2024, Recommendations for
Baselines and Benchmarking Approximate Gaussian Processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import pandas as pd

from svgpbench.errors import unknown
from svgpbench.metrics import METRICS, metric
from svgpbench.results.records import Record
from svgpbench.results.training_cost import flops_of_training
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.means import mean_and_error
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.pairs import PairedRuns
from svgpbench_datasets.errors import join_names

Cost: TypeAlias = Literal["flops", "seconds"]
FrontPlace: TypeAlias = Literal["front", "open", "dominated", "failed", "uncounted"]

COSTS: Final[dict[Cost, str]] = {"flops": "FLOPs of training", "seconds": "seconds of training"}
SIMILAR_COST: Final = 1.1
"""Costs within this ratio do not differ in practice."""

MOST_NAMES: Final = 2
"""Most rivals that a table entry names. CSV and JSON have all of them."""

RULE: Final = (
    f"a rival of a method costs at most {SIMILAR_COST} times as much, in the median over cells; a method is "
    "dominated by a rival that is better, and by one that is equal and costs less than "
    f"1/{SIMILAR_COST} as much (by the 95 % interval of the paired difference); of the others it is on "
    "the front where it is undecided against no rival, else open"
)


@dataclass(frozen=True)
class Point:
    """A method on a data set: its score, the cost of its training and its place on the front."""

    data: str
    method: str
    mean: float
    error: float
    cost: float
    place: FrontPlace
    rivals: tuple[
        Effect, ...
    ] = ()  # those that make it dominated or open; positive in their favour

    @property
    def text(self) -> str:
        """The place and the rivals, such as `front` or `dominated: A, B`. At most two rivals are named."""
        names = join_names([effect.of for effect in self.rivals], MOST_NAMES)
        return f"{self.place}: {names}" if names else self.place


def known_score(name: str) -> str:
    """Return the name of a score. Raises `UserError` if it has no region of practical equivalence."""
    if name not in (judged := MEASURES.keys() & METRICS.keys()):
        metric(name)
        raise unknown("metric with a region of practical equivalence", name, judged)
    return name


def costs_of(records: Iterable[Record]) -> tuple[pd.DataFrame, list[str]]:
    """Return the costs of training by `cell_id` (columns `flops` and `seconds`), and notes on the FLOPs."""
    rows: dict[str, dict[str, float]] = {}
    notes: dict[str, set[str]] = {}
    for record in records:
        counted = flops_of_training(record)
        seconds = record.timing.get("train_s")
        rows[record.cell_id] = {
            "flops": counted.flops,
            "seconds": math.nan if seconds is None else float(seconds),
        }
        if counted.note:
            notes.setdefault(counted.note, set()).add(record.config.method.title)
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(COSTS), dtype=float)
    return frame, [f"{note} ({', '.join(sorted(names))})" for note, names in notes.items()]


def points(frame: pd.DataFrame, costs: pd.DataFrame, score: str, cost: Cost) -> list[Point]:
    """Return a point for each method and data set, in their order.

    Args:
        frame: one row per cell of one backend, with perturbed replicas.
        costs: the costs of the cells that are no replicas, by `cell_id`.
        score: a metric with a region of practical equivalence.
        cost: the column of `costs`.
    """
    return [
        point
        for data, cells in frame.groupby("data", sort=False)
        for point in _points_of_data_set(str(data), cells, costs[cost], score)
    ]


def _points_of_data_set(
    data: str, cells: pd.DataFrame, costs: pd.Series[float], score: str
) -> Iterator[Point]:
    plain = cells[cells["perturbation"] == 0]
    good = plain[plain["status"] == "ok"]
    methods = [str(name) for name in plain["method"].unique()]
    pairs = PairedRuns(data, cells, score)
    spent = {
        str(name): float(costs[list(rows["cell_id"])].median())
        for name, rows in good.groupby("method")
    }
    for name in methods:
        mean, error = mean_and_error(good[good["method"] == name], score)
        price = spent.get(name, math.nan)
        if math.isnan(mean) or math.isnan(price):
            yield Point(
                data, name, mean, error, price, "failed" if math.isnan(mean) else "uncounted"
            )
            continue
        rivals = [
            rival
            for rival in methods
            if rival != name and spent.get(rival, math.inf) <= SIMILAR_COST * price
        ]
        yield Point(data, name, mean, error, price, *_place_on_front(pairs, name, rivals, spent))


def _place_on_front(
    pairs: PairedRuns, name: str, rivals: Sequence[str], spent: dict[str, float]
) -> tuple[FrontPlace, tuple[Effect, ...]]:
    """Return the place of a method on the front, and the effects of the rivals that determine it."""
    dominating: list[Effect] = []
    undecided: list[Effect] = []
    for rival in rivals:
        effect = pairs.effect(rival, name)
        named = replace(effect, of=rival)
        cheaper = SIMILAR_COST * spent[rival] < spent[name]
        if effect.outcome == Outcome.better or (effect.outcome == Outcome.equal and cheaper):
            dominating.append(named)
        elif effect.outcome == Outcome.undecided:
            undecided.append(named)
    if dominating:
        return "dominated", tuple(dominating)
    return ("open", tuple(undecided)) if undecided else ("front", ())
