"""Any bytes give arrays or a DataError of one line: from a reader of the registry, from a user's table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from broken_tables import NUMERALS, TEXT, WHOLE, broken_table, user_table_files
from declared import declared, read_entry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from watched_parsers import TIMES, Parser, read_broken_files

from svgpbench_datasets import DatasetEntry, load_user_table
from svgpbench_datasets.reading.formats import READERS
from svgpbench_datasets.reading.numbers import Positions, numbers
from svgpbench_datasets.reading.table import frames_of_rows
from svgpbench_datasets.reading.text import TextLines, plain_numbers, text_rows

LABELLED = {"task": "classification", "labels": {"0": 0, "1": 1}}
OF_ARFF = {
    "columns": ["joint one", "plain", "class"],
    "target": "plain",
    "categories": {"class": ["a", "b"]},
}
DECLARED: dict[str, dict[str, Any]] = {
    "whitespace": {"header": True},
    "csv": {"header": True},
    "semicolon": {"header": True, "missing": "drop-row"},
    "tab": {"skip_lines": 1, **LABELLED},
    "pipe": {"header": True},
    "arff": OF_ARFF,
    "idx": LABELLED,
    "mat": {"variable": "m"},
    "xls": {"header": True},
    "xlsx": {"header": True, "reader": "xls"},
    "npy": {"reader": "numpy"},
    "npz": {"reader": "numpy"},
    "parquet": {},
    "feather": LABELLED,
}
MAT, XLS = WHOLE["mat"], WHOLE["xls"]
FOUND = {  # bytes that once ended the process, or took seconds
    "mat": [MAT[:176] + b"\x08" + MAT[177:], MAT[:177] + b"\xff" + MAT[178:]],
    "xls": [XLS[:1598] + b"\xff\xf6" + XLS[1600:]],
}


def entry(name: str) -> DatasetEntry:
    return declared(**{"reader": name, **DECLARED[name]})


@pytest.mark.parametrize("name", DECLARED)
def test_any_bytes_give_arrays_or_a_data_error(tmp_path: Path, name: str) -> None:
    described = entry(name)

    def read(folder: Path) -> None:
        X, y = read_entry(described, lambda _: (folder / "t").read_bytes())
        assert X.shape == (2, len(described.features))
        assert np.isfinite(X).all()
        assert y.shape == (2,)

    files = broken_table(name).map(lambda raw: {"t": raw})
    found = [{"t": raw} for raw in FOUND.get(name, ())]
    parser = Parser(files, read, 60, limit_s=5.0, unreadable=0, examples=found)
    read_broken_files(parser, tmp_path / "files")


@pytest.mark.parametrize("name", sorted(DECLARED.keys() - {"idx"}))  # which no user's table is
def test_any_bytes_of_a_user_give_a_data_set_or_a_data_error(tmp_path: Path, name: str) -> None:
    def read(folder: Path) -> None:
        options = json.loads((folder / "options.json").read_text())
        (file,) = folder.glob("own.*")
        table = load_user_table(file, **options)
        assert np.isfinite(table.X).all() and np.isfinite(table.y).all()
        assert table.X.shape == (len(table.y), len(table.feature_names))

    read_broken_files(Parser(user_table_files(name), read, 100), tmp_path / "files")


@pytest.mark.parametrize("name", DECLARED)
def test_the_undamaged_file_is_read(name: str) -> None:
    X, y = read_entry(entry(name), lambda _: WHOLE[name])
    expected = {"arff": [[-3, 1], [1, 0]], "mat": [[0, 1], [3, 4]]}.get(name, [[1, 2], [3, 4]])
    assert sorted(X.tolist()) == expected
    assert len(y) == 2


def test_every_reader_may_be_declared() -> None:
    declarable = get_args(get_args(DatasetEntry.model_fields["reader"].annotation)[0])
    assert set(declarable) == set(READERS) == {entry(name).reader for name in DECLARED}


@settings(
    max_examples=60 * TIMES,
    deadline=5000,  # milliseconds
    derandomize=TIMES == 1,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    raw=st.one_of(
        TEXT, NUMERALS, st.lists(st.floats(allow_nan=False)).map(lambda v: repr(v)[1:-1].encode())
    ),
    delimiter=st.sampled_from([None, ",", ";", "\t"]),
)
def test_the_fast_way_gives_the_numbers_of_the_slow_way_or_none(
    raw: bytes, delimiter: str | None
) -> None:
    fast = plain_numbers(raw, delimiter)
    if fast is None:
        return
    lines = TextLines(raw.splitlines(keepends=True), "t")
    (frame,) = frames_of_rows(text_rows(lines, "t", delimiter), "t", "line", fast.shape[1])
    slow = numbers(frame, range(fast.shape[1]), Positions("t", {}))
    np.testing.assert_array_equal(fast, slow)
    assert np.array_equal(np.signbit(fast), np.signbit(slow))
