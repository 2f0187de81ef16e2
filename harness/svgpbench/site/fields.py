"""Records of each experiment that can be compared, and the ranks and outcomes of its methods."""

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
"""Maximum number of differences of an experiment; if there are more, none is computed."""

TURNED = {Outcome.better: Outcome.worse, Outcome.worse: Outcome.better}

Pairs: TypeAlias = Mapping[tuple[str, str], Mapping[str, Outcome]]
"""Outcome of the first method of each pair against the second, by pair and data set."""


@dataclass(frozen=True)
class Standing:
    """Results of one method in one score of an experiment."""

    experiment: str
    method: str
    score: str
    data_sets: int
    methods: int  # number of methods in the experiment
    rank: str  # with its interval; empty if there are too few data sets
    wins: tuple[str, ...]  # `data set: methods that it is better than`
    fails: tuple[str, ...]  # `data set: methods that are better`
    failures: str  # number of failed cells by status

    @property
    def says_something(self) -> bool:
        """True if there is a rank, a win, a loss or a failure."""
        return bool(self.rank or self.wins or self.fails or self.failures)


@dataclass(frozen=True)
class Field:
    """Current records of an experiment, with what is derived from them."""

    collected: Collected

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self.collected.experiment

    @cached_property
    def title(self) -> str:
        """Title of the experiment; empty if it is not a shipped one."""
        if self.experiment not in shipped_experiments():
            return ""
        return load_experiment(self.experiment).title

    @property
    def records(self) -> tuple[Record, ...]:
        """Records in the order of the experiment file."""
        return self.collected.records

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Frame with one row per cell, perturbed replicas included."""
        return frame_of(self.records)

    @cached_property
    def backend(self) -> str:
        """Reference backend, whose numbers are compared."""
        return reference_backend(self.frame)

    @cached_property
    def compared(self) -> pd.DataFrame:
        """Rows of `frame` of the reference backend."""
        return self.frame[self.frame["backend"] == self.backend]

    @cached_property
    def data(self) -> list[str]:
        """Data sets in the order of the records."""
        return list(map(str, self.frame["data"].unique()))

    @cached_property
    def methods(self) -> list[str]:
        """Labels of methods in the order of the records."""
        return list(map(str, self.frame["method"].unique()))

    @cached_property
    def names(self) -> dict[str, str]:
        """Name of the method, by label."""
        return {r.config.method.title: r.config.method.name for r in self.records}

    @cached_property
    def scores(self) -> list[Metric]:
        """Usual metrics that some record has and that have a measure of difference."""
        usual = dict.fromkeys(name for task in self.frame["task"].unique() for name in USUAL[task])
        here = [name for name in usual if self.frame[name].notna().any()]
        return [METRICS[name] for name in here if name in MEASURES]

    @cached_property
    def ranks(self) -> dict[str, Ranks]:
        """Average ranks of all methods, by score; a score with too few data sets is left out."""
        found = {
            score.name: average_ranks(self.compared, score.name, score.better, self.methods)
            for score in self.scores
        }
        return {name: ranks for name, ranks in found.items() if ranks is not None}

    @cached_property
    def outcomes(self) -> dict[str, Pairs]:
        """Outcomes of all ordered pairs of methods, by score; empty above `MOST_COMPARED`."""
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
        """Yield the standing of a method, by its label, in each score."""
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
    """Return the outcomes of the same differences for the other method."""
    return {data: TURNED.get(outcome, outcome) for data, outcome in outcomes.items()}


def _better(pairs: Pairs, method: str, place: int) -> tuple[str, ...]:
    """Return lines `data set: methods` of pairs in which the first method is better.

    `method` is at `place` (0 or 1) of these pairs; the line lists the other method of each.
    """
    found: dict[str, list[str]] = {}
    for pair, outcomes in pairs.items():
        if pair[place] == method:
            for data, outcome in outcomes.items():
                if outcome == Outcome.better:
                    found.setdefault(data, []).append(pair[1 - place])
    return tuple(f"{data}: {', '.join(names)}" for data, names in found.items())


def fields_in(results: Path) -> tuple[list[Field], list[str]]:
    """Return the experiments of a folder of records, and one line per experiment left out.

    Raises `UserError` as `collected_in` does.
    """
    every, left_out = collected_in(results)
    return [Field(collected) for collected in every], left_out
