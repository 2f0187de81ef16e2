"""Leaks in a user's own tables, which every command that scores methods on them must mention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from svgpbench.config import DataConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import load_data
from svgpbench.experiments.data_errors import data_errors_are_the_users


def leak_notes(tables: Iterable[DataConfig]) -> Iterator[str]:
    """Yield one note for each leak of test targets that an audit finds in a user's own tables.

    Data sets of a registry say so in their title. A table that can no longer be read has no note.
    """
    from svgpbench_datasets.audit.report import audit_dataset

    for data in dict.fromkeys(table for table in tables if table.path is not None):
        try:
            dataset = load_data(data)
            with data_errors_are_the_users():
                leaks = audit_dataset(dataset).leaks
        except UserError:
            continue
        yield from (f"LEAK in {data.name}: {flag.text}" for flag in leaks)
