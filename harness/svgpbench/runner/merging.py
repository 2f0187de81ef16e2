"""Records of several folders put together: each cell once, and what does not fit named."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from svgpbench.atomic import write_whole
from svgpbench.errors import UserError
from svgpbench.runner.pool import check_writable
from svgpbench.runner.records import (
    DamagedRecordError,
    Record,
    is_final,
    read_record,
    record_files,
    record_path,
    set_aside,
)
from svgpbench.runner.verification import difference

NAME = re.compile(r"[0-9a-f]{16}\.json")
"""A record's file, among whatever else lies below a folder of a user's."""


class Stored(NamedTuple):
    """A record and where it lies."""

    path: Path
    record: Record


@dataclass(frozen=True)
class Found:
    """Records of some folders, and a line on each file that is cut off or was changed."""

    stored: tuple[Stored, ...]
    damaged: tuple[str, ...]


@dataclass(frozen=True)
class Merged:
    """What became of the records of some folders in another."""

    added: int
    there: int  # before
    warnings: tuple[str, ...]


def records_below(folders: Sequence[Path]) -> Found:
    """Every record below some folders, however deep, by folder and path.

    Raises `UserError` for a folder that is not there, where there is no whole record at all, and for one of
    another schema.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder")
    paths = [path for folder in folders for path in sorted(folder.rglob("*/*/*.json"))]
    files = {path.resolve(): path for path in paths if NAME.fullmatch(path.name)}
    found = read_whole(files.values())
    if not found.stored:
        where = ", ".join(map(str, folders))
        raise UserError("; ".join([f"no records below {where}", *found.damaged[:1]]))
    return found


def read_whole(paths: Iterable[Path]) -> Found:
    """The records among some files; raises `UserError` for one of another schema."""
    stored, damaged = [], []
    for path in paths:
        try:
            stored.append(Stored(path, read_record(path)))
        except DamagedRecordError as error:
            damaged.append(f"left out: {error}")
    return Found(tuple(stored), tuple(damaged))


def one_a_cell(stored: Iterable[Stored], newest: bool = False) -> list[Stored]:
    """Each cell once, in the order they come in.

    A record that is final goes before one that is not; of those that are equally so the one that was
    begun last counts, if they hold the same numbers or `newest` says so.

    Raises `UserError` where two final records of a cell hold different numbers.
    """
    chosen: dict[str, Stored] = {}
    for one in stored:
        other = chosen.get(one.record.cell_id)
        chosen[one.record.cell_id] = one if other is None else _of_two(other, one, newest)
    return list(chosen.values())


def _of_two(one: Stored, other: Stored, newest: bool) -> Stored:
    if is_final(one.record) != is_final(other.record):
        return one if is_final(one.record) else other
    if is_final(one.record) and not newest and _numbers(one.record) != _numbers(other.record):
        raise UserError(
            f"{one.path} and {other.path} are of one cell and hold different numbers "
            f"({_how(one.record, other.record)}); remove one, or take the newer with --keep newest"
        )
    return max(one, other, key=lambda stored: stored.record.started)


def _numbers(record: Record) -> tuple[Any, ...]:
    """What the cell determines of its record; no times."""
    metrics = {name: value for name, value in record.metrics.items() if name != "seconds"}
    return record.status, record.data, record.trace_without_times(), metrics


def _how(one: Record, other: Record) -> str:
    if one.status != other.status:
        return f"{one.status} and {other.status}"
    apart = difference(one, other)
    if 0.0 < apart < math.inf:
        return f"a column of the trace is up to {apart:.0e} apart"
    return "what they record is not the same"


def merge(folders: Sequence[Path], results: Path, newest: bool = False) -> Merged:
    """Copy the records below some folders into a folder of records, each file whole or not at all.

    All are read, and what conflicts is refused, before one is written; what an interrupted merge wrote is
    found there by the next. A file there that is no record is set aside where a whole one takes its place.

    Raises `UserError` as `records_below` and `one_a_cell` do, and for a folder that cannot be written.
    """
    found, here = records_below(folders), read_whole(record_files(results))
    there = {stored.path for stored in here.stored}
    chosen = one_a_cell([*here.stored, *found.stored], newest)
    added = [stored for stored in chosen if stored.path not in there]
    targets = [record_path(results, one.record.config, one.record.cell_id) for one in added]
    check_writable(results)
    warnings = [*here.damaged, *found.damaged]
    for stored, target in zip(added, targets, strict=True):
        if target.exists() and target not in there:
            set_aside(target)
        write_whole(target, stored.path.read_bytes())
    return Merged(len(added), len(chosen) - len(added), tuple(warnings))
