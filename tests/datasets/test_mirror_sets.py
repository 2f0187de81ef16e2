"""Every data set that a mirror holds is loaded from its real bytes and is what is declared of it.

Skipped where SVGPBENCH_MIRROR names no folder.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from declared import read_entry
from mirror import manifest, mirror_folder, mirrored

from svgpbench_datasets import REGISTRY, DataFile, Registry, fingerprint
from svgpbench_datasets.masks import read_masks, write_masks
from svgpbench_datasets.sources import Sources

ABSENT = {
    "3droad",
    "slice",
    "song",
    "buzz",
    "houseelectric",
    "miniboone",
    "kuka",
    "mujoco",
    "sarcos",
}


def test_every_fingerprint_is_that_of_the_numbers(registry: Registry) -> None:
    entries = {name: registry.describe(name) for name in registry.names()}
    pinned = {name: entry.fingerprint for name, entry in entries.items() if entry.fingerprint}
    assert {name: registry.load_unverified(name).fingerprint for name in pinned} == pinned
    missing = {name for name, entry in entries.items() if name not in pinned and not entry.made}
    assert missing == {name for name, entry in entries.items() if entry.unseen}
    assert {name.partition(":")[0] for name in missing} == ABSENT
    assert not any(registry.at_hand(name) for name in missing)


def test_rows_columns_and_hashes_are_those_of_the_manifest() -> None:
    listed = {re.sub(r"\.(xz|gz)$", "", row["file"]): row for row in manifest()}
    compared = 0
    for name in REGISTRY.names():
        entry = REGISTRY.describe(name)
        rows = []
        for file in entry.files:
            if not isinstance(file, DataFile) or file.path not in listed:
                continue
            row = listed[file.path]
            rows.append(int(row["rows"]))
            stated = re.search(r"sha256 uncompressed ([0-9a-f]{64}) \((\d+) bytes\)", row["notes"])
            if stated:
                assert (file.sha256, file.bytes) == (stated[1], int(stated[2])), file.path
            elif not row["file"].endswith((".xz", ".gz")):
                assert (file.sha256, file.bytes) == (row["sha256"], int(row["bytes"])), file.path
            compared += 1
        if rows and entry.parts and entry.missing != "drop-row" and entry.reader != "idx":
            assert tuple(rows) == entry.parts or name == "sarcos"
        elif rows and entry.reader != "idx" and len(rows) == 1 and name != "sarcos":
            assert rows == [entry.rows] or entry.missing == "drop-row"
    assert compared > 90


@pytest.mark.parametrize("part", range(4))
def test_mnist_is_served_with_the_published_md5(part: int) -> None:
    file = REGISTRY.describe("mnist").files[part]
    published = [
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ]
    served = (mirror_folder() / f"{file.path}.gz").read_bytes()
    assert hashlib.md5(served, usedforsecurity=False).hexdigest() == published[part]


def test_mnist_has_its_published_class_counts(registry: Registry) -> None:
    labels = np.frombuffer(mirrored("mnist/train-labels-idx1-ubyte"), np.uint8, offset=8)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(labels).tolist() == counts


def test_naval_is_a_grid_of_speeds_and_decays(registry: Registry) -> None:
    naval, turbine = registry.load("naval"), registry.load("naval:turbine")
    assert naval.X.shape == (11934, 16)
    assert len(np.unique(naval.y)) == 51
    assert len(np.unique(turbine.y)) == 26
    speeds = naval.X[:, naval.feature_names.index("ship_speed")]
    assert len(np.unique(speeds)) == 9
    grid = np.unique(np.column_stack([speeds, naval.y, turbine.y]), axis=0)
    assert len(grid) == 9 * 51 * 26 == 11934
    np.testing.assert_array_equal(naval.X, turbine.X)
    assert (naval.y.min(), naval.y.max()) == (0.95, 1.0)
    assert (turbine.y.min(), turbine.y.max()) == (0.975, 1.0)


def test_bike_leaves_out_the_two_columns_that_add_up_to_the_count(registry: Registry) -> None:
    clean, leaky = registry.load("bike"), registry.load("bike:leaky")
    np.testing.assert_array_equal(clean.X, leaky.X[:, :15])
    count = leaky.X[:, 15] + leaky.X[:, 16]
    rank = np.argsort(count, kind="stable")
    assert (np.diff(leaky.y[rank]) >= -1e-3).all()


def test_adult_is_coded_as_the_collection_codes_it(registry: Registry) -> None:
    table = mirrored("adult/adult_test_R.dat").decode().splitlines()[1:]
    theirs = np.array([line.split("\t") for line in table], dtype=float)
    ours = registry.load("adult")
    test = registry.fixed_split("adult", 0).test
    np.testing.assert_array_equal(ours.y[test], theirs[:, -1])
    for at, name in enumerate(ours.feature_names):
        mine = ours.X[test, at]
        mine = (mine - mine.mean()) / mine.std(ddof=1)
        # a column of few, far values is printed with fewer digits
        np.testing.assert_allclose(mine, theirs[:, 1 + at], rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("name", ["statlog-landsat", "thyroid"])
def test_the_collection_standardised_each_half_by_itself(registry: Registry, name: str) -> None:
    theirs, raw = registry.load(name), registry.load(f"{name}:uci")
    np.testing.assert_array_equal(theirs.y, raw.y)
    split = registry.fixed_split(name, 0)
    assert split.hash == registry.fixed_split(f"{name}:uci", 0).hash
    for part in (split.train, split.test):
        X = raw.X[part]
        spread = X.std(axis=0, ddof=1)
        own = (X - X.mean(axis=0)) / np.where(spread == 0, 1, spread)
        np.testing.assert_allclose(own, theirs.X[part], rtol=1e-3, atol=1e-3)


def test_processed_tables_hold_the_raw_targets(registry: Registry) -> None:
    raw, done = registry.load("elevators"), registry.load("elevators:processed")
    mine = np.sort(np.log(raw.y))
    np.testing.assert_allclose(mine - mine.mean(), np.sort(done.y), atol=2e-4)
    raw, done = registry.load("protein"), registry.load("protein:processed")
    mine = np.sort(np.log1p(raw.y))
    np.testing.assert_allclose(mine - mine.mean(), np.sort(done.y), atol=2e-4)
    raw, done = registry.load("concrete:xls"), registry.load("concrete:processed")
    mine = np.sort(raw.y - raw.y.mean())
    np.testing.assert_allclose(mine, np.sort(done.y), atol=6e-3)
    text = registry.load("concrete")
    np.testing.assert_allclose(raw.y, text.y, atol=6e-3)
    np.testing.assert_allclose(raw.X, text.X, atol=6e-2)


def test_two_copies_of_kin8nm_agree(registry: Registry) -> None:
    one, other = registry.load("kin8nm"), registry.load("kin8nm:arff")
    np.testing.assert_allclose(one.X, other.X, atol=1e-6)
    np.testing.assert_allclose(one.y, other.y, atol=1e-6)


SPLITS = [  # a hash of the hashes of the first and the last split
    ("airfoil:processed", "5d092e4bf760572d"),
    ("boston:processed", "f0b276e62d9a4bce"),
    ("concrete:processed", "e62f3f8a86343044"),
    ("bike", "4e781f7a14fc5c13"),
    ("gas", "511e1267d6760074"),
    ("keggdirected", "eace59dc912d1a53"),
    ("keggundirected", "f80ec2e7d0feb043"),
    ("kin40k", "f5e9b0eab37c11f3"),
    ("pumadyn32nm", "30242c704df11064"),
    ("tamielectric", "53b39b1cac11bfc9"),
    ("elevators:processed", "78d2cb1b8d3eea45"),
    ("pol:processed", "516cc7478a294826"),
    ("protein:processed", "580c8a8d2325d31a"),
]


@pytest.mark.parametrize(("name", "expected"), SPLITS)
def test_fixed_splits_are_pinned(registry: Registry, name: str, expected: str) -> None:
    splits = [registry.fixed_split(name, fold) for fold in (0, 9)]
    digest = hashlib.sha256("".join(split.hash for split in splits).encode()).hexdigest()
    assert digest[:16] == expected
    rows = REGISTRY.describe(name).rows
    for split in splits:
        assert split.train.size + split.test.size == rows


def test_published_masks_are_written_as_they_were_read(registry: Registry, tmp_path: Path) -> None:
    splits = [registry.fixed_split("boston:processed", fold) for fold in range(10)]
    write_masks(tmp_path / "masks.csv", splits)
    packed = (mirror_folder() / "boston" / "housing.test_mask.csv.gz").read_bytes()
    written = read_masks((tmp_path / "masks.csv").read_bytes(), 506, 10, "masks.csv")
    assert np.array_equal(written, read_masks(gzip.decompress(packed), 506, 10, "published"))


@pytest.mark.parametrize("name", ["airfoil:processed", "bike", "pol:processed"])
def test_ten_masks_hold_each_row_out_once(registry: Registry, name: str) -> None:
    tests = [registry.fixed_split(name, fold).test for fold in range(10)]
    assert sorted(np.concatenate(tests).tolist()) == list(range(REGISTRY.describe(name).rows))


def test_a_real_prepared_copy_kept_packed_holds_what_the_unpacked_one_does(cache: Path) -> None:
    path = "kin40k/kin40k.data.csv.gz"
    if not (mirror_folder() / path).is_file():
        pytest.skip(f"the mirror has no {path}")
    served = (mirror_folder() / path).read_bytes()
    entry = REGISTRY.describe("kin40k")
    kept = entry.files[0].model_copy(
        update={
            "path": path,
            "packed": True,
            "sha256": hashlib.sha256(served).hexdigest(),
            "bytes": len(served),
        }
    )
    sources = Sources(cache, cache=cache, mirrors=(str(mirror_folder()),))
    X, y = read_entry(entry, lambda _: sources.read(kept, entry))
    assert fingerprint(X, y) == entry.fingerprint
    assert (cache / path).read_bytes() == served
