"""Merging of the records of several folders into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench.results.cell_locks import NAME, FileLocks
from svgpbench.results.duplicates import LocatedRecord, deduplicate
from svgpbench.results.parquet_file import write_parquet_records
from svgpbench.results.records import parquet_path, record_path, set_aside
from svgpbench.results.store import check_writable, records_below, records_in


@dataclass(frozen=True)
class Merged:
    """Counts of the records that a merge added and that were there before, and its warnings."""

    added: int
    there: int  # before the merge
    warnings: tuple[str, ...]


def merge(folders: Sequence[Path], results: Path, newest: bool = False) -> Merged:
    """Merge the records below some folders into `results`, one Parquet file per experiment.

    Working records of `results` go into the file too, and stay. All records are read, and conflicts refused,
    before a file is written. A damaged working record is renamed if a good one takes its place.

    Raises `UserError` as `records_below` and `deduplicate` do, for a folder that cannot be written, and if
    another process merges into it.
    """
    with exclusive_lock(results):
        return _merge(folders, results, newest)


@contextmanager
def exclusive_lock(results: Path) -> Iterator[None]:
    """Lock a folder against other merges, and remove unfinished files of killed ones.

    Two merges at a time would each leave out what the other adds. Raises `UserError` if one is running.
    """
    if not results.is_dir():
        yield
        return
    locks = FileLocks(results / NAME)
    try:
        if not locks.acquire("merge"):
            raise UserError(f"another command puts records into {results}; wait until it has ended")
        for draft in results.glob(".*.tmp"):
            draft.unlink(missing_ok=True)
        yield
    finally:
        locks.close()


def _merge(folders: Sequence[Path], results: Path, newest: bool) -> Merged:
    found, here = records_below(folders), records_in(results)
    there = {(one.path, one.record.cell_id) for one in here.stored}
    chosen = deduplicate([*here.stored, *found.stored], newest)
    added = [one for one in chosen if (one.path, one.record.cell_id) not in there]
    check_writable(results)
    experiments: dict[str, list[LocatedRecord]] = {}
    for one in chosen:
        experiments.setdefault(one.record.config.experiment, []).append(one)
    for name, stored in experiments.items():
        if any(one.path != parquet_path(results, name) for one in stored):
            write_parquet_records(results, [one.record for one in stored])
    working = {one.path for one in here.stored}
    for one in added:
        path = record_path(results, one.record.config, one.record.cell_id)
        if path.exists() and path not in working:
            set_aside(path)
    lines = [f"left out: {line}" for line in (*here.damaged, *found.damaged)]
    return Merged(len(added), len(chosen) - len(added), tuple(lines))
