"""A large table is parsed once; what is kept gives the same numbers or is made again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from svgpbench_datasets import REGISTRY, DataError
from svgpbench_datasets.reading.numbers import Block
from svgpbench_datasets.reading.parsed import is_large, parsed_path, read_or_parse

N = 5000


class Parse:
    """Numbers that are counted out, and how often they were asked for."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.X, self.y = random.standard_normal((N, 3)), random.standard_normal(N)
        self.X[0] = [-0.0, 5e-324, 1.7976931348623157e308]
        self.times = 0

    def __call__(self) -> Iterator[Block]:
        self.times += 1
        for start in (0, 4000):  # a whole block and a part of one
            yield self.X[start : start + 4000], self.y[start : start + 4000]


def test_the_second_time_the_same_bits_come_without_parsing(tmp_path: Path) -> None:
    parse, path = Parse(), tmp_path / "parsed" / "t.parquet"
    read_or_parse(path, parse)
    X, y = read_or_parse(path, parse)
    assert parse.times == 1
    assert X.tobytes() == parse.X.tobytes()
    assert y.tobytes() == parse.y.tobytes()
    assert not (X.flags.writeable or y.flags.writeable)
    assert [file.name for file in path.parent.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "foreign"])
def test_a_damaged_copy_is_made_again(tmp_path: Path, damage: str) -> None:
    parse, path = Parse(), tmp_path / "t.parquet"
    read_or_parse(path, parse)
    whole = path.read_bytes()
    if damage == "changed":
        at = whole.index(parse.X[5, 1].tobytes())
        path.write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    else:
        path.write_bytes({"cut": whole[:-50], "empty": b"", "foreign": b"PAR1 not at all"}[damage])
    X, _ = read_or_parse(path, parse)
    assert parse.times == 2
    assert X.tobytes() == parse.X.tobytes()
    assert path.read_bytes() == whole


def test_a_failed_parse_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> Iterator[Block]:
        yield from itertools.islice(Parse()(), 1)
        raise DataError("line 3")

    with pytest.raises(DataError, match="line 3"):
        read_or_parse(tmp_path / "parsed" / "t.parquet", fail)
    assert list((tmp_path / "parsed").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "parsed").write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"cannot be written .* SVGPBENCH_DATA"):
        read_or_parse(tmp_path / "parsed" / "t.parquet", Parse())


def test_the_name_follows_the_content_and_how_it_is_read(tmp_path: Path) -> None:
    entry, variant = REGISTRY.describe("song"), REGISTRY.describe("houseelectric:intensity")
    home = parsed_path(entry, ["rows"], tmp_path)
    others = [
        parsed_path(entry, ["other rows"], tmp_path),
        parsed_path(entry.model_copy(update={"target": "timbre1"}), ["rows"], tmp_path),
        parsed_path(REGISTRY.describe("houseelectric"), ["rows"], tmp_path),
        parsed_path(variant, ["rows"], tmp_path),
    ]
    assert len({home, *others}) == 5
    assert parsed_path(entry.model_copy(update={"title": "t"}), ["rows"], tmp_path) == home


def test_only_large_tables_of_text_are_kept() -> None:
    large = {name for name in REGISTRY.names() if is_large(REGISTRY.describe(name))}
    expected = {"song", "buzz", "slice", "houseelectric", "miniboone", "kuka", "mujoco"}
    assert {name.partition(":")[0] for name in large} == expected
