"""Records of each experiment that can be compared, and the ranks and outcomes of its methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import pandas as pd

from svgpbench.experiments import load_experiment, shipped_experiments
from svgpbench.metrics import METRICS, USUAL, Metric
from svgpbench.results.collect import Collected
from svgpbench.results.frames import reference_backend
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import frame_of
from svgpbench.stats.effects import Outcome
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.over_sets import data_sets
from svgpbench.stats.ranks import Ranks, average_ranks

MOST_COMPARED = 1500
"""Maximum number of differences of an experiment; if there are more, none is computed."""

TURNED = {Outcome.better: Outcome.worse, Outcome.worse: Outcome.better}
"""Outcome of a difference for the second method, where it is not that for the first."""

Pairs: TypeAlias = Mapping[tuple[str, str], Mapping[str, Outcome]]
"""Outcome of the first method of each pair against the second, by pair and data set."""


@dataclass(frozen=True)
class ScoreSummary:
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
    def is_informative(self) -> bool:
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
        return [
            METRICS[name] for name in usual if self.frame[name].notna().any() and name in MEASURES
        ]

    @cached_property
    def ranks(self) -> dict[str, Ranks]:
        """Average ranks of all methods, by score; a score with too few data sets is left out."""
        ranks_by_score = {
            score.name: average_ranks(self.compared, score.name, score.better, self.methods)
            for score in self.scores
        }
        return {name: ranks for name, ranks in ranks_by_score.items() if ranks is not None}

    @cached_property
    def outcomes(self) -> dict[str, Pairs]:
        """Outcomes of all ordered pairs of methods, by score; empty above `MOST_COMPARED`."""
        pairs = list(combinations(self.methods, 2))
        if len(pairs) * len(self.data) * len(self.scores) > MOST_COMPARED:
            return {}
        outcomes_by_score: dict[str, Pairs] = {}
        for score in self.scores:
            fitting = self.compared[self.compared["task"].map(score.fits)]
            one_way: dict[tuple[str, str], dict[str, Outcome]] = {pair: {} for pair in pairs}
            for data_set in data_sets(fitting, score.name):
                for pair in pairs:
                    if data_set.has(*pair):
                        one_way[pair][data_set.data] = Outcome(data_set.effect(*pair).outcome)
            # turned, not compared anew: a region relative to the second method differs for the
            # swapped pair, and the two directions could contradict each other
            other_way = {
                pair[::-1]: {data: TURNED.get(x, x) for data, x in by_data.items()}
                for pair, by_data in one_way.items()
            }
            outcomes_by_score[score.name] = {**one_way, **other_way}
        return outcomes_by_score

    def summaries(self, method: str) -> Iterator[ScoreSummary]:
        """Yield the results of a method, given by its label, in each score."""
        plain = self.compared[self.compared["perturbation"] == 0]
        cells = plain[plain["method"] == method]
        failed = cells[cells["status"] != "ok"]["status"].value_counts()
        listed = ", ".join(f"{count} {status}" for status, count in failed.items())
        for score in self.scores:
            pairs = self.outcomes.get(score.name, {})
            ranks = self.ranks.get(score.name)
            texts = (
                [rank.text for rank in ranks.by_method if rank.method == method] if ranks else []
            )
            yield ScoreSummary(
                self.experiment,
                method,
                score.title,
                cells["data"].nunique(),
                len(self.methods),
                "".join(texts),
                _better(pairs, method, 0),
                _better(pairs, method, 1),
                f"{listed} of {len(cells)}" if listed else "",
            )


def _better(pairs: Pairs, method: str, position: int) -> tuple[str, ...]:
    """Return lines `data set: methods` for the pairs in which the first method is better.

    `method` is at `position` (0 or 1) in these pairs. A line lists the other methods.
    """
    others: dict[str, list[str]] = {}
    for pair, outcomes in pairs.items():
        if pair[position] == method:
            for data, outcome in outcomes.items():
                if outcome == Outcome.better:
                    others.setdefault(data, []).append(pair[1 - position])
    return tuple(f"{data}: {', '.join(names)}" for data, names in others.items())
