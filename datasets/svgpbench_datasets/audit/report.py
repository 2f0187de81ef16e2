"""Audit of a data set: registry entry, facts and flags."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from svgpbench_datasets.audit import column_notes, leaks, notes
from svgpbench_datasets.audit.facts import AuditFacts, Flag, facts_of
from svgpbench_datasets.audit.row_numbers import row_numbers
from svgpbench_datasets.dataset import Dataset, Floats, Task
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.tables import NONE_MISSING, Missing
from svgpbench_datasets.registry import Registry
from svgpbench_datasets.splits import Split, group_fold, k_fold
from svgpbench_datasets.standardise import column_statistics

FOLDS = 5
SQUARED = 1e150
"""Largest spread, and the inverse of the least, whose squares are float64."""


@dataclass(frozen=True)
class Audit:
    """Facts, flags and registry entry of a data set."""

    name: str
    task: Task
    target: str
    feature_names: tuple[str, ...]
    fingerprint: str
    facts: AuditFacts
    flags: tuple[Flag, ...]  # leaks first
    entry: DatasetEntry | None = None  # registry entry; None for a user's own table

    @property
    def leaks(self) -> tuple[Flag, ...]:
        """Flags for leaks of test targets."""
        return tuple(flag for flag in self.flags if flag.leak)

    @property
    def hard_target(self) -> tuple[Flag, ...]:
        """Flags for targets, and inputs that lack digits, on which scores depend, whatever the model."""
        return tuple(flag for flag in self.flags if flag.kind in notes.HARD)

    @property
    def as_read(self) -> tuple[Flag, ...]:
        """Flags for what the reader of a file decided, such as to leave a saved index out."""
        return tuple(flag for flag in self.flags if flag.kind == "as-read")

    def to_json(self) -> dict[str, Any]:
        """Return the audit as a dictionary that can be written as JSON."""
        report: dict[str, Any] = {
            "name": self.name,
            "task": self.task,
            "target": self.target,
            "feature_names": list(self.feature_names),
            **dataclasses.asdict(self.facts),
            "flags": [dataclasses.asdict(flag) for flag in self.flags],
            "fingerprint": self.fingerprint,
        }
        if (entry := self.entry) is None:
            return report
        return report | {
            "title": entry.title,
            "missing_treatment": entry.missing,
            "fixed_splits": entry.splits.count if entry.splits else 0,
            "leaky_variant": entry.leaks,
            "defects": list(entry.defects),
            "upstream": entry.upstream,
            "licence": entry.licence,
            "citation": entry.citation,
            "verified": entry.fingerprint is not None,
        }


def audit(registry: Registry, name: str) -> Audit:
    """Load a data set of a registry and audit its numbers.

    Test rows that repeat training rows are counted in the first published split. Without
    published splits, the first of 5 folds is used.
    """
    dataset, entry = registry.load(name), registry.describe(name)
    split = registry.fixed_split(name, 0) if entry.splits else _folds(entry.rows)
    return _audit(dataset, [split], registry.missing(name), entry)


def audit_dataset(dataset: Dataset, splits: Sequence[Split] | None = None) -> Audit:
    """Audit the numbers of a data set that is not in a registry.

    Test rows that repeat training rows are counted in each of the `splits`; none if all rows train. By
    default it is the first of 5 folds, which keep the groups together if the data set has some.

    Raises:
        DataError: the square of a column is beyond float64.
    """
    _refuse_extreme(dataset.X, dataset.feature_names)
    _refuse_extreme(dataset.y[:, None], [dataset.target_name])
    return _audit(dataset, [default_split(dataset)] if splits is None else splits)


def _refuse_extreme(columns: Floats, names: Sequence[str]) -> None:
    """Raise `DataError` for columns [n, D] whose variances are not in the range of float64."""
    spread = column_statistics(columns, names=names).spread
    # not by `constant`: what varies in its last digits alone has squares, too
    size = np.where(np.ptp(columns, axis=0) == 0, 1.0, spread)
    for column in np.flatnonzero((size < 1.0 / SQUARED) | (size > SQUARED)).tolist():
        what = "large" if size[column] > 1.0 else "small"
        raise DataError(
            f"column {names[column]!r} is too {what} to standardise by squares, as an audit does; "
            "rescale it"
        )


def default_split(dataset: Dataset) -> Split:
    """Return the first of at most 5 folds: of the groups of a data set, or of its rows."""
    if dataset.groups is not None:
        return group_fold(dataset.groups, min(FOLDS, len(dataset.group_labels)), 0, 0)
    return _folds(len(dataset.y))


def _folds(rows: int) -> Split:
    return k_fold(rows, min(FOLDS, rows), 0, 0)


def flags_of(dataset: Dataset, facts: AuditFacts) -> tuple[Flag, ...]:
    """Return all flags of a data set with these facts, leaks first; its registry entry is not used."""
    flags = [
        *row_numbers(dataset),
        *leaks.determined(dataset),
        *leaks.repeated_test_inputs(facts),
        *notes.ordered(dataset, facts),
        *notes.own_groups(dataset),
        *notes.gridded(dataset),
        *notes.without_signal(facts),
        *notes.hard_target(dataset.y, facts.classes),
        *notes.few_values(dataset, facts),
        *notes.capped(dataset),
        *notes.repeated(facts),
        *column_notes.missing(facts),
        *column_notes.lowest_apart(dataset),
        *column_notes.uninformative(dataset, facts),
        *column_notes.centred(dataset),
        *column_notes.few_digits(dataset),
        *(Flag("as-read", text) for text in dataset.notes),
    ]
    return tuple(sorted(flags, key=lambda flag: not flag.leak))


def _audit(
    dataset: Dataset,
    splits: Sequence[Split],
    missing: Missing = NONE_MISSING,
    entry: DatasetEntry | None = None,
) -> Audit:
    facts = facts_of(dataset, *splits, missing=missing)
    return Audit(
        name=dataset.name,
        task=dataset.task,
        target=dataset.target_name,
        feature_names=dataset.feature_names,
        fingerprint=dataset.fingerprint,
        facts=facts,
        flags=flags_of(dataset, facts),
        entry=entry,
    )
