"""The store of records: a JSON file per working record, a Parquet file per experiment.

Readers need not know which file has a record. If a cell has a record in both, the final record is taken. Of
two final records, the one that started later is taken, so that a run with `--force` replaces the older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.identity import CellIdentity
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
class LoadedRecords:
    """Records with their files, and a message for each damaged working record."""

    stored: tuple[LocatedRecord, ...]
    damaged: tuple[str, ...]

    @property
    def records(self) -> list[Record]:
        """The records without their files."""
        return [located.record for located in self.stored]


def experiments(folder: Path) -> list[str]:
    """Return the names of the experiments that have records in a folder."""
    working = {path.parents[1].name for path in record_files(folder)}
    return sorted(working | {path.stem for path in _parquet_files(folder.glob("*.parquet"))})


def records_in(folder: Path, experiment: str | None = None) -> LoadedRecords:
    """Return one record per cell of an experiment, or of all, sorted by backend and cell id.

    Raises `UserError` for a record of another schema and for a damaged Parquet file.
    """
    stored: list[LocatedRecord] = []
    damaged: list[str] = []
    for name in experiments(folder) if experiment is None else [experiment]:
        working = _read_working(record_files(folder, name))
        # both: cells that run after `svgpbench collect` are working records until it is called again
        candidates = [*_parquet_records(folder, name), *working.stored]
        stored += sorted(
            deduplicate(candidates, newest=True),
            key=lambda located: (located.record.config.backend.name, located.record.cell_id),
        )
        damaged += working.damaged
    return LoadedRecords(tuple(stored), tuple(damaged))


def records_by_experiment(folder: Path) -> dict[str, LoadedRecords]:
    """Return the records of each experiment in a folder, by name.

    Raises `UserError` if the folder does not exist, and as `records_in`.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder; name one of records with --results")
    return {name: records_in(folder, name) for name in experiments(folder)}


def records_of(folder: Path, cells: Sequence[CellIdentity]) -> LoadedRecords:
    """Return the records of some cells in their order, without missing ones. Raises as `records_in`."""
    stored: list[LocatedRecord] = []
    damaged: list[str] = []
    for cell in cells:
        path = record_path(folder, cell.config, cell.cell_id)
        working = _read_working([path] if path.exists() else [])
        collected = _parquet_records(folder, cell.config.experiment, cell.cell_id)
        stored += deduplicate([*collected, *working.stored], newest=True)
        damaged += working.damaged
    return LoadedRecords(tuple(stored), tuple(damaged))


def record_of(folder: Path, config: CellConfig, cell_id: str) -> Record | None:
    """Return the record of a cell, or None.

    Raises `DamagedRecordError` for a damaged working record, else as `records_in`.
    """
    path = record_path(folder, config, cell_id)
    working = [LocatedRecord(path, read_record(path))] if path.exists() else []
    candidates = [*_parquet_records(folder, config.experiment, cell_id), *working]
    return deduplicate(candidates, newest=True)[0].record if candidates else None


def record_by_id(folder: Path, cell_id: str) -> Record | None:
    """Return the record of a cell id in any experiment, or None. Raises as `record_of`."""
    candidates = [
        located
        for name in experiments(folder)
        for located in _parquet_records(folder, name, cell_id)
    ]
    candidates += [
        LocatedRecord(path, read_record(path))
        for path in sorted(folder.glob(f"*/*/{cell_id}.json"))
    ]
    return deduplicate(candidates, newest=True)[0].record if candidates else None


def records_below(folders: Sequence[Path]) -> LoadedRecords:
    """Return every record below some folders, at any depth, sorted by folder and path.

    A cell may appear several times. Raises `UserError` for a folder that does not exist, if there are no
    undamaged records, and as `records_in` does.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder")
    files = _once(path for folder in folders for path in sorted(folder.rglob("*/*/*.json")))
    tables = _once(path for folder in folders for path in sorted(folder.rglob("*.parquet")))
    working = _read_working(path for path in files if is_record_name(path.name))
    collected = [
        located
        for path in _parquet_files(tables)
        for located in _parquet_records(path.parent, path.stem)
    ]
    if not collected and not working.stored:
        where = ", ".join(map(str, folders))
        raise UserError("; ".join([f"no records below {where}", *working.damaged[:1]]))
    return LoadedRecords((*collected, *working.stored), working.damaged)


def _once(paths: Iterable[Path]) -> Iterable[Path]:
    """Return each file once, also if several paths lead to it."""
    return {path.resolve(): path for path in paths}.values()


def _read_working(paths: Iterable[Path]) -> LoadedRecords:
    """Read some working records. Raises `UserError` for one of another schema."""
    stored, damaged = [], []
    for path in paths:
        try:
            stored.append(LocatedRecord(path, read_record(path)))
        except DamagedRecordError as error:
            damaged.append(str(error))
    return LoadedRecords(tuple(stored), tuple(damaged))


def _parquet_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the Parquet files that hold records. Their folder may contain other tables."""
    for path in paths:
        # importing PyArrow takes long
        from svgpbench.results.parquet_file import is_parquet_records

        if is_parquet_records(path):
            yield path


def _parquet_records(
    folder: Path, experiment: str, cell_id: str | None = None
) -> list[LocatedRecord]:
    """Return the records of an experiment's Parquet file, or only the record of one cell if it is there."""
    path = parquet_path(folder, experiment)
    if not path.exists():
        return []
    from svgpbench.results.parquet_file import read_parquet_records

    file = read_parquet_records(path)
    if cell_id is None:
        return [LocatedRecord(path, record) for record in file.records()]
    return [LocatedRecord(path, file.record(cell_id))] if cell_id in file.rows else []
