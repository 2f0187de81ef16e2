"""Records as one tidy table: every number that of its record, under the name that the page gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from committed_records import committed, worked

from svgpbench.errors import UserError
from svgpbench.methods.mean_covariance import MeanCholeskySVGP
from svgpbench.metrics import METRICS
from svgpbench.results import tidy
from svgpbench.results.duplicates import LocatedRecord
from svgpbench.results.records import write_record
from svgpbench.results.store import records_below

ROOT = Path(__file__).parents[2]
SOME = committed("adam2021-fig3")[::50]
ARROW = {
    "text": ("string", "large_string"),
    "whole": ("int64",),
    "number": ("double",),
    "truth": ("bool",),
    "moment": ("timestamp[us, tz=UTC]",),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[LocatedRecord, ...]:
    """24 records of Figure 3, and the same cell of one of them diverged in another fold's place."""
    folder = worked(tmp_path_factory.mktemp("records"), SOME)
    found = records_below([folder]).stored
    failed = found[0].record.model_copy(
        update={"status": "diverged", "message": "too far", "environment": None}
    )
    write_record(folder, failed)
    return records_below([folder]).stored


def by_id(table: pd.DataFrame) -> dict[str, pd.Series[object]]:
    return {str(row["cell_id"]): row for _, row in table.iterrows()}


def test_a_table_in_parquet_says_what_the_records_say(
    stored: tuple[LocatedRecord, ...], tmp_path: Path
) -> None:
    path = tmp_path / "new" / "cells.parquet"
    tidy.write_table(path, tidy.cells_table(stored))
    rows = by_id(pd.read_parquet(path))
    assert len(rows) == len(stored) == len(SOME)
    for file, record in stored:
        row, config = rows[record.cell_id], record.config
        said = {
            "experiment": "adam2021-fig3",
            "data": config.data.name,
            "method": config.method.label,
            "method_name": config.method.name,
            "method_version": record.method_version,
            "backend": config.backend.name,
            "split_seed": config.split.seed,
            "fold": config.split.fold,
            "perturbation": config.perturbation,
            "n_train": record.data["n_train"],
            "n_test": record.data["n_test"],
            "fingerprint": record.data["fingerprint"],
            "split_hash": record.data["split_hash"],
            "standing": "current",
            "status": record.status,
            "message": record.message,
            "wall_s": record.wall_s,
            "peak_memory_bytes": record.peak_memory_bytes,
            "file": str(file),
        }
        assert {key: row[key] for key in said} == said
        assert json.loads(str(row["config"])) == config.model_dump(mode="json")
        assert row["started"] == record.started
        ended = record.status == "ok"
        assert row["seconds"] == record.timing["train_s"]
        for name in ({*METRICS} - {"seconds"}) | {"variance", "lengthscale_max"}:
            expected = record.metrics.get(name) if ended else None
            assert row[name] == expected or (expected is None and np.isnan(float(str(row[name]))))
        if record.environment is not None:
            assert json.loads(str(row["versions"])) == record.environment.versions
            assert (row["commit"], row["dirty"]) == (
                record.environment.commit,
                record.environment.dirty,
            )
        else:
            assert pd.isna(row["commit"]) and pd.isna(row["dirty"])


def test_a_table_of_traces_has_every_point_of_every_cell(stored: tuple[LocatedRecord, ...]) -> None:
    table = tidy.traces_table(stored)
    for _, record in stored:
        points = table[table["cell_id"] == record.cell_id]
        for name, values in record.trace.items():
            assert points[name].tolist() == values
        assert set(points["status"]) == {record.status}
        assert set(points["standing"]) == {"current"}
    assert len(table) == sum(len(one.record.trace["iteration"]) for one in stored)
    with pytest.raises(UserError, match="no cell of these records has a trace"):
        tidy.traces_table(without_trace(stored[:2]))


def without_trace(stored: tuple[LocatedRecord, ...]) -> list[LocatedRecord]:
    return [LocatedRecord(path, record.model_copy(update={"trace": {}})) for path, record in stored]


def test_csv_keeps_every_digit(stored: tuple[LocatedRecord, ...], tmp_path: Path) -> None:
    table = tidy.cells_table(stored)
    tidy.write_table(tmp_path / "cells.csv", table)
    read = pd.read_csv(tmp_path / "cells.csv", dtype=str)
    assert list(read) == list(table)
    for name in ("elbo", "nlpd", "wall_s"):
        assert np.array_equal(read[name].astype(float), table[name], equal_nan=True)


@pytest.mark.parametrize("traces", [False, True])
def test_columns_are_those_that_the_page_lists(
    stored: tuple[LocatedRecord, ...], tmp_path: Path, traces: bool
) -> None:
    """Name, type, unit and meaning; a column that a few records fill has its type all the same."""
    table = (tidy.traces_table if traces else tidy.cells_table)(stored[:1])
    tidy.write_table(tmp_path / "t.parquet", table)
    schema = pyarrow.parquet.read_schema(tmp_path / "t.parquet")
    declared = (*tidy.CELL, *(tidy.OF_A_POINT if traces else tidy.OF_A_CELL))
    assert schema.names[: len(declared)] == [column.name for column in declared]
    for column in declared:
        assert str(schema.field(column.name).type) in ARROW[column.type], column.name
    for name in schema.names[len(declared) :]:
        assert str(schema.field(name).type) == "double", name
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) ?\| (.*) \|$", page, re.MULTILINE)
    for column in declared:
        assert tuple(column) in listed, f"| `{column.name}` | {column.type} | {column.unit} | ..."
    known = {column.name for column in (*tidy.CELL, *tidy.OF_A_CELL, *tidy.OF_A_POINT)}
    assert {name for name, *_ in listed} == known


def test_records_that_do_not_belong_together_are_told(
    stored: tuple[LocatedRecord, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(tidy.warnings(stored, tidy.cells_table(stored))) == []
    old = [one for one in stored if one.record.config.method.name == "q-svgp"]
    monkeypatch.setattr(MeanCholeskySVGP, "version", 9)
    newer = LocatedRecord(old[0].path, old[0].record.model_copy(update={"method_version": 9}))
    table = tidy.cells_table([newer, *old[1:], *[x for x in stored if x not in old]])
    assert set(table["standing"][1 : len(old)]) == {
        "superseded: made by version 1 of q-svgp, now at 9"
    }
    lines = list(tidy.warnings([newer, *old[1:]], table))
    said = f"{len(old) - 1} of {len(stored)} cells are superseded: made by version 1 of q-svgp"
    assert any(line.startswith(said) for line in lines)
    assert "method q-svgp is here in 2 forms: version 1, version 9" in lines
    place = stored[-1].record.environment
    assert place is not None
    later = place.model_copy(update={"versions": place.versions | {"numpy": "9.0"}})
    moved = LocatedRecord(
        stored[-1].path, stored[-1].record.model_copy(update={"environment": later})
    )
    (line,) = tidy.warnings([*stored[:-1], moved], tidy.cells_table(stored[:1]))
    assert line == f"records were made with numpy {place.versions['numpy']} and 9.0"


def test_other_data_under_one_name_are_told_also_where_they_are_not_at_hand(
    stored: tuple[LocatedRecord, ...],
) -> None:
    (path, record), (_, other) = stored[1], stored[1]
    gone = record.config.data.model_copy(
        update={"path": "gone.csv", "target": "y", "task": "regression"}
    )
    config = record.config.model_copy(update={"data": gone})
    moved = other.model_copy(
        update={"config": config, "cell_id": "f" * 16, "data": record.data | {"fingerprint": "x"}}
    )
    table = tidy.cells_table([LocatedRecord(path, record), LocatedRecord(path, moved)])
    unknown = str(table["standing"][1])
    assert unknown.startswith("unknown: ") and "gone.csv" in unknown
    lines = list(tidy.warnings([LocatedRecord(path, record), LocatedRecord(path, moved)], table))
    assert lines[0] == f"1 of 2 cells are {unknown}"
    assert lines[1].startswith(
        f"data set {record.config.data.name} is here in 2 forms: fingerprint"
    )
