"""The store of benchmark records: what is appended is read, whatever lies between."""

from __future__ import annotations

from pathlib import Path

import pytest

from svgpbench.benchmarks.records import append, read
from svgpbench.benchmarks.stability.plan import StabilityCell, read_plan
from svgpbench.benchmarks.stability.records import StabilityRecord
from svgpbench.benchmarks.time_to_target.records import TrainingRecord
from svgpbench.errors import UserError

CELL = StabilityCell("naval", "gpflow", "natgrad", read_plan().centre, 1000, 3)
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


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*gpflow\.jsonl: "):
        append(tmp_path / "file", RECORD)
