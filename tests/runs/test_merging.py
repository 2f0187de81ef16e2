"""Records of several folders in one: each cell once, and nothing lost, changed or quietly chosen."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from committed_records import committed, worked
from interpreter import python
from process_watch import holder

from svgpbench.errors import UserError
from svgpbench.results import merging
from svgpbench.results.duplicates import deduplicate
from svgpbench.results.merging import merge
from svgpbench.results.parquet_file import write_parquet_records
from svgpbench.results.records import Record, record_files, record_path, write_record
from svgpbench.results.store import LoadedRecords, records_below, records_in

TEN = list(committed("adam2021-fig3")[::120])
"""Ten records of Figure 3, of three backends."""


def content(folder: Path) -> dict[str, bytes]:
    files = [f for f in folder.rglob("*") if f.is_file() and f.name != ".locks"]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def changed(folder: Path, record: Record, later: float = 0.0, **changes: object) -> Record:
    """The record written into a folder with something else in it, begun so many seconds later."""
    started = record.started + timedelta(seconds=later)
    other = record.model_copy(update={"started": started, **changes})
    write_record(folder, other)
    return other


def moved(record: Record) -> dict[str, object]:
    """A trace whose bound is another in the tenth digit."""
    bound = [float(x or 0) * (1 + 1e-10) for x in record.trace["elbo"]]
    return {"trace": record.trace | {"elbo": bound}}


def test_shards_make_the_file_that_one_run_would_have_made(tmp_path: Path) -> None:
    first = worked(tmp_path / "1", TEN[:6])
    second = worked(tmp_path / "deeper" / "2", TEN[4:])  # two cells are in both
    (first / "notes.json").write_text("{}")  # no record, nor where one lies
    (first / "a" / "b").mkdir(parents=True)
    (first / "a" / "b" / "locks.json").write_text("{}")
    merged = merge([first, tmp_path / "deeper"], tmp_path / "whole")
    assert (merged.added, merged.existing, merged.warnings) == (10, 0, ())
    write_parquet_records(tmp_path / "all", TEN)
    assert content(tmp_path / "whole") == content(tmp_path / "all")
    assert records_in(tmp_path / "whole").records == TEN
    again = merge([first, second], tmp_path / "whole")
    assert (again.added, again.existing) == (0, 10)
    assert content(tmp_path / "whole") == content(tmp_path / "all")
    # a folder given twice, and one within another, is read once
    assert len(records_below([tmp_path / "1", tmp_path / "1"]).stored) == 6
    inside = worked(tmp_path / "whole" / "late", TEN[:1])
    assert merge([inside], tmp_path / "whole").added == 0
    # and what is kept is collected as what is not
    assert merge([tmp_path / "whole"], tmp_path / "copy").added == 10
    assert content(tmp_path / "copy") == content(tmp_path / "all")


def test_working_records_of_the_folder_itself_go_into_its_file(tmp_path: Path) -> None:
    folder = worked(tmp_path / "r", TEN[:4])
    write_parquet_records(folder, TEN[2:7])
    merged = merge([folder], folder)
    assert (merged.added, merged.existing) == (0, 7)
    assert len(record_files(folder)) == 4
    shutil.rmtree(folder / "adam2021-fig3")
    assert records_in(folder).records == TEN[:7]


def test_a_merge_that_fails_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet_records(tmp_path / "whole", TEN[:4])
    before = content(tmp_path / "whole")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    source = worked(tmp_path / "1", TEN)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match="No space left on device"):
            merge([source], tmp_path / "whole")
    assert content(tmp_path / "whole") == before
    merged = merge([source], tmp_path / "whole")
    assert (merged.added, merged.existing) == (6, 4)
    assert records_in(tmp_path / "whole").records == TEN


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "working"])
def test_records_of_one_cell_with_other_numbers_are_refused_before_anything_is_written(
    tmp_path: Path, kept: bool
) -> None:
    first, second, whole = tmp_path / "1", tmp_path / "2", tmp_path / "whole"
    if kept:
        lies_in = write_parquet_records(first, TEN)
    else:
        worked(first, TEN)
        lies_in = record_path(first, TEN[3].config, TEN[3].cell_id)
    other = changed(second, TEN[3], later=60.0, **moved(TEN[3]))
    for folders, results in (([first, second], whole), ([second], first)):
        before = content(first)
        with pytest.raises(UserError, match=r"up to 1e-10 apart\); remove one, or take the newer"):
            merge(folders, results)
        assert content(first) == before
        assert not whole.exists()
    with pytest.raises(UserError) as caught:
        merge([first, second], whole)
    for path in (lies_in, record_path(second, other.config, other.cell_id)):
        assert str(path) in str(caught.value)
    for folders in ([first, second], [second, first]):
        merge(folders, whole, newest=True)
        assert other in records_in(whole).records
        shutil.rmtree(whole)


@pytest.mark.parametrize(
    "change",
    [{"status": "diverged"}, {"metrics": {"elbo": -1.0}}, {"data": {"n_train": 1}}],
    ids=lambda change: next(iter(change)),
)
def test_whatever_a_cell_determines_must_agree(tmp_path: Path, change: dict[str, object]) -> None:
    first = worked(tmp_path / "1", TEN[:1])
    changed(tmp_path / "2", TEN[0], **change)
    with pytest.raises(UserError, match="hold different numbers"):
        merge([first, tmp_path / "2"], tmp_path / "whole")


def test_times_may_differ_and_the_newer_counts(tmp_path: Path) -> None:
    record = TEN[0]
    first = worked(tmp_path / "1", [record])
    slower = {
        "trace": record.trace | {"seconds": [float(x or 0) * 9 for x in record.trace["seconds"]]}
    }
    later = changed(tmp_path / "2", record, 60.0, wall_s=1e3, timing={"train_s": 900.0}, **slower)
    for folders in ([first, tmp_path / "2"], [tmp_path / "2", first]):
        (stored,) = deduplicate(records_below(folders).stored)
        assert stored.record == later


def test_a_cell_that_ended_goes_before_one_that_the_machine_ended(tmp_path: Path) -> None:
    first = worked(tmp_path / "1", TEN[:1])
    late = changed(tmp_path / "2", TEN[0], 60.0, status="timeout", trace={}, metrics={})
    for folders in ([first, tmp_path / "2"], [tmp_path / "2", first]):
        (stored,) = deduplicate(records_below(folders).stored, newest=True)
        assert stored.record.status == "ok"
    write_parquet_records(tmp_path / "whole", [late])
    assert merge([first], tmp_path / "whole").added == 1
    assert records_in(tmp_path / "whole").records == TEN[:1]
    assert merge([tmp_path / "2"], tmp_path / "whole").added == 0


def test_a_file_that_is_cut_off_is_told_and_gives_way_to_a_whole_one(tmp_path: Path) -> None:
    first, results = worked(tmp_path / "1", TEN[:2]), worked(tmp_path / "r", TEN[:2])
    for folder, record in ((first, TEN[0]), (results, TEN[1])):
        path = record_path(folder, record.config, record.cell_id)
        path.write_bytes(path.read_bytes()[:99])
    merged = merge([first], results)
    assert (merged.added, merged.existing, len(merged.warnings)) == (1, 1, 2)
    assert all("left out: " in line and "is not a record" in line for line in merged.warnings)
    (aside,) = results.rglob("*.damaged")
    assert len(aside.read_bytes()) == 99
    found = records_in(results)
    assert (found.records, found.damaged) == (TEN[:2], ())


def test_what_cannot_be_collected_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="nowhere: there is no such folder"):
        records_below([tmp_path / "nowhere"])
    with pytest.raises(UserError, match=r"no records below .*empty$"):
        merge([tmp_path / "empty"], tmp_path / "r")
    (path,) = record_files(worked(tmp_path / "torn", TEN[:1]))
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"no records below .*torn; .* is not a record"):
        merge([tmp_path / "torn"], tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_merge_into_a_new_folder_keeps_others_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, others = tmp_path / "results", []
    write_record(tmp_path / "a", TEN[0])

    def read_while_another_merges(folder: Path) -> LoadedRecords:
        code = (
            "import sys; from pathlib import Path; from svgpbench.results.merging import merge\n"
            "merge([Path(sys.argv[1])], Path(sys.argv[2]))"
        )
        others.append(python("-c", code, tmp_path / "a", folder).stderr)
        return records_in(folder)

    monkeypatch.setattr(merging, "records_in", read_while_another_merges)
    assert merge([tmp_path / "a"], results).added == 1
    assert "another command puts records into" in others[0]


def test_two_merges_into_one_folder_do_not_lose_what_the_other_adds(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_record(tmp_path / "a", TEN[0])
    merge([tmp_path / "a"], results)
    (results / ".adam2021-fig3.1.tmp").write_text("half")
    code = (
        "import sys; from pathlib import Path; from svgpbench.results.merging import exclusive_lock\n"
        "with exclusive_lock(Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
    )
    refused = pytest.raises(UserError, match="another command puts records into")
    with holder(code, results), refused:
        merge([tmp_path / "a"], results)
    assert not (results / ".adam2021-fig3.1.tmp").exists()
    assert merge([tmp_path / "a"], results).existing == 1
