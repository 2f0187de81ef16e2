"""Choice of the method for each row of a printed table: the candidate with the best ELBO.

A preset with `chosen_from` has one method per row. The experiment file names these methods, so that the
cells of the preset do not depend on records. This module checks that the records choose the same methods.
No claim is decided before they do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench.experiments import Experiment
from svgpbench.experiments.plan import Plan
from svgpbench.experiments.resolve import shown_names
from svgpbench.results.collect import collect
from svgpbench.results.frames import final_frame


@dataclass(frozen=True)
class Choice:
    """A row, with the mean final ELBO over seeds of each candidate method."""

    row: str
    elbo: dict[str, float]  # by label; -inf if a cell failed
    named: str  # the method that the preset names

    @property
    def best(self) -> str:
        """The method with the highest ELBO, the first one in a tie."""
        return max(self.elbo, key=lambda label: self.elbo[label])


def choices(results: Path, experiment: Experiment, preset: str) -> list[Choice]:
    """Return the choice for each row with several methods, from records of the first backend.

    `preset` names one method per row. The candidates of a row are its methods in the preset `chosen_from`.

    Raises `UserError` if records of a candidate are missing, or if a row has no candidate.
    """
    source = experiment.presets[preset].chosen_from
    plan = Plan.on_first_backend(experiment, source)
    searched = {config.method.title for config in plan.configs}
    rows: dict[str, list[str]] = {}
    for entry in experiment.methods:
        if entry.row:
            rows.setdefault(entry.row, []).append(entry.title)
    rows = {
        row: [label for label in labels if label in searched]
        for row, labels in rows.items()
        if len(labels) > 1
    }
    for row, labels in rows.items():
        if not labels:
            raise UserError(f"preset {source} of {experiment.name} runs no method of row {row!r}")
    candidates = {label for labels in rows.values() for label in labels}
    collected = collect(results, plan.only(lambda config: config.method.title in candidates))
    if collected.missing:
        raise UserError(
            f"{collected.missing} of the cells that choose have not run; "
            f"`svgpbench run {experiment.name} --preset {source}` runs them"
        )
    frame = final_frame(collected.records)
    # the mean of the other cells would look too good: a method with a failed cell is not chosen
    elbo = frame["elbo"].fillna(-math.inf).groupby(frame["method"]).mean()
    named = {row: label for label, row in shown_names(experiment, preset).items()}
    return [
        Choice(row, {label: float(elbo[label]) for label in labels}, named[row])
        for row, labels in rows.items()
    ]


def why_not_chosen(results: Path, experiment: Experiment, preset: str | None) -> str:
    """Return why a preset names other methods than the records choose; empty if it names the same.

    Empty also if the preset has no `chosen_from`. Only the first row that differs is named.
    """
    if preset is None or (source := experiment.presets[preset].chosen_from) is None:
        return ""
    try:
        row_choices = choices(results, experiment, preset)
    except UserError as error:
        return str(error).partition(";")[0]
    wrong = [choice for choice in row_choices if choice.named != choice.best]
    if not wrong:
        return ""
    first = wrong[0]
    return f"{first.named!r} is not what records choose: {first.best!r} has the best ELBO of preset {source}"
