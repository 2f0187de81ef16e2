"""Merging of the records of several folders into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from svgpbench.atomic import refuse_unwritable
from svgpbench.errors import UserError
from svgpbench.results.cell_locks import FileLocks
from svgpbench.results.duplicates import LocatedRecord, deduplicate
from svgpbench.results.parquet_file import write_parquet_records
from svgpbench.results.records import parquet_path, record_path, set_aside
from svgpbench.results.store import LoadedRecords, records_below, records_in


@dataclass(frozen=True)
class Merged:
    """Number of records that a merge added, number that existed before, and warnings."""

    added: int
    existing: int  # before the merge
    warnings: tuple[str, ...]


def merge(folders: Sequence[Path], results: Path, newest: bool = False) -> Merged:
    """Merge the records below some folders into `results`, one Parquet file per experiment.

    Working records of `results` are copied into the Parquet file too. All records are read, and conflicts
    refused, before a file is written. A damaged working record is renamed if a good one replaces it.

    Raises `UserError` as `records_below` and `deduplicate` do, and if the folder cannot be written or another
    process merges into it.
    """
    incoming = records_below(folders)
    if not results.is_dir():
        deduplicate(incoming.stored, newest)  # conflicts leave no empty folder behind
        refuse_unwritable(results, str(results))
    with exclusive_lock(results):
        return _merge(incoming, results, newest)


@contextmanager
def exclusive_lock(results: Path) -> Iterator[None]:
    """Lock a folder against other merges, and remove unfinished files of merges that were killed.

    Of two merges at the same time, each would lose the records of the other. Raises `UserError` if another
    merge is running.
    """
    locks = FileLocks.in_folder(results)
    try:
        if not locks.acquire("merge"):
            raise UserError(f"another command puts records into {results}; wait until it has ended")
        for draft in results.glob(".*.tmp"):
            draft.unlink(missing_ok=True)
        yield
    finally:
        locks.close()


def _merge(incoming: LoadedRecords, results: Path, newest: bool) -> Merged:
    existing = records_in(results)
    existing_ids = {(located.path, located.record.cell_id) for located in existing.stored}
    merged = deduplicate([*existing.stored, *incoming.stored], newest)
    added = [
        located for located in merged if (located.path, located.record.cell_id) not in existing_ids
    ]
    experiments: dict[str, list[LocatedRecord]] = {}
    for located in merged:
        experiments.setdefault(located.record.config.experiment, []).append(located)
    for name, stored in experiments.items():
        if any(located.path != parquet_path(results, name) for located in stored):
            write_parquet_records(results, [located.record for located in stored])
    # only now that the file is whole: a merge that is killed before has renamed nothing
    working = {located.path for located in existing.stored}
    for located in added:
        path = record_path(results, located.record.config, located.record.cell_id)
        if path.exists() and path not in working:
            set_aside(path)
    lines = [f"left out: {line}" for line in (*existing.damaged, *incoming.damaged)]
    return Merged(len(added), len(merged) - len(added), tuple(lines))
