"""Any bytes give arrays or a DataError of one line, by every reader of the registry.

SVGPBENCH_PROPERTY_CASES sets how many cases each reader gets; 10 000 take minutes.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_file_formats import ARFF, idx, mat

from svgpbench_datasets import DataError, DatasetEntry
from svgpbench_datasets.plain_numbers import plain_numbers
from svgpbench_datasets.readers import csv_rows, decode_lines, read_cells, whitespace_rows
from svgpbench_datasets.tables import read_entry

CASES = int(os.environ.get("SVGPBENCH_PROPERTY_CASES", "60"))
MANY = settings(
    max_examples=CASES,
    deadline=5000,  # milliseconds: a reader that hangs fails
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
CELL = st.sampled_from(
    [
        "1",
        "-2.5",
        "0",
        "x",
        "",
        "nan",
        "?",
        '"',
        "'",
        "\r",
        "\x00",
        "é",
        "1e400",
        "1e5",
        "+.5",
        "{",
        "%",
    ]
)
SEPARATOR = st.sampled_from([",", ";", "\t", " ", "  ", "\n", "\r\n"])
TEXT = st.lists(st.tuples(CELL, SEPARATOR), max_size=30).map(
    lambda parts: "".join(cell + separator for cell, separator in parts).encode()
)


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    """A good file with some bytes replaced, and perhaps cut."""

    def damage(parts: tuple[float, bytes, bool]) -> bytes:
        at, noise, cut = int(parts[0] * len(whole)), parts[1], parts[2]
        return whole[:at] + noise + (b"" if cut else whole[at + len(noise) :])

    return st.tuples(st.floats(0, 1), st.binary(max_size=8), st.booleans()).map(damage)


def entry(reader: str, **changes: Any) -> DatasetEntry:
    base = {
        "name": "t",
        "title": "t",
        "task": "regression",
        "files": [{"path": "t", "sha256": "0" * 64}],
        "unseen": True,
        "reader": reader,
        "rows": 2,
        "columns": ["a", "b", "c"],
        "target": "c",
        "upstream": "u",
        "licence": "l",
        "citation": "c",
    }
    return DatasetEntry.model_validate({**base, **changes})


LABELLED = {"task": "classification", "labels": {"0": 0, "1": 1}}
WHOLE = b"a,b,c\n1,2,0\n3,4,1\n"
GOOD = {
    "whitespace": (WHOLE[6:].replace(b",", b"  "), {}),
    "csv": (WHOLE, {"header": True}),
    "semicolon": (WHOLE.replace(b",", b";"), {"header": True, "missing": "drop-row"}),
    "tab": (WHOLE.replace(b",", b"\t"), {"skip_lines": 1, **LABELLED}),
    "arff": (
        ARFF.encode(),
        {
            "columns": ["joint one", "plain", "class"],
            "target": "plain",
            "categories": {"class": ["a", "b"]},
        },
    ),
    "idx": (idx((2, 3), b"\x01\x02\x00\x03\x04\x01"), LABELLED),
    "mat": (mat(m=np.arange(6.0).reshape(2, 3)), {"variable": "m"}),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), {"header": True}),
}


@pytest.mark.parametrize("reader", GOOD)
def test_any_bytes_give_arrays_or_a_data_error(reader: str) -> None:
    whole, changes = GOOD[reader]
    declared = entry(reader, **changes)

    @MANY
    @given(st.one_of(st.binary(max_size=400), TEXT, damaged(whole)))
    def holds(raw: bytes) -> None:
        try:
            X, y = read_entry(declared, lambda _: raw)
        except DataError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert X.shape == (2, len(declared.features))
            assert np.isfinite(X).all()
            assert y.shape == (2,)

    holds()


@pytest.mark.parametrize("reader", [reader for reader in GOOD if reader != "xls"])
def test_the_undamaged_file_is_read(reader: str) -> None:
    whole, changes = GOOD[reader]
    X, _ = read_entry(entry(reader, **changes), lambda _: whole)
    assert X.shape == (2, 2)


@MANY
@given(
    raw=st.one_of(TEXT, st.lists(st.floats(allow_nan=False)).map(lambda v: repr(v)[1:-1].encode())),
    delimiter=st.sampled_from([None, ",", ";", "\t"]),
)
def test_the_fast_way_gives_the_numbers_of_the_slow_way_or_none(
    raw: bytes, delimiter: str | None
) -> None:
    fast = plain_numbers(raw, delimiter)
    if fast is None:
        return
    lines = decode_lines(raw.splitlines(keepends=True), "t")
    rows = whitespace_rows(lines) if delimiter is None else csv_rows(lines, "t", delimiter)
    names = [f"c{at}" for at in range(fast.shape[1])]
    slow = read_cells(rows, where="t", names=names, numeric=names).numbers
    np.testing.assert_array_equal(fast, slow)
    assert np.array_equal(np.signbit(fast), np.signbit(slow))
