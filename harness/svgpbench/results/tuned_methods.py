"""Which of the methods that may stand for a row of a printed table does: the one of the best ELBO.

A preset with `chosen_from` has one method a row. Its file names them, so that what it runs hangs on no
record; whether these are the ones that the records choose is computed here, and no claim is decided before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, Selection, resolve
from svgpbench.experiments.resolve import shown_names
from svgpbench.results.collect import collect
from svgpbench.results.frames import final_frame
from svgpbench.results.records import Record


@dataclass(frozen=True)
class Choice:
    """A row, and the final ELBO of each method that may stand for it, the mean of its seeds."""

    row: str
    elbo: dict[str, float]  # by label; -inf where a cell failed
    named: str  # the method that the preset names

    @property
    def chosen(self) -> str:
        """The method of the highest ELBO, the first of equal ones."""
        return max(self.elbo, key=lambda label: self.elbo[label])


def choosing_preset(experiment: Experiment) -> str:
    """The preset that is chosen from another one's records; raises `UserError` where none is."""
    for name, preset in experiment.presets.items():
        if preset.chosen_from:
            return name
    raise UserError(f"{experiment.name} has no preset with chosen_from: it has nothing to choose")


def choices(results: Path, experiment: Experiment) -> list[Choice]:
    """Each row that several methods may stand for, judged on the experiment's first backend.

    Of a row's methods those take part that the search runs.

    Raises `UserError` where records of such a method are missing, and for a row of which it runs none.
    """
    preset = choosing_preset(experiment)
    source = experiment.presets[preset].chosen_from
    cells = resolve(experiment, source, Selection(backends=experiment.backends[:1]))
    searched = {cell.method.title for cell in cells}
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
    found = collect(results, experiment, [x for x in cells if x.method.title in candidates])
    if found.missing:
        raise UserError(
            f"{found.missing} of the cells that choose have not run; "
            f"`svgpbench run {experiment.name} --preset {source}` runs them"
        )
    elbo = _elbo_by_method(found.records)
    named = {row: label for label, row in shown_names(experiment, preset).items()}
    return [
        Choice(row, {label: elbo[label] for label in labels}, named[row])
        for row, labels in rows.items()
    ]


def why_not_chosen(results: Path, experiment: Experiment, preset: str | None) -> str:
    """Why the methods that a preset names are not those that the records choose; empty where they are."""
    if preset is None or not experiment.presets[preset].chosen_from:
        return ""
    try:
        found = choices(results, experiment)
    except UserError as error:
        return str(error).partition(";")[0]
    wrong = [choice for choice in found if choice.named != choice.chosen]
    if not wrong:
        return ""
    return f"{wrong[0].named!r} is not what records choose (svgpbench choose {experiment.name})"


def _elbo_by_method(records: Sequence[Record]) -> dict[str, float]:
    frame = final_frame(records)
    means = frame["elbo"].fillna(-math.inf).groupby(frame["method"]).mean()
    return {str(method): float(mean) for method, mean in means.items()}
