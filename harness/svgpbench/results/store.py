"""Where records lie: working ones in a JSON file each, kept ones in a Parquet file an experiment.

Who reads records asks here and need not know which. Of a cell that has both, the record that is final
counts, else the one that was begun last: a run with `--force` goes before what was kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.identity import Identity
from svgpbench.results.duplicates import LocatedRecord, deduplicate
from svgpbench.results.records import (
    DamagedRecordError,
    Record,
    is_record_name,
    parquet_path,
    read_record,
    record_files,
    record_path,
)


@dataclass(frozen=True)
class Found:
    """Records, and a line on each working one that is cut off or was changed."""

    stored: tuple[LocatedRecord, ...]
    damaged: tuple[str, ...]

    @property
    def records(self) -> list[Record]:
        """The records alone."""
        return [one.record for one in self.stored]


def experiments(folder: Path) -> list[str]:
    """The names of the experiments that have records in a folder; none where there is no folder."""
    working = {path.parents[1].name for path in record_files(folder)}
    return sorted(working | {path.stem for path in _kept_files(folder.glob("*.parquet"))})


def records_in(folder: Path, experiment: str | None = None) -> Found:
    """Every record of an experiment, or of all, by backend and cell id, each cell once.

    Raises `UserError` for a record of another schema and for a Parquet file that is damaged.
    """
    stored: list[LocatedRecord] = []
    damaged: list[str] = []
    for name in experiments(folder) if experiment is None else [experiment]:
        working = _whole(record_files(folder, name))
        both = [*_kept(folder, name), *working.stored]
        stored += sorted(deduplicate(both, newest=True), key=_place)
        damaged += working.damaged
    return Found(tuple(stored), tuple(damaged))


def records_of(folder: Path, cells: Sequence[Identity]) -> Found:
    """The records there are of some cells, in their order; errors as of `records_in`."""
    stored: list[LocatedRecord] = []
    damaged: list[str] = []
    for cell in cells:
        path = record_path(folder, cell.config, cell.cell_id)
        working = _whole([path] if path.exists() else [])
        kept = _kept_one(folder, cell.config.experiment, cell.cell_id)
        stored += deduplicate([*kept, *working.stored], newest=True)
        damaged += working.damaged
    return Found(tuple(stored), tuple(damaged))


def record_of(folder: Path, config: CellConfig, cell_id: str) -> Record | None:
    """The record of a cell, if there is one.

    Raises `DamagedRecordError` for a working record that is damaged, else as `records_in`.
    """
    path = record_path(folder, config, cell_id)
    working = [LocatedRecord(path, read_record(path))] if path.exists() else []
    both = [*_kept_one(folder, config.experiment, cell_id), *working]
    return deduplicate(both, newest=True)[0].record if both else None


def record_by_id(folder: Path, cell_id: str) -> Record | None:
    """The record of a cell id, of whatever experiment, if there is one; errors as of `record_of`."""
    both = [one for name in experiments(folder) for one in _kept_one(folder, name, cell_id)]
    both += [
        LocatedRecord(path, read_record(path))
        for path in sorted(folder.glob(f"*/*/{cell_id}.json"))
    ]
    return deduplicate(both, newest=True)[0].record if both else None


def records_below(folders: Sequence[Path]) -> Found:
    """Every record below some folders, however deep, by folder and path; a cell as often as it is there.

    Raises `UserError` for a folder that is not there, where there is no whole record at all, and as
    `records_in` does.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder")
    files = _once(path for each in folders for path in sorted(each.rglob("*/*/*.json")))
    tables = _once(path for each in folders for path in sorted(each.rglob("*.parquet")))
    working = _whole(path for path in files if is_record_name(path.name))
    kept = [one for path in _kept_files(tables) for one in _kept(path.parent, path.stem)]
    if not kept and not working.stored:
        where = ", ".join(map(str, folders))
        raise UserError("; ".join([f"no records below {where}", *working.damaged[:1]]))
    return Found((*kept, *working.stored), working.damaged)


def _once(paths: Iterable[Path]) -> Iterable[Path]:
    """Each file once, whatever ways lead to it."""
    return {path.resolve(): path for path in paths}.values()


def _whole(paths: Iterable[Path]) -> Found:
    """The records among some working files; raises `UserError` for one of another schema."""
    stored, damaged = [], []
    for path in paths:
        try:
            stored.append(LocatedRecord(path, read_record(path)))
        except DamagedRecordError as error:
            damaged.append(str(error))
    return Found(tuple(stored), tuple(damaged))


def _kept_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Those among Parquet files that hold records; tables of another kind may lie beside them."""
    for path in paths:
        from svgpbench.results.parquet_file import is_parquet_records  # PyArrow takes its time

        if is_parquet_records(path):
            yield path


def _kept(folder: Path, experiment: str) -> list[LocatedRecord]:
    path = parquet_path(folder, experiment)
    if not path.exists():
        return []
    from svgpbench.results.parquet_file import read_parquet_records

    return [LocatedRecord(path, record) for record in read_parquet_records(path).records()]


def _kept_one(folder: Path, experiment: str, cell_id: str) -> list[LocatedRecord]:
    path = parquet_path(folder, experiment)
    if not path.exists():
        return []
    from svgpbench.results.parquet_file import read_parquet_records

    kept = read_parquet_records(path)
    return [LocatedRecord(path, kept.record(cell_id))] if cell_id in kept.rows else []


def _place(one: LocatedRecord) -> tuple[str, str]:
    return one.record.config.backend.name, one.record.cell_id


def check_writable(results: Path) -> None:
    """Make the folder of records, so that one that cannot be written is known before hours pass."""
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file; name a folder" if results.is_file() else error.strerror
        raise UserError(f"cannot write into {results}: {why}") from error
    if not os.access(results, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {results}: permission denied")
