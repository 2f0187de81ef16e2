"""Selection of one record among several records of one cell."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from svgpbench.errors import UserError
from svgpbench.results.difference import difference
from svgpbench.results.records import Record, is_final


class LocatedRecord(NamedTuple):
    """A record and its file."""

    path: Path
    record: Record


def deduplicate(stored: Iterable[LocatedRecord], newest: bool = False) -> list[LocatedRecord]:
    """Return one record per cell, in the order of their first records.

    A final record is preferred to one that is not. Otherwise the one that started last is taken.

    Raises `UserError` if two final records of a cell hold different numbers, unless `newest` is set.
    """
    chosen: dict[str, LocatedRecord] = {}
    for one in stored:
        other = chosen.get(one.record.cell_id)
        chosen[one.record.cell_id] = one if other is None else _of_two(other, one, newest)
    return list(chosen.values())


def _of_two(one: LocatedRecord, other: LocatedRecord, newest: bool) -> LocatedRecord:
    if is_final(one.record) != is_final(other.record):
        return one if is_final(one.record) else other
    if is_final(one.record) and not newest and _numbers(one.record) != _numbers(other.record):
        raise UserError(
            f"{one.path} and {other.path} are of one cell and hold different numbers "
            f"({_how(one.record, other.record)}); remove one, or take the newer with --keep newest"
        )
    return max(one, other, key=lambda stored: stored.record.started)


def _numbers(record: Record) -> tuple[Any, ...]:
    """Return all results of a record that the cell determines: everything but times."""
    metrics = {name: value for name, value in record.metrics.items() if name != "seconds"}
    return record.status, record.data, record.trace_without_times(), metrics


def _how(one: Record, other: Record) -> str:
    if one.status != other.status:
        return f"{one.status} and {other.status}"
    apart = difference(one, other)
    if 0.0 < apart < math.inf:
        return f"a column of the trace is up to {apart:.0e} apart"
    return "what they record is not the same"
