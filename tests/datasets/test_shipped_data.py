"""Each shipped data set is the published one: its shape, its classes, its known oddities."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from svgpbench_datasets import REGISTRY, DataFile

DATA = Path(str(files("svgpbench_datasets"))) / "data"

SHAPES = {
    "airfoil": (1503, 5),
    "boston": (506, 13),
    "boston:no-rad": (506, 12),
    "concrete": (1030, 8),
    "concrete:5": (1030, 5),
    "sonar": (208, 60),
    "ionosphere": (351, 34),
    "pima": (768, 8),
    "banana": (400, 2),
    "banana:full": (5300, 2),
    "thesis-sinusoid": (100, 1),
    "thesis-sinusoid:300": (300, 1),
    **{
        f"thesis-sinusoid:{rows}-noise-{noise}": (rows, 1)
        for rows in (111, 1111, 11111)
        for noise in ("1e-1", "1e-2", "1e-3")
    },
    "thesis-gp-sample": (1000, 1),
    **{f"thesis-gp-sample:draw-{seed}": (1000, 1) for seed in (1, 2, 3, 5)},
    "sinc": (500, 1),
    "thresholded-sinc": (100, 1),
    "3droad-stand-in": (434874, 3),
    "3droad-stand-in:no-road": (434874, 2),
    "3droad-stand-in:few": (22222, 3),
}

CLASSES = {  # label of class 0 and its count, label of class 1 and its count
    "sonar": ("R", 97, "M", 111),
    "ionosphere": ("b", 126, "g", 225),
    "pima": ("0", 500, "1", 268),
    "banana": ("0", 183, "1", 217),
    "banana:full": ("1", 2924, "0", 2376),
}

# mirror path of each shipped file; some mirrors hold two of them with spaces for commas
MIRROR = {
    "airfoil_self_noise.dat.xz": "airfoil/airfoil_self_noise.dat",
    "housing.data.xz": "boston/housing.data",
    "concrete.txt.xz": "concrete/data.txt",
    "sonar.all-data.xz": "sonar/sonar.all-data",
    "ionosphere.data.xz": "ionosphere/ionosphere.data",
    "pima-indians-diabetes.data.xz": "pima/pima-indians-diabetes.data",
    "banana_X_train.xz": "banana/banana_X_train",
    "banana_Y_train.xz": "banana/banana_Y_train",
    "banana.dat.xz": "banana/banana.dat",
}
COMMAS_LOST = {"ionosphere.data.xz", "pima-indians-diabetes.data.xz"}


def test_the_shapes_cover_every_registered_name() -> None:
    shipped = {name for name in REGISTRY.names() if REGISTRY.describe(name).shipped}
    assert set(SHAPES) == shipped - {"diabetes"}


@pytest.mark.parametrize("name", SHAPES)
def test_shape_and_names_are_the_documented_ones(name: str) -> None:
    dataset, entry = REGISTRY.load(name), REGISTRY.describe(name)
    assert dataset.X.shape == SHAPES[name]
    assert dataset.y.shape == (SHAPES[name][0],)
    assert dataset.X.dtype == dataset.y.dtype == np.float64
    assert len(dataset.feature_names) == SHAPES[name][1]
    assert dataset.fingerprint == entry.fingerprint
    assert (dataset.name, dataset.task, dataset.source) == (name, entry.task, entry.upstream)
    assert not dataset.X.flags.writeable
    assert not dataset.y.flags.writeable


@pytest.mark.parametrize("name", CLASSES)
def test_class_balance_is_the_published_one(name: str) -> None:
    dataset = REGISTRY.load(name)
    label_0, count_0, label_1, count_1 = CLASSES[name]
    assert dataset.class_labels == (label_0, label_1)
    assert [int((dataset.y == k).sum()) for k in (0, 1)] == [count_0, count_1]


def test_first_rows_are_the_published_ones() -> None:
    dataset = REGISTRY.load("airfoil")
    assert dataset.X[0].tolist() == [800.0, 0.0, 0.3048, 71.3, 0.00266337]
    assert dataset.y[0] == 126.201
    assert REGISTRY.load("boston").y[:3].tolist() == [24.0, 21.6, 34.7]


def test_boston_without_rad_lacks_only_that_column() -> None:
    full, variant = REGISTRY.load("boston"), REGISTRY.load("boston:no-rad")
    kept = [name for name in full.feature_names if name != "RAD"]
    assert list(variant.feature_names) == kept
    np.testing.assert_array_equal(variant.X, np.delete(full.X, 8, axis=1))
    np.testing.assert_array_equal(variant.y, full.y)


def test_concrete_of_five_inputs_has_the_named_columns() -> None:
    full, variant = REGISTRY.load("concrete"), REGISTRY.load("concrete:5")
    np.testing.assert_array_equal(variant.X, full.X[:, [0, 3, 5, 6, 7]])
    assert full.y[0] == 79.99
    joined = np.column_stack([full.X, full.y])
    assert len(joined) - len(np.unique(joined, axis=0)) == 25


def test_every_banana_training_point_is_in_the_full_set_with_the_same_class() -> None:
    small, full = REGISTRY.load("banana"), REGISTRY.load("banana:full")
    classes: dict[tuple[float, ...], set[float]] = {}
    for x, label in zip(full.X, full.y, strict=True):
        classes.setdefault(tuple(x.tolist()), set()).add(float(label))
    for x, label in zip(small.X, small.y, strict=True):
        rounded = tuple(float(f"{value:.3g}") for value in x)
        assert classes[rounded] == {label}


def test_the_source_list_names_every_shipped_file_and_its_hash() -> None:
    text = (DATA / "SOURCES.md").read_text(encoding="utf-8")
    listed = re.findall(r"^## (\S+)$", text, flags=re.MULTILINE)
    entries = [REGISTRY.describe(name) for name in REGISTRY.names()]
    files = [file for entry in entries if entry.shipped for file in entry.files]
    declared = {file for file in files if isinstance(file, DataFile)}
    assert sorted(listed) == sorted(file.path for file in declared)
    assert sorted(listed) == sorted(path.name for path in DATA.glob("*.xz"))
    for file in declared:
        section = text.split(f"## {file.path}\n")[1].split("\n## ")[0]
        assert f"* sha256: `{file.sha256}`" in section


@pytest.mark.parametrize("shipped", MIRROR)
def test_shipped_bytes_are_those_of_a_mirror(shipped: str) -> None:
    folder = os.environ.get("SVGPBENCH_MIRROR")
    if not folder:
        pytest.skip("SVGPBENCH_MIRROR names no folder with copies of the upstream files")
    mirrored = Path(folder) / MIRROR[shipped]
    if not mirrored.is_file():
        pytest.skip(f"the mirror has no {MIRROR[shipped]}")
    theirs = mirrored.read_bytes()
    if shipped in COMMAS_LOST and b"," not in theirs:
        theirs = theirs.replace(b" ", b",")
    ours = lzma.decompress((DATA / shipped).read_bytes())
    assert hashlib.sha256(ours).hexdigest() == hashlib.sha256(theirs).hexdigest()
