"""Records of several folders put together: each cell once, and what does not fit named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench.results.cell_locks import NAME, Claims
from svgpbench.results.duplicates import Stored, one_a_cell
from svgpbench.results.parquet_file import write_kept
from svgpbench.results.records import kept_path, record_path, set_aside
from svgpbench.results.store import check_writable, records_below, records_in


@dataclass(frozen=True)
class Merged:
    """What became of the records of some folders in another."""

    added: int
    there: int  # before
    warnings: tuple[str, ...]


def merge(folders: Sequence[Path], results: Path, newest: bool = False) -> Merged:
    """Put the records below some folders into a folder, a Parquet file an experiment, whole or not at all.

    Working records of that folder go into the file too, and stay. All are read, and what conflicts is
    refused, before one file is written. A working record there that is damaged is set aside where a whole
    one takes its place.

    Raises `UserError` as `records_below` and `one_a_cell` do, for a folder that cannot be written, and where
    another does the same at the moment.
    """
    with alone_in(results):
        return _merge(folders, results, newest)


@contextmanager
def alone_in(results: Path) -> Iterator[None]:
    """Keep others from merging into a folder, and remove what killed ones had begun to write there.

    Two at once would each leave out what the other adds. Raises `UserError` where another does.
    """
    if not results.is_dir():
        yield
        return
    claims = Claims(results / NAME)
    try:
        if not claims.take("merge"):
            raise UserError(f"another command puts records into {results}; wait until it has ended")
        for draft in results.glob(".*.tmp"):
            draft.unlink(missing_ok=True)
        yield
    finally:
        claims.close()


def _merge(folders: Sequence[Path], results: Path, newest: bool) -> Merged:
    found, here = records_below(folders), records_in(results)
    there = {(one.path, one.record.cell_id) for one in here.stored}
    chosen = one_a_cell([*here.stored, *found.stored], newest)
    added = [one for one in chosen if (one.path, one.record.cell_id) not in there]
    check_writable(results)
    experiments: dict[str, list[Stored]] = {}
    for one in chosen:
        experiments.setdefault(one.record.config.experiment, []).append(one)
    for name, stored in experiments.items():
        if any(one.path != kept_path(results, name) for one in stored):
            write_kept(results, [one.record for one in stored])
    working = {one.path for one in here.stored}
    for one in added:
        path = record_path(results, one.record.config, one.record.cell_id)
        if path.exists() and path not in working:
            set_aside(path)
    lines = [f"left out: {line}" for line in (*here.damaged, *found.damaged)]
    return Merged(len(added), len(chosen) - len(added), tuple(lines))
