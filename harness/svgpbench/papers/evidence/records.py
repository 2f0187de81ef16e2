"""Experiment records and computed frames that decide claims, in the form that predicates read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pandas as pd

from svgpbench.errors import UserError, unknown
from svgpbench.experiments import Experiment, shipped_experiments
from svgpbench.experiments.plan import Plan
from svgpbench.experiments.resolve import shown_names
from svgpbench.papers import Artefact
from svgpbench.plugins import COMPUTED, load, plugins
from svgpbench.results.collect import collect
from svgpbench.results.last_quarter import Ends, columns_of_ends
from svgpbench.results.records import Record, UnreadableFileError
from svgpbench.results.trace_measures import frame_of
from svgpbench.results.tuned_methods import why_not_chosen
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.rules import MOMENT_SEPARATOR, SECONDS
from svgpbench_datasets.registry import REGISTRY

NO_EVIDENCE = frozenset({"crashed", "error", "skipped"})
"""Statuses caused by a machine or a defect, which say nothing about a method."""


TEXTS: Final = ("cell_id", "data", "task", "method", "label", "backend", "status", "message")
"""Columns of text in a frame of an experiment."""


@dataclass(frozen=True)
class Evidence:
    """Records of an artefact; if they are incomplete, the frame is empty and `why_not` has the reason.

    A frame of an experiment has one row per cell. `method` is the method's name in claims, `label` its name
    in tables.
    """

    frame: pd.DataFrame
    why_not: str = ""
    records: tuple[Record, ...] = ()

    def rows_of(self, methods: Sequence[str]) -> pd.DataFrame:
        """Return the rows of some methods, or all rows if `methods` is empty.

        A method `NAME @ 500` has the scores of NAME after 500 iterations, from the trace. `NAME @ 30 s` has
        those after 30 seconds of training.
        """
        if not methods:
            return self.frame
        ended = self.frame[self.frame["method"].isin(methods)]
        frames = [ended]
        for name in (x for x in dict.fromkeys(methods) if MOMENT_SEPARATOR in x):
            method, _, moment = name.rpartition(MOMENT_SEPARATOR)
            rows = self.frame[self.frame["method"] == method].assign(method=name)
            scores = {record.cell_id: scores_at(record, moment) for record in self.records}
            columns = {
                column: pd.Series(
                    [scores[cell].get(key) for cell in rows["cell_id"]], rows.index, float
                )
                for key in MEASURES
                for column in (key, *(f"{key}, {end}" for end in Ends._fields))
            }
            frames.append(rows.assign(**columns))
        return pd.concat(frames) if len(frames) > 1 else ended

    @property
    def condition(self) -> str:
        """Numbers of data sets, splits and starts, and the backend, as text."""
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
    """Return the records of an artefact's experiment on its first backend, replicas included.

    Raises `UnreadableFileError` for a damaged file of records.
    """
    plan = Plan.on_first_backend(experiment, artefact.preset)
    try:
        collected = collect(results, plan)
    except UnreadableFileError:
        raise  # damaged, not missing
    except UserError as error:
        return Evidence(pd.DataFrame(), str(error).partition(";")[0])
    if collected.missing:
        why = f"{collected.missing} of {len(plan.configs)} cells of {experiment.name} have not run"
        return Evidence(pd.DataFrame(), why)
    if broken := [record for record in collected.records if record.status in NO_EVIDENCE]:
        statuses = ", ".join(dict.fromkeys(record.status for record in broken))
        of_all = f"{len(broken)} of {len(plan.configs)} cells of {experiment.name}"
        why = f"{of_all} ended {statuses}; run them again"
        return Evidence(pd.DataFrame(), why)
    if why := why_not_chosen(results, experiment, artefact.preset):
        return Evidence(pd.DataFrame(), why)
    frame = frame_of(collected.records)
    ends = pd.DataFrame(columns_of_ends(collected.records, frame), frame.index)
    constant = [constant_error(record) for record in collected.records]
    frame = pd.concat([frame, ends], axis="columns").assign(constant_error=constant)
    names = shown_names(experiment, artefact.preset)
    named = frame.assign(method=frame["method"].map(names), label=frame["method"])
    # many small groups are compared: strings of Arrow take twice as long there as objects
    # a copy has its columns in few blocks, which pandas reads faster
    tidy = named.astype(dict.fromkeys(TEXTS, object)).copy()
    return Evidence(tidy, records=collected.records)


def constant_error(record: Record) -> float:
    """Return the error rate of the most frequent class of a record's data set, NaN if it is not known."""
    name, described = record.config.data.name, None
    if record.config.data.path is None and name.partition("@")[0] in REGISTRY.names():
        described = REGISTRY.describe(name)
    majority = described.majority if described else None
    return math.nan if majority is None else 1.0 - majority


def scores_at(record: Record, moment: str) -> dict[str, float | None]:
    """Return the scores of a trace at an iteration (`500`) or the last one within a time (`30 s`).

    The result is empty if the trace has no such iteration.
    """
    if moment.endswith(SECONDS):
        seconds, times = float(moment.removesuffix(SECONDS)), record.trace.get("seconds", ())
        indices = [index for index, time in enumerate(times) if (time or 0) <= seconds]
        return {key: x[indices[-1]] for key, x in record.trace.items()} if indices else {}
    iterations, iteration = list(record.trace.get("iteration", ())), int(moment)
    if iteration not in iterations:
        return {}
    return {key: values[iterations.index(iteration)] for key, values in record.trace.items()}


@dataclass(frozen=True)
class Computation:
    """Computed frame of a claim: one row per case, named by its `check`."""

    frame: pd.DataFrame

    def rows_of(self, checks: Sequence[str]) -> pd.DataFrame:
        """Return the rows of some checks, or all rows if `checks` is empty.

        Raises `UserError` for an unknown check.
        """
        for check in checks:
            if check not in (checks_of_frame := self.frame["check"].unique()):
                raise unknown("check", check, checks_of_frame)
        return self.frame[self.frame["check"].isin(checks)] if checks else self.frame

    @property
    def condition(self) -> str:
        """Numbers of checks and cases as text."""
        cases, checks = len(self.frame), self.frame["check"].nunique()
        return f"computed: {checks} check{'s' * (checks > 1)}, {cases} case{'s' * (cases > 1)}"


def compute(paper: str, claim: str) -> Computation | None:
    """Compute a claim's frame by the paper's entry in `svgpbench.computed`; None if it has none."""
    frame = computed_frame(paper, claim)
    return None if frame is None else Computation(frame)


ComputedFrame: TypeAlias = Callable[[str, str], pd.DataFrame | None]
"""Function from (paper, name) to the frame of a claim or a figure, or None."""


def computed_frame(paper: str, name: str) -> pd.DataFrame | None:
    """Compute the frame of a claim or of `ARTEFACT/FIGURE`; None if the paper's entry has none."""
    if paper not in plugins(COMPUTED):
        return None
    computations: Mapping[str, Callable[[], pd.DataFrame]] = load(COMPUTED, paper)
    return computations[name]() if name in computations else None


def command(paper: str, artefact: Artefact, experiment: Experiment, results: Path) -> str:
    """Return the command that runs the cells of an artefact's experiment.

    It is `svgpbench reproduce` for an experiment in the paper's folder, whose path a user does not know.
    """
    preset = f" --preset {artefact.preset}" if artefact.preset else ""
    if experiment.name not in shipped_experiments():
        return f"svgpbench reproduce {paper}/{artefact.id}{preset} --results {results}"
    backend = f"--backend {experiment.backends[0]}"
    return f"svgpbench run {artefact.experiment}{preset} {backend} --results {results}"
