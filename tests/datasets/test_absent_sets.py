"""The sets of which no copy could be had are read by their documented format."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import absent_files as made
import pytest
from declared import read_entry, write_registry

from svgpbench_datasets import REGISTRY, DataError, DataFile, DatasetEntry, Registry
from svgpbench_datasets.fetch.origins import Unavailable
from svgpbench_datasets.sources import Sources

FILES: dict[str, Callable[[], bytes]] = {
    "3droad": made.three_d_road,
    "slice": made.slices,
    "song": made.song,
    "buzz": made.buzz,
    "houseelectric": made.house_electric,
    "miniboone": made.miniboone,
    "kuka": made.kuka,
    "mujoco": made.mujoco,
}
PUBLISHED = {
    "3droad": (434874, 2),
    "3droad:osm-id": (434874, 3),
    "slice": (53500, 384),
    "slice:patient-id": (53500, 385),
    "song": (515345, 90),
    "buzz": (583250, 77),
    "houseelectric": (2049280, 10),
    "houseelectric:intensity": (2049280, 11),
    "miniboone": (130064, 50),
    "miniboone:row-number": (130064, 51),
    "kuka": (197920, 28),
    "mujoco": (936353, 23),
    "sarcos": (48933, 21),
    "3droad:processed": (434874, 3),
    "slice:processed": (53500, 385),
    "song:processed": (515345, 90),
    "buzz:processed": (583250, 77),
    "houseelectric:processed": (2049280, 11),
}
PREPARED = [name for name in PUBLISHED if name.endswith(":processed")]
RAW = [name for name in PUBLISHED if name != "sarcos" and name not in PREPARED]


def smaller(name: str, **changes: Any) -> DatasetEntry:
    """An entry for a file of fewer rows."""
    full = REGISTRY.describe(name).model_dump(exclude_none=True)
    return DatasetEntry.model_validate({**full, "rows": made.ROWS, "splits": None, **changes})


@pytest.mark.parametrize(("name", "shape"), PUBLISHED.items())
def test_the_declared_size_is_the_published_one(name: str, shape: tuple[int, int]) -> None:
    entry = REGISTRY.describe(name)
    assert (entry.rows, len(entry.features)) == shape
    assert entry.unseen
    assert any("no copy" in defect for defect in entry.defects)


@pytest.mark.parametrize("name", PREPARED)
def test_a_prepared_copy_is_read_like_its_siblings(name: str) -> None:
    width = PUBLISHED[name][1]
    raw = made.prepared(width)
    X, y = read_entry(smaller(name), lambda _: raw)
    assert X.shape == (made.ROWS, width)
    assert (X[2, 1], y[2]) == (-2.00001, 2.5)
    data, masks = REGISTRY.describe(name).all_files
    for file, what in ((data, "data"), (masks, "test_mask")):
        assert isinstance(file, DataFile)
        assert file.packed
        base = name.partition(":")[0]
        assert file.path == f"{base}/{base}.{what}.csv.gz"
        assert all(address.url.endswith(f"/{base}/{what}.csv.gz") for address in file.addresses)


def test_the_columns_are_the_documented_ones() -> None:
    X, y = read_entry(smaller("3droad"), lambda _: made.three_d_road())
    assert X[1].tolist() == [9.3498487, 56.7408757]
    assert y.tolist() == [17.0, 17.01, 17.02, 17.03, 17.04, 17.05]
    X, _ = read_entry(smaller("3droad:osm-id"), lambda _: made.three_d_road())
    assert X[2, 0] == 144552913
    X, y = read_entry(smaller("song"), lambda _: made.song())
    assert (X[2, 0], y[2]) == (3.0, 1999.0)
    X, y = read_entry(smaller("slice:patient-id"), lambda _: made.slices())
    assert X[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    X, y = read_entry(smaller("miniboone:row-number"), lambda _: made.miniboone())
    assert X[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert y.tolist() == [1, 0, 1, 0, 1, 0]


def test_a_date_is_split_and_incomplete_minutes_are_left_out() -> None:
    entry = smaller("houseelectric:intensity")
    X, y = read_entry(entry, lambda _: made.house_electric())
    assert X[2].tolist() == [16, 12, 2006, 17, 22, 0.418, 234.84, 18.4, 0, 1, 17]
    assert y.tolist() == [4.2, 5.2, 6.2, 7.2, 8.2, 9.2]
    with pytest.raises(DataError, match=r"line 5, column 4 \('Global_reactive_power'\) holds '\?'"):
        read_entry(
            smaller("houseelectric", missing="refuse"),
            lambda _: made.house_electric(),
        )
    raw = made.house_electric().replace(b"16/12/2006;17:22", b"16-12-2006;17:22")
    with pytest.raises(DataError, match=r"line 4, column 1 \('Date'\) holds '16-12-2006'"):
        read_entry(entry, lambda _: raw)


def test_sarcos_is_the_training_file_and_then_the_test_file() -> None:
    entry = smaller("sarcos", rows=9, parts=[6, 3], splits={"train_rows": 6})
    files = {"sarcos/sarcos_inv.mat": made.sarcos(6), "sarcos/sarcos_inv_test.mat": made.sarcos(3)}
    X, y = read_entry(entry, lambda file: files[file.path])
    assert X.shape == (9, 21)
    assert y.tolist() == [21, 49, 77, 105, 133, 161, 21, 49, 77]


def test_a_header_that_names_other_columns_is_refused() -> None:
    raw = made.kuka().replace(b"x3,", b"q3,", 1)
    with pytest.raises(DataError, match=r"line 1, column 3 is 'q3' where 'x3' is declared"):
        read_entry(smaller("kuka"), lambda _: raw)
    raw = made.miniboone().replace(b"\tf2\t", b"\t", 1)
    with pytest.raises(DataError, match="line 1 names 51 columns where 52 are declared"):
        read_entry(smaller("miniboone"), lambda _: raw)


def folder_registry(tmp_path: Path, mirror: Path) -> Registry:
    write_registry(tmp_path, smaller("kuka", files=[{"path": "kuka/kuka1.csv", "at_most": 9999}]))
    return Registry(tmp_path, Sources(tmp_path, cache=tmp_path / "cache", mirrors=(str(mirror),)))


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_a_file_is_found_below_the_folder_that_the_user_names(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    mirror = tmp_path / "mine"
    (mirror / "kuka").mkdir(parents=True)
    registry = folder_registry(tmp_path, mirror)
    assert not registry.at_hand("kuka")
    with pytest.raises(Unavailable) as caught:
        registry.load("kuka")
    assert str(caught.value) == (
        f"kuka/kuka1.csv could not be had (mirror {mirror}: has no kuka/kuka1.csv); get it by other "
        "means, then run `svgpbench fetch kuka --from FILE`, or name a mirror with --mirror or "
        "SVGPBENCH_MIRROR"
    )
    (mirror / "kuka" / f"kuka1.csv{ending}").write_bytes(pack(made.kuka()))
    assert registry.at_hand("kuka")
    dataset = registry.load("kuka")
    assert dataset.X.shape == (made.ROWS, 28)
    assert dataset.y[1] == 1.28
