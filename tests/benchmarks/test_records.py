"""The store of benchmark records: what is appended is read, whatever lies between."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from svgpbench.benchmarks.records import append, read
from svgpbench.benchmarks.stability.plan import read_stability_plan
from svgpbench.benchmarks.stability.records import StabilityRecord
from svgpbench.benchmarks.time_to_target.records import TrainingRecord
from svgpbench.errors import RecordsWarning, UserError
from svgpbench.experiments.identity import digests_of
from svgpbench.plugins import BACKENDS

PLAN = read_stability_plan()
CELL = PLAN.cell("naval", "gpflow", "natgrad", PLAN.centre, 3)
RECORD = StabilityRecord(run=CELL, status="not_pd", step=4, bounds=(-3.0, -2.5), n=10)


def test_a_record_is_read_behind_what_a_killed_writer_left(tmp_path: Path) -> None:
    path = tmp_path / "gpflow.jsonl"
    append(tmp_path, RECORD)
    path.write_text(path.read_text() + path.read_text()[:40])
    append(tmp_path, RECORD.model_copy(update={"step": 5}))
    assert list(read(tmp_path, StabilityRecord)) == [
        RECORD,
        RECORD.model_copy(update={"step": 5}),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "null",
        '{"step": 1}',
        "[" * 5000,
        '{"kind": "time-to-target", "step": 1',
    ],
)
def test_a_line_that_is_no_record_is_skipped(tmp_path: Path, line: str) -> None:
    append(tmp_path, RECORD)
    with (tmp_path / "gpflow.jsonl").open("a") as file:
        file.write(line + "\n")
    assert list(read(tmp_path, StabilityRecord)) == [RECORD]


def test_a_record_of_another_kind_and_one_of_wrong_types_are_skipped(tmp_path: Path) -> None:
    append(tmp_path, RECORD)
    path = tmp_path / "gpflow.jsonl"
    assert not list(read(tmp_path, TrainingRecord))
    text = path.read_text()
    for wrong in (
        text.replace('"stability"', '"time-to-target"'),
        text.replace('"step": 4', '"step": "4"'),
        text.replace('"not_pd"', '"unwell"'),
        text.replace('"steps": 1000', '"steps": 1.5'),
    ):
        assert wrong != text
        path.write_text(wrong)
        assert not list(read(tmp_path, StabilityRecord))


def test_damaged_lines_are_counted_by_file_and_line(tmp_path: Path) -> None:
    append(tmp_path, RECORD)
    path = tmp_path / "gpflow.jsonl"
    good = path.read_text()
    other_kind = good.replace('"stability"', '"time-to-target"')
    renamed = good.replace('"library"', '"libary"')
    path.write_text("\n".join([good[:-1], "", good[:30], other_kind[:-1], renamed[:-1], good]))
    with pytest.warns(RecordsWarning) as said:
        assert read(tmp_path, StabilityRecord) == [RECORD, RECORD]
    assert [str(x.message) for x in said] == [
        f"{path}: 2 damaged records are left out (lines 3, 5)"
    ]
    path.write_text(good)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path, StabilityRecord) == [RECORD]


def test_records_by_other_code_of_a_plugin_are_left_out_and_counted(tmp_path: Path) -> None:
    numpy, then = digests_of([(BACKENDS, "numpy")]), {"backend numpy": "acme:1"}
    ours = {"backend numpy": "svgpbench:of an earlier commit", "method gone": "acme:1"}
    for code in (numpy, then, ours):
        append(tmp_path, RECORD.model_copy(update={"code": code}))
    with pytest.warns(
        RecordsWarning, match="1 records are left out: made by other code of backend"
    ):
        assert [record.code for record in read(tmp_path, StabilityRecord)] == [numpy, ours]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*gpflow\.jsonl: "):
        append(tmp_path / "file", RECORD)
