"""Broken files are read or refused in one line by every parser, and touch nothing; `make fuzz` reads more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from argument_lists import argument_files, read_arguments, writes
from command_files import line_files, lines_reader, read_speed, speed_files
from hypothesis import strategies as st
from own_files import (
    broken_paper_files,
    experiment_files,
    parquet_files,
    read_experiment,
    read_paper,
    read_parquet_records,
    read_record,
    record_files,
)
from watched_parsers import Parser, read_broken_files, watched, write_files

from svgpbench.benchmarks.stability.records import StabilityRecord
from svgpbench.benchmarks.time_to_target.records import TrainingRecord
from svgpbench.benchmarks.timing.report import SpeedReport
from svgpbench.errors import UserError
from svgpbench.experiments.loading import Experiment
from svgpbench.papers.loading import PaperFile
from svgpbench.results import parquet_file
from svgpbench.results.records import Record

FILES = {
    name: Parser(files, read, cases, door)
    for name, files, read, cases, door in [
        ("experiments", experiment_files(), read_experiment, 80, (Experiment, "model_validate_json")),
        ("records (JSON)", record_files(), read_record, 60, (Record, "model_validate")),
        ("records (Parquet)", parquet_files(), read_parquet_records, 60, (parquet_file, "_digest")),
        ("papers", broken_paper_files(), read_paper, 32, (PaperFile, "model_validate_json")),
        ("speed records", speed_files(), read_speed, 12, (SpeedReport, "from_json")),
        ("learning", line_files("learning"), lines_reader("learn"), 8, (TrainingRecord, "from_line")),
        ("survival", line_files("survival"), lines_reader("survive"), 8, (StabilityRecord, "from_line")),
    ]
}  # fmt: skip
ARGUMENTS = Parser(argument_files(), read_arguments, 24, writes=writes)


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_is_read_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    outcomes = read_broken_files(FILES[name], tmp_path / "files")
    assert sum(x.reached for x in outcomes) >= 0.3 * len(outcomes)


def test_broken_arguments_are_followed_or_refused_in_one_line(tmp_path: Path) -> None:
    read_broken_files(ARGUMENTS, tmp_path / "files")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_broken_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("broken_files.CHANGES", (0,))
    outcomes = read_broken_files(FILES[name]._replace(cases=4, unreadable=0), tmp_path / "files")
    assert {(x.end, x.reached) for x in outcomes} == {("accepted", True)}


@pytest.mark.parametrize(("arguments", "may"), [(["--out", "x"], True), (["--json"], False)])
def test_a_command_writes_where_it_is_told_to_alone(
    tmp_path: Path, arguments: list[str], may: bool
) -> None:
    (tmp_path / "arguments.json").write_text(json.dumps(["data", "split", "pima", *arguments]))
    assert writes(tmp_path) is may


def raises(folder: Path) -> None:
    raise KeyError("a key")


def hangs(folder: Path) -> None:
    while True:
        pass


def takes_memory(folder: Path) -> None:
    bytes(1 << 28)


def leaves_a_file(folder: Path) -> None:
    (folder / "left").write_text("")


def writes_elsewhere(folder: Path) -> None:
    (folder.parent / f"{folder.name} elsewhere").write_text("")


def says_nothing(folder: Path) -> None:
    raise UserError("")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (raises, "KeyError: 'a key'"),
        (hangs, "HangsError: more than"),
        (takes_memory, "MemoryError"),
        (leaves_a_file, "it wrote in the folder"),
        (writes_elsewhere, 'it wrote ["open '),
        (says_nothing, "[]"),
    ],
)
def test_each_kind_of_failure_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Path], object], why: str
) -> None:
    monkeypatch.setattr("watched_parsers.MEMORY", 1 << 26)
    parser = Parser(st.just({"own": b""}), fault, 1, (json, "loads"), limit_s=0.1)
    write_files(tmp_path / "files", {"own": b""})
    outcome = watched(parser, tmp_path / "files")
    assert (outcome.end, outcome.reached) == ("failed", False)
    assert outcome.why.startswith(why)


def test_a_failure_names_the_folder_of_its_files(tmp_path: Path) -> None:
    parser = Parser(st.sampled_from([{"own": b"a"}, {"own": b""}]), raises, 2)
    with pytest.raises(AssertionError, match=f"KeyError: 'a key'; the files are in {tmp_path}"):
        read_broken_files(parser, tmp_path / "files")
    assert (tmp_path / "files" / "own").read_bytes() == b"a"  # the simplest
