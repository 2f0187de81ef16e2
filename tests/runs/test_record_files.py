"""Records are written whole, read strictly, and say which file is wrong."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from fake_cells import identify, make_config

from svgpbench.environment import describe, source_revision
from svgpbench.errors import UserError
from svgpbench.json_values import json_value
from svgpbench.results.records import (
    FINAL,
    DamagedRecordError,
    Record,
    WorkerFacts,
    checksum,
    is_final,
    read_record,
    record_path,
    write_record,
)
from svgpbench.results.store import records_in


def make_record(seed: int = 0, **changes: object) -> Record:
    config = make_config("finish", seed)
    fields = {
        "cell_id": identify(config).cell_id,
        "method_version": 1,
        "config": config,
        "status": "ok",
        "data": {"n_train": 4},
        "environment": describe(threads=1),
        "trace": {"iteration": [1, 2], "elbo": [-0.1 - 0.2, float("nan")]},
        "metrics": {"nlpd": 1e-300, "rmse": float("inf")},
        "timing": {},
        "started": datetime.now(UTC),
        "wall_s": 0.5,
        "peak_memory_bytes": 10,
        "worker": WorkerFacts(fresh=True, cells_before=0),
    }
    return Record.model_validate(fields | changes)


def test_a_record_reads_back_equal(tmp_path: Path) -> None:
    records = [make_record(seed) for seed in range(3)]
    for record in records:
        write_record(tmp_path, record)
    assert records_in(tmp_path, "fake").records == sorted(
        records, key=lambda record: record.cell_id
    )
    assert records_in(tmp_path, "another").records == []


def test_lists_take_one_line_each(tmp_path: Path) -> None:
    lines = write_record(tmp_path, make_record()).read_text().splitlines()
    assert '  "elbo": [-0.30000000000000004, null]' in lines
    assert '  "nlpd": 1e-300,' in lines


def test_a_write_that_fails_leaves_the_old_record_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_record(tmp_path, make_record())
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*: No space left on device"):
        write_record(tmp_path, make_record(wall_s=9.0))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_newer_record_takes_the_place_of_the_old_file_and_does_not_overwrite_it(
    tmp_path: Path,
) -> None:
    """Whoever reads the old one meanwhile reads it whole."""
    path = write_record(tmp_path, make_record())
    old, before = tmp_path / "held open", path.read_text()
    os.link(path, old)
    assert write_record(tmp_path, make_record(wall_s=9.0)) == path
    assert old.read_text() == before != path.read_text()


def test_what_a_killed_writer_leaves_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(descriptor: int) -> None:
        raise Killed

    monkeypatch.setattr(os, "fsync", killed)
    monkeypatch.setattr(Path, "unlink", lambda path: None)
    with pytest.raises(Killed):
        write_record(tmp_path, make_record())
    (left,) = record_path(tmp_path, make_config("finish"), "x").parent.iterdir()
    assert left.suffix == ".tmp"
    assert records_in(tmp_path, "fake").records == []


def signed(**changes: object) -> Callable[[str], str]:
    """The text with other content and the checksum that goes with it; None takes a key out."""

    def change(text: str) -> str:
        content = json.loads(text) | changes
        content = {k: x for k, x in content.items() if k != "checksum" and x is not None}
        return json.dumps(content | {"checksum": checksum(content)})

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[:100], "is not a record"),
        (lambda text: text[:-40], "is not a record"),
        (lambda text: "", "is not a record"),
        (lambda text: "[]", "no schema_version"),
        (lambda text: "[" * 100_000, "is not a record"),
        (lambda text: text.replace('"wall_s": 0.5', '"wall_s": 0.6'), "its checksum is not"),
        (lambda text: text.replace('"checksum"', '"sum"'), "its checksum is not"),
        (lambda text: text.replace("1e-300", "NaN"), "NaN is not a number of JSON"),
        (signed(status="fine"), "status"),
        (signed(wall_s=None), "wall_s"),
        (signed(method_version=None), "method_version"),
        (signed(cell_id="0"), "another cell"),
    ],
)
def test_a_damaged_record_is_refused_by_name(
    tmp_path: Path, damage: Callable[[str], str], said: str
) -> None:
    path = write_record(tmp_path, make_record())
    path.write_text(damage(path.read_text()))
    with pytest.raises(DamagedRecordError, match=said) as refusal:
        read_record(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("schema", [1, 3])
def test_a_record_of_another_schema_is_no_damage(tmp_path: Path, schema: int) -> None:
    path = write_record(tmp_path, make_record())
    path.write_text(signed(schema_version=schema)(path.read_text()))
    remedy = "this version reads 2: use the version that"
    with pytest.raises(UserError, match=f"schema {schema}, {remedy}") as said:
        read_record(path)
    assert not isinstance(said.value, DamagedRecordError)


def test_binary_rubbish_is_refused_by_name(tmp_path: Path) -> None:
    path = write_record(tmp_path, make_record())
    path.write_bytes(b"\x80\x04\x95")
    with pytest.raises(UserError, match="is not a record"):
        read_record(path)


def test_a_record_stays_inside_its_folder(tmp_path: Path) -> None:
    for name in ("../escape", "a/b", "..", ""):
        with pytest.raises(UserError, match="names a folder"):
            record_path(tmp_path, make_config("finish", experiment=name), "id")


def test_resume_keeps_what_depends_on_the_cell_only() -> None:
    assert {"ok", "not_pd", "diverged"} == FINAL
    assert not is_final(make_record(status="crashed"))


def test_finite_makes_numpy_plain() -> None:
    value = json_value(
        {"a": np.float32(0.5), "b": np.array([1.0, np.nan]), "c": (np.int64(3), True)}
    )
    assert json.dumps(value, allow_nan=False) == '{"a": 0.5, "b": [1.0, null], "c": [3, true]}'


def test_the_revision_is_that_of_the_sources(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / "result.json").write_text("{}")

    def git(*words: str) -> None:
        names = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        command = ["git", "-C", str(tmp_path), *names, *words]
        subprocess.run(command, check=True, capture_output=True)

    def revision() -> tuple[str | None, bool | None]:
        source_revision.cache_clear()
        return source_revision(package)

    assert revision() == (None, None)
    git("init")
    git("add", "result.json")
    git("commit", "-m", "another project's")
    assert revision() == (None, None)  # the package is not of this repository
    git("add", ".")
    git("commit", "-m", "first")
    commit, dirty = revision()
    assert commit is not None and len(commit) == 40
    assert dirty is False
    (tmp_path / "result.json").write_text("[]")
    assert revision() == (commit, False)
    (package / "__init__.py").write_text("changed = True")
    assert revision() == (commit, True)
    source_revision.cache_clear()
