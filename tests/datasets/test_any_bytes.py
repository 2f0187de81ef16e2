"""Any bytes give arrays or a DataError of one line, by every reader of the registry.

SVGPBENCH_PROPERTY_CASES sets how many cases each reader gets; 10 000 take minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias, get_args

import numpy as np
import pytest
from declared import declared, read_entry
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nearly_good import ARROW, MAT, NEARLY, NPZ, NUMERALS, TEXT, WORKBOOK, XLSX, damaged
from test_file_formats import ARFF, idx

from svgpbench_datasets import DataError, DatasetEntry
from svgpbench_datasets.reading.formats import READERS
from svgpbench_datasets.reading.numbers import Positions, numbers
from svgpbench_datasets.reading.table import frames_of_rows
from svgpbench_datasets.reading.text import TextLines, plain_numbers, text_rows

CASES = int(os.environ.get("SVGPBENCH_PROPERTY_CASES", "60"))
MANY = settings(
    max_examples=CASES,
    deadline=5000,  # milliseconds: a reader that hangs fails
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


Test: TypeAlias = Callable[..., None]
LABELLED = {"task": "classification", "labels": {"0": 0, "1": 1}}
WHOLE = b"a,b,c\n1,2,0\n3,4,1\n"
GOOD = {
    "whitespace": (WHOLE.replace(b",", b"  "), {"header": True}),
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
    "mat": (MAT, {"variable": "m"}),
    "xls": (WORKBOOK, {"header": True}),
    "xlsx": (XLSX, {"header": True}),
    "numpy": (NPZ, {}),
    "parquet": (ARROW["parquet"], {}),
    "feather": (ARROW["feather"], LABELLED),
}
OTHER = {"xlsx": "xls"}  # where one reader has two formats


FOUND = {  # bytes that once ended the process, or took seconds
    "mat": [MAT[:176] + b"\x08" + MAT[177:], MAT[:177] + b"\xff" + MAT[178:]],
    "xls": [WORKBOOK[:1598] + b"\xff\xf6" + WORKBOOK[1600:]],
}


def found(reader: str) -> Callable[[Test], Test]:
    """Examples that a reader is always given."""

    def decorate(test: Test) -> Test:
        for raw in FOUND.get(reader, ()):
            test = example(raw)(test)
        return test

    return decorate


@pytest.mark.parametrize("reader", GOOD)
def test_any_bytes_give_arrays_or_a_data_error(reader: str) -> None:
    whole, changes = GOOD[reader]
    described = declared(reader=OTHER.get(reader, reader), **changes)

    @MANY
    @found(reader)
    @given(st.one_of(st.binary(max_size=400), TEXT, damaged(whole), NEARLY[reader], NEARLY[reader]))
    def holds(raw: bytes) -> None:
        try:
            X, y = read_entry(described, lambda _: raw)
        except DataError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert X.shape == (2, len(described.features))
            assert np.isfinite(X).all()
            assert y.shape == (2,)

    holds()


@pytest.mark.parametrize("reader", GOOD)
def test_the_undamaged_file_is_read(reader: str) -> None:
    whole, changes = GOOD[reader]
    X, y = read_entry(declared(reader=OTHER.get(reader, reader), **changes), lambda _: whole)
    expected = (
        [[-3, 1], [1, 0]]
        if reader == "arff"
        else [[0, 1], [3, 4]]
        if reader == "mat"
        else [[1, 2], [3, 4]]
    )
    assert sorted(X.tolist()) == expected
    assert len(y) == 2


def test_every_reader_may_be_declared() -> None:
    assert set(get_args(get_args(DatasetEntry.model_fields["reader"].annotation)[0])) == set(
        READERS
    )


@MANY
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
