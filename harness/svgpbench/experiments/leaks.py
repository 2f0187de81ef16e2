"""Findings in a user's own tables, which every command that scores methods on them must mention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from svgpbench.config import CellConfig, DataConfig, SplitConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import load_data, split_rows
from svgpbench.experiments.error_messages import as_user_errors

if TYPE_CHECKING:
    from svgpbench_datasets.audit.report import Audit


def leak_notes(audits: Iterable[Audit]) -> list[str]:
    """Return one note for each leak of test targets that audits of tables found."""
    return [f"LEAK in {audit.name}: {flag.text}" for audit in audits for flag in audit.leaks]


def target_notes(audits: Iterable[Audit]) -> list[str]:
    """Return one note for each hard target that audits of tables found, and for what their readers decided.

    A hard target is constant, has a heavy tail, or a rare class. Inputs that lack digits are noted too.
    """
    return [
        f"note on {audit.name}: {flag.text}"
        for audit in audits
        for flag in (*audit.hard_target, *audit.as_read)
    ]


def audits_of(cells: Iterable[CellConfig]) -> Iterator[Audit]:
    """Yield the audit of each user's own table among the data of cells.

    Test rows that repeat training rows are counted in each split that the cells have. Data sets of a
    registry say so in their title. A table that can no longer be read is left out.
    """
    splits: defaultdict[DataConfig, dict[SplitConfig, None]] = defaultdict(dict)
    for cell in cells:
        if cell.data.path is not None:
            splits[cell.data][cell.split] = None
    for data, of_cells in splits.items():
        try:
            yield audit_table(data, of_cells)
        except UserError:
            continue


def audit_table(data: DataConfig, splits: Iterable[SplitConfig] | None = None) -> Audit:
    """Audit a user's own table by the splits of its cells, or by the usual one.

    Raises:
        UserError: the table cannot be read or split.
    """
    from svgpbench_datasets.audit.report import audit_dataset

    dataset = load_data(data)
    with as_user_errors():
        if splits is None:
            return audit_dataset(dataset)
        rows, groups = len(dataset.y), dataset.groups
        # where all rows train, none is scored, and nothing can leak
        tested = [how for how in splits if how.kind != "none"]
        return audit_dataset(dataset, [split_rows(data, how, rows, groups) for how in tested])
