"""Records of an experiment as evidence for claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pandas as pd

from svgpbench.config import Text
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, shipped_experiments
from svgpbench.experiments.plan import Plan
from svgpbench.experiments.resolve import shown_names
from svgpbench.papers.evidence.base import EvidenceFrame, RecordedEvidence
from svgpbench.results.collect import collect
from svgpbench.results.last_quarter import Ends, columns_of_ends
from svgpbench.results.records import Record, UnreadableFileError
from svgpbench.results.trace_measures import frame_of
from svgpbench.results.tuned_methods import why_not_chosen
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.rules import MOMENT_SEPARATOR, SECONDS
from svgpbench_datasets.registry import REGISTRY

if TYPE_CHECKING:
    from svgpbench.papers.loading import Paper
    from svgpbench.papers.schema import Artefact

NO_EVIDENCE = frozenset({"crashed", "error", "skipped"})
"""Statuses caused by a machine or a defect, which say nothing about a method."""


TEXTS: Final = ("cell_id", "data", "task", "method", "label", "backend", "status", "message")
"""Columns of text in a frame of an experiment."""


@dataclass(frozen=True)
class ExperimentFrame(EvidenceFrame):
    """One row per cell: `method` is the method's name in claims, `label` its name in tables."""

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


class ExperimentEvidence(RecordedEvidence):
    """The cells of an experiment at a preset, on its first backend."""

    kind: Literal["experiment"]
    experiment: Text  # shipped, or a .toml file in the paper's folder
    preset: Text | None = None

    @property
    def source(self) -> str:
        preset = f", `{self.preset}`" if self.preset else ""
        return f"`{self.experiment}`{preset}"

    @property
    def description(self) -> str:
        preset = f", preset {self.preset}" if self.preset else ""
        return f"cells of {self.experiment}{preset}"

    def load(self, paper: Paper, artefact: Artefact, results: Path) -> ExperimentFrame:
        return gather(results, paper.experiments[artefact.id], self.preset)

    def command(self, paper: Paper, artefact: Artefact, results: Path) -> str:
        preset = f" --preset {self.preset}" if self.preset else ""
        experiment = paper.experiments[artefact.id]
        if experiment.name not in shipped_experiments():
            # a user does not know the path of an experiment in the paper's folder
            return f"svgpbench reproduce {paper.name}/{artefact.id}{preset} --results {results}"
        backend = f"--backend {experiment.backends[0]}"
        return f"svgpbench run {self.experiment}{preset} {backend} --results {results}"


def gather(results: Path, experiment: Experiment, preset: str | None) -> ExperimentFrame:
    """Return the records of a preset on the experiment's first backend, replicas included.

    Raises `UnreadableFileError` for a damaged file of records.
    """
    plan = Plan.on_first_backend(experiment, preset)
    try:
        collected = collect(results, plan)
    except UnreadableFileError:
        raise  # damaged, not missing
    except UserError as error:
        return ExperimentFrame(pd.DataFrame(), str(error).partition(";")[0])
    if collected.missing:
        why = f"{collected.missing} of {len(plan.configs)} cells of {experiment.name} have not run"
        return ExperimentFrame(pd.DataFrame(), why)
    if broken := [record for record in collected.records if record.status in NO_EVIDENCE]:
        statuses = ", ".join(dict.fromkeys(record.status for record in broken))
        of_all = f"{len(broken)} of {len(plan.configs)} cells of {experiment.name}"
        why = f"{of_all} ended {statuses}; run them again"
        return ExperimentFrame(pd.DataFrame(), why)
    if why := why_not_chosen(results, experiment, preset):
        return ExperimentFrame(pd.DataFrame(), why)
    frame = frame_of(collected.records)
    ends = pd.DataFrame(columns_of_ends(collected.records, frame), frame.index)
    constant = [constant_error(record) for record in collected.records]
    frame = pd.concat([frame, ends], axis="columns").assign(constant_error=constant)
    names = shown_names(experiment, preset)
    named = frame.assign(method=frame["method"].map(names), label=frame["method"])
    # many small groups are compared: strings of Arrow take twice as long there as objects
    # a copy has its columns in few blocks, which pandas reads faster
    tidy = named.astype(dict.fromkeys(TEXTS, object)).copy()
    return ExperimentFrame(tidy, records=collected.records)


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
