"""Flags that the numbers raise by themselves; what the registry declares is not looked at."""

from __future__ import annotations

from svgpbench_datasets.audit import column_notes, leaks, notes
from svgpbench_datasets.audit.facts import Facts, Flag
from svgpbench_datasets.dataset import Dataset


def flags_of(dataset: Dataset, facts: Facts) -> tuple[Flag, ...]:
    """Every flag that a data set with these facts raises, leaks first."""
    found = [
        *leaks.row_numbers(dataset),
        *leaks.determined(dataset),
        *leaks.seen(facts),
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
    return tuple(sorted(found, key=lambda flag: not flag.leak))
