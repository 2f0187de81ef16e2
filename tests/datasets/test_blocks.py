"""Blocks of a large text give the numbers, and the errors, of the whole text."""

from __future__ import annotations

import io
from typing import IO, Any

import absent_files as made
import numpy as np
import pytest
from declared import declared, read_entry
from test_absent_sets import FILES, PUBLISHED, RAW, smaller

from svgpbench_datasets import DataError, DatasetEntry
from svgpbench_datasets.reading import table, text
from svgpbench_datasets.reading.tables import read_blocks

ROWS = 400


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BYTES_AT_ONCE", 300)
    monkeypatch.setattr(table, "CELLS_AT_ONCE", 21)


def entry(**changes: Any) -> DatasetEntry:
    own = {"files": [{"path": "t", "at_most": 1 << 20}], "rows": ROWS, "target": "b"}
    return declared(**{**own, **changes})


def opened(raw: bytes) -> Any:
    def open_file(_: object) -> IO[bytes]:
        return io.BytesIO(raw)

    return open_file


def whole(described: DatasetEntry, raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    """What blocks as large as the file give."""
    with pytest.MonkeyPatch.context() as large:
        large.setattr(text, "BYTES_AT_ONCE", len(raw) + 1)
        large.setattr(table, "CELLS_AT_ONCE", len(raw) + 1)
        return read_entry(described, lambda _: raw)


def in_blocks(described: DatasetEntry, raw: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    parts = list(read_blocks(described, opened(raw)))
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts]), len(parts)


def lines(separator: str = ",") -> list[str]:
    random = np.random.default_rng(0)
    return [separator.join(map(repr, row)) for row in random.standard_normal((ROWS, 3)).tolist()]


VARIED = {
    "plain": (lambda x: x, {}),
    "spaces": (
        lambda x: [f"  {line.replace(',', '   ')} " for line in x],
        {"reader": "whitespace"},
    ),
    "a header": (lambda x: ["a,b,c", *x], {"header": True}),
    "lines to skip": (lambda x: ["% one", "two", *x], {"skip_lines": 2}),
    "blank lines": (lambda x: [*x[:50], "", "  ", *x[50:], ""], {}),
    "a quoted cell late": (lambda x: [*x[:-1], '"1",2,3'], {}),
    "quotes over lines": (lambda x: [*x[:200], '1,"\n2\n",3', *x[201:]], {}),
    "numbered rows": (lambda x: x, {"number_rows": True, "columns": ["row", "a", "b", "c"]}),
    "numbered rows, one quoted": (
        lambda x: [*x[:300], '"1",2,3', *x[301:]],
        {"number_rows": True, "columns": ["row", "a", "b", "c"]},
    ),
    "rows that are left out": (
        lambda x: [*x[:99], "1,?,3", *x[99:300], "?,2,3", *x[300:]],
        {"missing": "drop-row"},
    ),
    "labels": (
        lambda x: [f"{line.rpartition(',')[0]},{at % 2}" for at, line in enumerate(x)],
        {"task": "classification", "target": "c", "labels": {"0": 0, "1": 1}},
    ),
}


@pytest.mark.parametrize("how", VARIED)
def test_blocks_are_the_whole(how: str) -> None:
    change, own = VARIED[how]
    described = entry(**own)
    for end in ("\n", "\r\n"):
        raw = (end.join(change(lines())) + end).encode()
        X, y, count = in_blocks(described, raw)
        whole_X, whole_y = whole(described, raw)
        assert X.tobytes() == whole_X.tobytes()
        assert y.tobytes() == whole_y.tobytes()
        assert count > 30


@pytest.mark.parametrize(
    "at_line_350",
    ["1,x,3", "1,2", "1,2,3,4", "1,,3", "1,nan,3", "1,2,1e999", '1,"2,3', "1,2,\xff"],
)
def test_a_mistake_is_told_as_for_the_whole(at_line_350: str) -> None:
    text = lines()
    text[349] = at_line_350
    raw = "\n".join(text).encode("latin-1")
    with pytest.raises(DataError) as at_once:
        whole(entry(), raw)
    with pytest.raises(DataError) as parted:
        in_blocks(entry(), raw)
    assert "line 350" in str(parted.value)
    assert str(parted.value) == str(at_once.value)


def test_a_label_that_is_not_declared_is_told_with_its_row_in_the_file() -> None:
    described = entry(task="classification", target="c", labels={"0": 0, "1": 1})
    rows = [f"1,2,{at % 2}" for at in range(ROWS)]
    message = r"line 335, column 3 \('c'\) holds '5\S*', which is not among the labels 0, 1"
    for other in ("5", '"5"'):
        rows[333] = f"1,2,{other}"
        for blank in (3, 330):
            with pytest.raises(DataError, match=message):
                in_blocks(described, "\n".join([*rows[:blank], "", *rows[blank:]]).encode())


def test_another_number_of_rows_is_refused() -> None:
    with pytest.raises(DataError, match="t has 399 rows where 400 are declared"):
        in_blocks(entry(), "\n".join(lines()[1:]).encode())


@pytest.mark.parametrize("name", RAW)
def test_each_absent_set_comes_in_blocks(name: str) -> None:
    raw = FILES[name.partition(":")[0]]()
    X, y, _ = in_blocks(smaller(name), raw)
    whole_X, whole_y = whole(smaller(name), raw)
    assert X.shape == (made.ROWS, PUBLISHED[name][1])
    assert np.isfinite(X).all()
    assert X.tobytes() == np.ascontiguousarray(whole_X).tobytes()
    assert y.tobytes() == np.ascontiguousarray(whole_y).tobytes()
