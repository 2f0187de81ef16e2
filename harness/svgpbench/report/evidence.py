"""The records that decide a claim, as the frame that predicates read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from svgpbench.errors import UserError, unknown
from svgpbench.experiments import Experiment, Selection, resolve
from svgpbench.papers import Artefact
from svgpbench.plugins import COMPUTED, load, plugins
from svgpbench.report.collect import collect
from svgpbench.report.frames import final_frame
from svgpbench.runner.records import Record

SETTLED = 10
"""EM iterations after which a drop of the bound counts against steadiness."""


@dataclass(frozen=True)
class Evidence:
    """Records of an artefact's experiment: whole, or why they are not."""

    frame: pd.DataFrame
    why_not: str = ""

    def of(self, methods: Sequence[str]) -> pd.DataFrame:
        """The cells of some methods; of all, where none is named."""
        return self.frame[self.frame["method"].isin(methods)] if methods else self.frame

    @property
    def condition(self) -> str:
        """What the frame is of, in a few words."""
        plain = self.frame[self.frame["perturbation"] == 0]
        splits = plain.groupby("data")[["split_seed", "fold"]].apply(
            lambda x: len(x.drop_duplicates())
        )
        counts = [
            (plain["data"].nunique(), "data set"),
            (int(splits.max()), "split"),
            (plain["seed"].nunique(), "start"),
        ]
        sizes = ", ".join(f"{count} {what}{'s' * (count > 1)}" for count, what in counts)
        return f"{sizes}, {plain['backend'].iloc[0]}"


def gather(results: Path, artefact: Artefact, experiment: Experiment) -> Evidence:
    """The records of an artefact's experiment on the first of its backends, replicas with them."""
    cells = resolve(experiment, artefact.preset, Selection(backends=experiment.backends[:1]))
    try:
        found = collect(results, experiment, cells)
    except UserError as error:
        return Evidence(pd.DataFrame(), str(error).partition(";")[0])
    if found.missing:
        why = f"{found.missing} of {len(cells)} cells of {experiment.name} have not run"
        return Evidence(pd.DataFrame(), why)
    return Evidence(frame_of(found.records))


@dataclass(frozen=True)
class Computation:
    """A frame that was computed for a claim: a row a case, named by its `check`."""

    frame: pd.DataFrame

    def of(self, checks: Sequence[str]) -> pd.DataFrame:
        """The rows of some checks, or of all; raises `UserError` for a check that there is not."""
        for check in checks:
            if check not in (known := self.frame["check"].unique()):
                raise unknown("check", check, known)
        return self.frame[self.frame["check"].isin(checks)] if checks else self.frame

    @property
    def condition(self) -> str:
        """What was computed, in a few words."""
        cases, checks = len(self.frame), self.frame["check"].nunique()
        return f"computed: {checks} check{'s' * (checks > 1)}, {cases} case{'s' * (cases > 1)}"


def compute(paper: str, claim: str) -> Computation | None:
    """What the paper's entry in `svgpbench.computed` computes for a claim; None where it has nothing."""
    if paper not in plugins(COMPUTED):
        return None
    computations: Mapping[str, Callable[[], pd.DataFrame]] = load(COMPUTED, paper)
    if claim not in computations:
        return None
    return Computation(computations[claim]())


def command(artefact: Artefact, experiment: Experiment, results: Path) -> str:
    """What runs the cells that decide."""
    preset = f" --preset {artefact.preset}" if artefact.preset else ""
    backend = f"--backend {experiment.backends[0]}"
    return f"svgpbench run {artefact.experiment}{preset} {backend} --results {results}"


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """A row a cell: its metrics, and what of its data and its trace predicates ask for."""
    return final_frame(records).assign(
        n_test=pd.Series([record.data.get("n_test") for record in records], dtype=float),
        elbo_area=[_mean(record, "elbo") for record in records],
        nlpd_area=[_mean(record, "nlpd") for record in records],
        elbo_drop=[_largest_drop(record) for record in records],
    )


def _mean(record: Record, column: str) -> float:
    """The mean of a trace: its area, a row an EM iteration."""
    values = [value for value in record.trace.get(column, ()) if value is not None]
    return math.fsum(values) / len(values) if values else math.nan


def _largest_drop(record: Record) -> float:
    """By how much the bound fell at most from one EM iteration to the next, once it should have settled."""
    bound = pd.Series(record.trace.get("elbo", ()), dtype=float)
    if len(bound) <= SETTLED + 1:
        return math.nan
    return max(0.0, -float(bound.diff()[SETTLED:].min()))
