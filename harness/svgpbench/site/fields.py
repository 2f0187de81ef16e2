"""The records of each experiment that fit together: who ran on what, and how methods compare there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from svgpbench.experiments import load_experiment, shipped_experiments
from svgpbench.metrics import METRICS, USUAL, Metric
from svgpbench.results.collect import Collected, collected_in
from svgpbench.results.frames import reference_backend
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import frame_of
from svgpbench.stats.effects import Outcome
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.pairs import data_sets
from svgpbench.stats.ranks import Ranks, average_ranks

MOST_COMPARED = 1500
"""Differences with an interval, above which those of an experiment are not computed."""

TURNED = {Outcome.better: Outcome.worse, Outcome.worse: Outcome.better}

Pairs: TypeAlias = Mapping[tuple[str, str], Mapping[str, Outcome]]
"""How the first method of each pair does against the second, by data set."""


@dataclass(frozen=True)
class Standing:
    """What the records of an experiment say of one method in one score."""

    experiment: str
    method: str
    score: str
    data_sets: int
    methods: int  # of the field, itself too
    rank: str  # with its interval; empty where data sets are few
    wins: tuple[str, ...]  # `data set: whom it is better than`
    fails: tuple[str, ...]  # `data set: who is better`
    failures: str  # of cells

    @property
    def says_something(self) -> bool:
        """Whether there is a rank, a difference that an interval tells or a failure."""
        return bool(self.rank or self.wins or self.fails or self.failures)


@dataclass(frozen=True)
class Field:
    """The current records of an experiment."""

    collected: Collected

    @property
    def experiment(self) -> str:
        """Its name."""
        return self.collected.experiment

    @cached_property
    def title(self) -> str:
        """Its title; empty for a user's own, whose file is not at hand."""
        if self.experiment not in shipped_experiments():
            return ""
        return load_experiment(self.experiment).title

    @property
    def records(self) -> tuple[Record, ...]:
        """All of them, in the order of the experiment file."""
        return self.collected.records

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row a cell, perturbed replicas too."""
        return frame_of(self.records)

    @cached_property
    def backend(self) -> str:
        """The one whose numbers stand for all."""
        return reference_backend(self.frame)

    @cached_property
    def compared(self) -> pd.DataFrame:
        """The cells of that backend."""
        return self.frame[self.frame["backend"] == self.backend]

    @cached_property
    def data(self) -> list[str]:
        """Data sets, in their order."""
        return list(map(str, self.frame["data"].unique()))

    @cached_property
    def methods(self) -> list[str]:
        """Labels of methods, in their order."""
        return list(map(str, self.frame["method"].unique()))

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of the method behind each label."""
        return {r.config.method.title: r.config.method.name for r in self.records}

    @cached_property
    def scores(self) -> list[Metric]:
        """The usual metrics that some record has and that differences are judged in."""
        usual = dict.fromkeys(name for task in self.frame["task"].unique() for name in USUAL[task])
        here = [name for name in usual if self.frame[name].notna().any()]
        return [METRICS[name] for name in here if name in MEASURES]

    @cached_property
    def ranks(self) -> dict[str, Ranks]:
        """Average ranks of all methods in each score, where there are data sets enough."""
        found = {
            score.name: average_ranks(self.compared, score.name, score.better, self.methods)
            for score in self.scores
        }
        return {name: ranks for name, ranks in found.items() if ranks is not None}

    @cached_property
    def outcomes(self) -> dict[str, Pairs]:
        """By score, every two methods in both orders; empty where there are too many."""
        pairs = list(combinations(self.methods, 2))
        if len(pairs) * len(self.data) * len(self.scores) > MOST_COMPARED:
            return {}
        found: dict[str, Pairs] = {}
        for score in self.scores:
            one_way = self._one_way(score.name, pairs)
            other_way = {pair[::-1]: _turned(of) for pair, of in one_way.items()}
            found[score.name] = {**one_way, **other_way}
        return found

    def _one_way(self, score: str, pairs: Sequence[tuple[str, str]]) -> Pairs:
        fitting = self.compared[self.compared["task"].map(METRICS[score].fits)]
        found: dict[tuple[str, str], dict[str, Outcome]] = {pair: {} for pair in pairs}
        for here in data_sets(fitting, score):
            for pair in pairs:
                if here.has(*pair):
                    found[pair][here.data] = Outcome(here.effect(*pair).outcome)
        return found

    def standing(self, method: str) -> Iterator[Standing]:
        """How a method stands in each score that it is compared in."""
        plain = self.compared[self.compared["perturbation"] == 0]
        mine = plain[plain["method"] == method]
        failed = mine[mine["status"] != "ok"]["status"].value_counts()
        listed = ", ".join(f"{count} {status}" for status, count in failed.items())
        for score in self.scores:
            pairs = self.outcomes.get(score.name, {})
            ranks = self.ranks.get(score.name)
            of_mine = [one.text for one in ranks.of if one.method == method] if ranks else []
            yield Standing(
                self.experiment,
                method,
                score.title,
                mine["data"].nunique(),
                len(self.methods),
                "".join(of_mine),
                _better(pairs, method, 0),
                _better(pairs, method, 1),
                f"{listed} of {len(mine)}" if listed else "",
            )


def _turned(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The same differences, seen from the other method."""
    return {data: TURNED.get(outcome, outcome) for data, outcome in outcomes.items()}


def _better(pairs: Pairs, method: str, place: int) -> tuple[str, ...]:
    """By data set, the others of the pairs whose first is better, the method being the first or second."""
    found: dict[str, list[str]] = {}
    for pair, outcomes in pairs.items():
        if pair[place] == method:
            for data, outcome in outcomes.items():
                if outcome == Outcome.better:
                    found.setdefault(data, []).append(pair[1 - place])
    return tuple(f"{data}: {', '.join(names)}" for data, names in found.items())


def fields_in(results: Path) -> tuple[list[Field], list[str]]:
    """The experiments of a folder's records, and a line on each that is left out.

    Raises `UserError` as `collected_in` does.
    """
    every, left_out = collected_in(results)
    return [Field(collected) for collected in every], left_out
