"""One Parquet file an experiment: what is read from it is what was written, or it is refused."""

from __future__ import annotations

import itertools
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from committed_records import committed
from fake_cells import identify, make_config
from test_record_files import make_record

from svgpbench.errors import UserError
from svgpbench.results.parquet_file import MARK, read_parquet_records, write_parquet_records
from svgpbench.results.records import Record, parquet_path, record_files, write_record
from svgpbench.results.store import experiments, record_of, records_below, records_in, records_of
from svgpbench.runs.pool import run_cells
from svgpbench.runs.queue import PlannedCell, record_for


def exactly(value: Any) -> str:
    """A record's content, in which 1 and 1.0, 0.0 and -0.0 and the order of keys differ."""
    return json.dumps(value, allow_nan=False)


def contents(records: list[Record]) -> list[str]:
    return [exactly(record.model_dump(mode="json")) for record in records]


@pytest.mark.parametrize("experiment", ["adam2021-fig3", "kobe2021-fig4.2"])
def test_what_is_read_is_what_was_written_to_the_last_bit(tmp_path: Path, experiment: str) -> None:
    records = list(committed(experiment)[::20])
    path = write_parquet_records(tmp_path, reversed(records))
    assert path == tmp_path / f"{experiment}.parquet"
    kept = read_parquet_records(path)
    assert contents(kept.records()) == contents(records)
    assert contents([kept.record(records[1].cell_id)]) == contents(records[1:2])


ODD: dict[str, dict[str, Any]] = {
    "a whole number among doubles": {"metrics": {"a": 1}, "trace": {"a": [1, 2.5, None]}},
    "doubles": {
        "metrics": {"a": 0.1 + 0.2},
        "trace": {"a": [5e-324, -0.0, 1.7976931348623157e308]},
    },
    "no number": {"metrics": {"a": None}, "trace": {"a": [None, None]}},
    "no point": {"metrics": {}, "trace": {"b": [], "a": []}},
    "more than 64 bits": {"metrics": {"b": 2**70}, "trace": {"b": [2**63, None]}},
    "whole numbers": {"metrics": {"b": 2**63 - 1}, "trace": {"b": [-(2**63), 0]}},
    "nothing": {"metrics": {}, "trace": {}, "environment": None, "peak_memory_bytes": None},
    "other order": {"metrics": {"b": 1, "a": 2.0}, "trace": {"b": [1], "a": [2.0]}},
    "nested": {"data": {"x": {"y": [1, 1.0, None, "z"]}}, "timing": {"t": 3, "u": None}},
    "text": {"status": "error", "message": "α\u2028\n\x00", "traceback": '"\\'},
}


def test_whatever_a_record_may_hold_is_kept(tmp_path: Path) -> None:
    records = [make_record(seed, **changes) for seed, changes in enumerate(ODD.values())]
    found = read_parquet_records(write_parquet_records(tmp_path, records)).records()
    expected = sorted(records, key=lambda record: record.cell_id)
    assert contents(found) == contents(expected)
    assert found == expected


def test_moments_keep_their_offset_and_microseconds(tmp_path: Path) -> None:
    from datetime import datetime, timezone

    zone = timezone(timedelta(hours=-3, minutes=-30))
    record = make_record(started=datetime(2026, 3, 1, 23, 59, 59, 999999, zone))
    (found,) = read_parquet_records(write_parquet_records(tmp_path, [record])).records()
    assert found.started.isoformat() == "2026-03-01T23:59:59.999999-03:30"


def rewrite(path: Path, content: bytes) -> None:
    """Other bytes in the place of a file, however short a time after it was written."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(0, next(MOMENTS)))


MOMENTS = itertools.count(1)


def test_a_file_of_which_any_byte_was_changed_is_refused_or_says_the_same(tmp_path: Path) -> None:
    records = [make_record(seed) for seed in range(3)]
    path = write_parquet_records(tmp_path, records)
    whole, expected = path.read_bytes(), contents(read_parquet_records(path).records())
    rng, refused = np.random.default_rng(0), 0
    for at in rng.choice(len(whole), 400, replace=False):
        flipped = bytes([whole[at] ^ (1 << rng.integers(8))])
        rewrite(path, whole[:at] + flipped + whole[at + 1 :])
        try:
            assert (
                contents(read_parquet_records(path).records()) == expected
            )  # padding, or a statistic
        except UserError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 100
    for length in (0, 3, 40, len(whole) // 2, len(whole) - 1):
        rewrite(path, whole[:length])
        with pytest.raises(UserError, match=r"fake\.parquet is damaged: .*; take another copy"):
            read_parquet_records(path)


def rewritten(path: Path, change: Any) -> None:
    """The file as another program writes it back, with its metadata."""
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


def test_numbers_that_another_program_changed_are_refused(tmp_path: Path) -> None:
    path = write_parquet_records(tmp_path, [make_record(seed) for seed in range(3)])
    expected = contents(read_parquet_records(path).records())
    rewritten(path, lambda table: table)
    assert contents(read_parquet_records(path).records()) == expected
    at = pq.read_schema(path).get_field_index("trace_elbo")

    def moved(table: pa.Table) -> pa.Table:
        values = table["trace_elbo"].to_pylist()
        values[1][0] = float(np.nextafter(values[1][0], 1.0))
        return table.set_column(at, "trace_elbo", pa.array(values, pa.list_(pa.float64())))

    for change in (moved, lambda table: table.drop_columns("status"), lambda table: table.slice(1)):
        write_parquet_records(tmp_path, [make_record(seed) for seed in range(3)])
        rewritten(path, change)
        with pytest.raises(UserError, match="its digest is not that of its values"):
            read_parquet_records(path)


def test_a_table_of_another_kind_is_no_file_of_records(tmp_path: Path) -> None:
    write_parquet_records(tmp_path, [make_record()])
    pq.write_table(pa.table({"y": [1.0]}), tmp_path / "table.parquet")
    assert experiments(tmp_path) == ["fake"]
    assert len(records_in(tmp_path).stored) == len(records_below([tmp_path]).stored) == 1
    with pytest.raises(UserError, match=r"table\.parquet holds no records: move it"):
        records_in(tmp_path, "table")
    parquet_path(tmp_path, "fake").rename(tmp_path / "other.parquet")
    with pytest.raises(UserError, match=r"other\.parquet holds the records of fake: give it that"):
        records_in(tmp_path)


def test_experiments_are_those_that_are_kept_and_those_of_a_run(tmp_path: Path) -> None:
    assert experiments(tmp_path) == []
    write_parquet_records(tmp_path, [make_record()])
    write_record(tmp_path, make_record(config=make_config("finish", experiment="late")))
    assert experiments(tmp_path) == ["fake", "late"]
    assert len(records_in(tmp_path).stored) == 2


def test_a_file_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = write_parquet_records(tmp_path, [make_record()])
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[MARK]) | {"schema_version": 9}
    pq.write_table(table.replace_schema_metadata({MARK: json.dumps(about)}), path)
    with pytest.raises(UserError, match="record schema 9, this version reads 2: use the version"):
        read_parquet_records(path)


def test_a_working_record_goes_before_a_kept_one_by_the_rules_of_merging(tmp_path: Path) -> None:
    kept = [make_record(seed, status=status) for seed, status in ((0, "ok"), (1, "crashed"))]
    write_parquet_records(tmp_path, kept)
    later = {"started": kept[0].started + timedelta(seconds=9), "wall_s": 7.0}
    newer = kept[0].model_copy(update=later)
    for record, wins in (
        (newer, True),
        (newer.model_copy(update={"status": "timeout"}), False),
        (kept[0].model_copy(update={"started": kept[0].started - timedelta(seconds=9)}), False),
        (kept[1].model_copy(update={"status": "diverged"}), True),
    ):
        path = write_record(tmp_path, record)
        old = next(one for one in kept if one.cell_id == record.cell_id)
        expected = record if wins else old
        asked = identify(record.config)
        assert record_of(tmp_path, record.config, record.cell_id) == expected
        (one,) = records_of(tmp_path, [asked]).stored
        assert one == (path if wins else parquet_path(tmp_path, "fake"), expected)
        assert expected in records_in(tmp_path, "fake").records
        assert len(records_in(tmp_path).stored) == 2
        path.unlink()


def test_a_run_leaves_alone_what_is_kept(tmp_path: Path) -> None:
    cells = [make_config("finish", seed) for seed in range(3)]
    kept = [make_record(0), make_record(1, status="timeout")]
    write_parquet_records(tmp_path, kept)
    assert record_for(tmp_path, PlannedCell(identify(cells[0]))) == kept[0]
    summary = run_cells(cells, results=tmp_path, jobs=1, target="fake_cells")
    assert (summary.resumed, len(summary.records)) == (1, 2)
    assert {path.stem for path in record_files(tmp_path)} == {
        identify(cell).cell_id for cell in cells[1:]
    }
    found = records_in(tmp_path, "fake").records
    assert len(found) == 3 and {record.status for record in found} == {"ok"}
    assert run_cells(cells, results=tmp_path, jobs=1, target="fake_cells").resumed == 3
