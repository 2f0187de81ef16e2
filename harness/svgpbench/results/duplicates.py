"""Selection of one record among several records of one cell."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from svgpbench.errors import UserError
from svgpbench.experiments.identity import OtherCode
from svgpbench.results.difference import difference
from svgpbench.results.records import Record, is_final


class LocatedRecord(NamedTuple):
    """A record and its file."""

    path: Path
    record: Record


def deduplicate(stored: Iterable[LocatedRecord], newest: bool = False) -> list[LocatedRecord]:
    """Return one record per cell, in the order of their first records.

    A final record is preferred. Otherwise, and if `newest` is set and they were made by different code of
    a plugin, the record that started last is taken.

    Raises `UserError` if two final records of a cell hold different numbers, unless `newest` is set.
    """
    by_cell: dict[str, LocatedRecord] = {}
    for located in stored:
        earlier = by_cell.get(located.record.cell_id)
        by_cell[located.record.cell_id] = (
            located if earlier is None else _preferred(earlier, located, newest)
        )
    return list(by_cell.values())


def _preferred(first: LocatedRecord, second: LocatedRecord, newest: bool) -> LocatedRecord:
    """Return the preferred one of two records of a cell, by the rules of `deduplicate`."""
    other = OtherCode.between(first.record.code, second.record.code).plugins
    # a later failure of new code is not hidden by a number of the old
    if is_final(first.record) != is_final(second.record) and not (newest and other):
        return first if is_final(first.record) else second
    if is_final(first.record) and not newest and _numbers(first.record) != _numbers(second.record):
        gap = difference(first.record, second.record)
        what = "what they record is not the same"
        if other:
            what = f"they were made by different code of {other}"
        elif first.record.status != second.record.status:
            what = f"{first.record.status} and {second.record.status}"
        elif 0.0 < gap < math.inf:
            what = f"a column of the trace is up to {gap:.0e} apart"
        raise UserError(
            f"{first.path} and {second.path} are of one cell and hold different numbers ({what}); "
            "remove one, or take the newer with --keep newest"
        )
    return max(first, second, key=lambda located: located.record.started)


def _numbers(record: Record) -> tuple[Any, ...]:
    """Return the results of a record that its cell determines, which are all but times."""
    metrics = {name: value for name, value in record.metrics.items() if name != "seconds"}
    return record.status, record.data, record.trace_without_times(), metrics
