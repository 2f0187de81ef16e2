"""A data set of a registry audited: what is declared of it, what is counted, what is flagged."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from svgpbench_datasets.audit.facts import Facts, facts_of
from svgpbench_datasets.audit.flag import Flag
from svgpbench_datasets.audit.flags import flags_of
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.registry import Registry
from svgpbench_datasets.splits import Split, k_fold

FOLDS = 5


@dataclass(frozen=True)
class Audit:
    """What is declared of a data set, what its numbers are, and what they flag."""

    entry: DatasetEntry
    fingerprint: str
    facts: Facts
    flags: tuple[Flag, ...]

    @property
    def leaks(self) -> tuple[Flag, ...]:
        """The flags that hand test targets to the model."""
        return tuple(flag for flag in self.flags if flag.leak)

    def to_json(self) -> dict[str, Any]:
        """All of it, JSON-able."""
        entry = self.entry
        return {
            "name": entry.name,
            "title": entry.title,
            "task": entry.task,
            "target": entry.target,
            "feature_names": list(entry.features),
            **dataclasses.asdict(self.facts),
            "missing_treatment": entry.missing,
            "fixed_splits": entry.splits.count if entry.splits else 0,
            "leaky_variant": entry.leaks,
            "flags": [dataclasses.asdict(flag) for flag in self.flags],
            "defects": list(entry.defects),
            "upstream": entry.upstream,
            "licence": entry.licence,
            "citation": entry.citation,
            "fingerprint": self.fingerprint,
            "verified": entry.fingerprint is not None,
        }


def audit(registry: Registry, name: str) -> Audit:
    """Load a data set and look at its numbers.

    Raises:
        DataError: a data set that cannot be loaded.
    """
    dataset = registry.load(name)
    facts = facts_of(dataset, audit_split(registry, name), registry.missing(name))
    entry = registry.describe(name)
    return Audit(entry, dataset.fingerprint, facts, flags_of(dataset, facts))


def audit_split(registry: Registry, name: str) -> Split:
    """The split to search for training rows in the test part: the first published, or of 5 folds."""
    entry = registry.describe(name)
    if entry.splits is not None:
        return registry.fixed_split(name, 0)
    return k_fold(entry.rows, min(FOLDS, entry.rows), 0, 0)
