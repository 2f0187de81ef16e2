"""Records of several folders in one: each cell once, and nothing lost, changed or quietly chosen."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from svgpbench.errors import UserError
from svgpbench.runner.merging import merge, one_a_cell, records_below
from svgpbench.runner.records import Record, read_record, record_files, record_path, write_record

RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = sorted(record_files(RESULTS, "adam2021-fig3"))[::120]
"""Ten records of Figure 3, of three backends."""


def shard(folder: Path, files: list[Path]) -> Path:
    """Those records in a folder, where a run would put them."""
    for file in files:
        target = folder.joinpath(*file.parts[-3:])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def changed(folder: Path, file: Path, later: float = 0.0, **changes: object) -> Record:
    """The record written into a folder with something else in it, begun so many seconds later."""
    record = read_record(file)
    started = record.started + timedelta(seconds=later)
    other = record.model_copy(update={"started": started, **changes})
    write_record(folder, other)
    return other


def moved(file: Path) -> dict[str, object]:
    """A trace whose bound is another in the tenth digit."""
    trace = read_record(file).trace
    return {"trace": trace | {"elbo": [float(x or 0) * (1 + 1e-10) for x in trace["elbo"]]}}


def test_shards_make_the_folder_that_one_run_would_have_made(tmp_path: Path) -> None:
    first = shard(tmp_path / "1", COMMITTED[:6])
    second = shard(tmp_path / "deeper" / "2", COMMITTED[4:])  # two cells are in both
    (first / "notes.json").write_text("{}")  # no record, nor where one lies
    (first / "a" / "b").mkdir(parents=True)
    (first / "a" / "b" / "claims.json").write_text("{}")
    merged = merge([first, tmp_path / "deeper"], tmp_path / "whole")
    assert (merged.added, merged.there, merged.warnings) == (10, 0, ())
    assert content(tmp_path / "whole") == content(shard(tmp_path / "all", COMMITTED))
    again = merge([first, second], tmp_path / "whole")
    assert (again.added, again.there) == (0, 10)
    # a folder given twice, and one within another, is read once
    assert len(records_below([tmp_path / "1", tmp_path / "1"]).stored) == 6
    inside = shard(tmp_path / "whole" / "late", COMMITTED[:1])
    assert merge([inside], tmp_path / "whole").added == 0


def test_a_merge_that_is_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, results = shard(tmp_path / "1", COMMITTED), tmp_path / "whole"
    sync, count = os.fsync, iter(range(100))

    def full(descriptor: int) -> None:
        if next(count) == 4:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match="No space left on device"):
            merge([source], results)
    assert len(content(results)) == 4
    merged = merge([source], results)
    assert (merged.added, merged.there) == (6, 4)
    assert content(results) == content(source)


def test_records_of_one_cell_with_other_numbers_are_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    first, second = shard(tmp_path / "1", COMMITTED), tmp_path / "2"
    file = COMMITTED[3]
    other = changed(second, file, later=60.0, **moved(file))
    for folders, results in (([first, second], tmp_path / "whole"), ([second], first)):
        before = content(first)
        with pytest.raises(UserError, match=r"up to 1e-10 apart\); remove one, or take the newer"):
            merge(folders, results)
        assert content(first) == before
        assert not (tmp_path / "whole").exists()
    with pytest.raises(UserError) as caught:
        merge([first, second], tmp_path / "whole")
    for folder in (first, second):
        assert str(folder.joinpath(*file.parts[-3:])) in str(caught.value)
    for folders in ([first, second], [second, first]):
        merge(folders, tmp_path / "whole", newest=True)
        path = record_path(tmp_path / "whole", other.config, other.cell_id)
        assert read_record(path) == other
        shutil.rmtree(tmp_path / "whole")


@pytest.mark.parametrize(
    "change",
    [{"status": "diverged"}, {"metrics": {"elbo": -1.0}}, {"data": {"n_train": 1}}],
    ids=lambda change: next(iter(change)),
)
def test_whatever_a_cell_determines_must_agree(tmp_path: Path, change: dict[str, object]) -> None:
    first = shard(tmp_path / "1", COMMITTED[:1])
    changed(tmp_path / "2", COMMITTED[0], **change)
    with pytest.raises(UserError, match="hold different numbers"):
        merge([first, tmp_path / "2"], tmp_path / "whole")


def test_times_may_differ_and_the_newer_counts(tmp_path: Path) -> None:
    file = COMMITTED[0]
    first, record = shard(tmp_path / "1", [file]), read_record(file)
    slower = {
        "trace": record.trace | {"seconds": [float(x or 0) * 9 for x in record.trace["seconds"]]}
    }
    later = changed(tmp_path / "2", file, 60.0, wall_s=1e3, timing={"train_s": 900.0}, **slower)
    for folders in ([first, tmp_path / "2"], [tmp_path / "2", first]):
        (stored,) = one_a_cell(records_below(folders).stored)
        assert stored.record == later


def test_a_cell_that_ended_goes_before_one_that_the_machine_ended(tmp_path: Path) -> None:
    file = COMMITTED[0]
    first = shard(tmp_path / "1", [file])
    changed(tmp_path / "2", file, 60.0, status="timeout", trace={}, metrics={})
    for folders in ([first, tmp_path / "2"], [tmp_path / "2", first]):
        (stored,) = one_a_cell(records_below(folders).stored, newest=True)
        assert stored.record.status == "ok"
    assert merge([first], tmp_path / "2").added == 1
    assert content(tmp_path / "2") == content(first)


def test_a_file_that_is_cut_off_is_told_and_gives_way_to_a_whole_one(tmp_path: Path) -> None:
    first, results = shard(tmp_path / "1", COMMITTED[:2]), shard(tmp_path / "r", COMMITTED[:2])
    for folder, file in ((first, COMMITTED[0]), (results, COMMITTED[1])):
        path = folder.joinpath(*file.parts[-3:])
        path.write_bytes(path.read_bytes()[:99])
    whole = content(shard(tmp_path / "all", COMMITTED[:2]))
    merged = merge([first], results)
    assert (merged.added, merged.there, len(merged.warnings)) == (1, 1, 2)
    assert all("left out: " in line and "is not a record" in line for line in merged.warnings)
    found = content(results)
    (aside,) = found.keys() - whole.keys()
    assert aside.endswith(".damaged")
    assert len(found.pop(aside)) == 99
    assert found == whole


def test_what_cannot_be_collected_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="nowhere: there is no such folder"):
        records_below([tmp_path / "nowhere"])
    with pytest.raises(UserError, match=r"no records below .*empty$"):
        merge([tmp_path / "empty"], tmp_path / "r")
    (path,) = record_files(shard(tmp_path / "torn", COMMITTED[:1]))
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"no records below .*torn; left out: .* is not a record"):
        merge([tmp_path / "torn"], tmp_path / "r")
    assert not (tmp_path / "r").exists()
