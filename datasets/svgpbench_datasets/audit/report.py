"""Audit of a data set: registry entry, facts and flags."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from svgpbench_datasets.audit import column_notes, leaks, notes
from svgpbench_datasets.audit.facts import AuditFacts, Flag, facts_of
from svgpbench_datasets.dataset import Dataset, Task
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.reading.tables import NONE_MISSING, Missing
from svgpbench_datasets.registry import Registry
from svgpbench_datasets.splits import Split, k_fold
from svgpbench_datasets.standardise import Standardiser

FOLDS = 5


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
    return _audit(dataset, split, registry.missing(name), entry)


def audit_dataset(dataset: Dataset) -> Audit:
    """Audit the numbers of a data set that is not in a registry.

    Raises:
        DataError: the mean or standard deviation of a column overflows.
    """
    Standardiser.fit(dataset.X, names=dataset.feature_names)
    Standardiser.fit(dataset.y[:, None], names=[dataset.target_name])
    return _audit(dataset, _folds(len(dataset.y)))


def _folds(rows: int) -> Split:
    return k_fold(rows, min(FOLDS, rows), 0, 0)


def flags_of(dataset: Dataset, facts: AuditFacts) -> tuple[Flag, ...]:
    """Return all flags of a data set with these facts, leaks first; its registry entry is not used."""
    flags = [
        *leaks.row_numbers(dataset),
        *leaks.determined(dataset),
        *leaks.repeated_test_inputs(facts),
        *notes.ordered(facts),
        *notes.gridded(dataset),
        *notes.without_signal(facts),
        *notes.few_values(dataset, facts),
        *notes.capped(dataset),
        *notes.repeated(facts),
        *column_notes.missing(facts),
        *column_notes.lowest_apart(dataset),
        *column_notes.uninformative(dataset, facts),
        *column_notes.centred(dataset),
    ]
    return tuple(sorted(flags, key=lambda flag: not flag.leak))


def _audit(
    dataset: Dataset,
    split: Split,
    missing: Missing = NONE_MISSING,
    entry: DatasetEntry | None = None,
) -> Audit:
    facts = facts_of(dataset, split, missing)
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
