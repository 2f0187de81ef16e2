"""A table of several outputs: any of them may be the target, by `NAME@OUTPUT`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mirror import mirrored_registry
from scipy.io import loadmat

from svgpbench_datasets import REGISTRY, DataError, Registry
from svgpbench_datasets.sources import Sources

ARM = """
[arm]
title = "An arm"
task = "regression"
files = [{ path = "arm/arm.csv", at_most = 1000 }]
unseen = true
reader = "csv"
rows = 3
columns = ["x1..x2", "y1..y3"]
target = "y2"
outputs = ["y1..y3"]
upstream = "none in a stable place"
licence = "none stated"
citation = "nobody"
"""


ZEROS = f"sha256:{'0' * 64}"


@pytest.fixture
def arm(tmp_path: Path) -> Callable[..., Registry]:
    def declare(old: str = "", new: str = "") -> Registry:
        (tmp_path / "registry.toml").write_text(ARM.replace(old, new), encoding="utf-8")
        (tmp_path / "mirror" / "arm").mkdir(parents=True, exist_ok=True)
        (tmp_path / "mirror" / "arm" / "arm.csv").write_text("1,2,3,4,5\n6,7,8,9,10\n0,0,0,0,1\n")
        cache = tmp_path / "cache"
        return Registry(
            tmp_path, Sources(tmp_path, cache=cache, mirrors=(str(tmp_path / "mirror"),))
        )

    return declare


def test_no_output_is_an_input_whichever_is_the_target(arm: Callable[..., Registry]) -> None:
    registry = arm()
    for name, y in (
        ("arm", [4, 9, 0]),
        ("arm@y1", [3, 8, 0]),
        ("arm@y2", [4, 9, 0]),
        ("arm@y3", [5, 10, 1]),
    ):
        dataset = registry.load(name)
        assert dataset.X.tolist() == [[1, 2], [6, 7], [0, 0]]
        assert (dataset.y.tolist(), dataset.feature_names) == (y, ("x1", "x2"))
    assert registry.load("arm@y3").name == "arm@y3"
    assert registry.load("arm@y2").name == "arm"
    assert registry.names() == ("arm",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("arm@y4", r"data set 'arm' has no output 'y4' \(its outputs: y1, y2, y3\)"),
        ("arm@x1", r"data set 'arm' has no output 'x1'"),
        ("arm@", r"data set 'arm' has no output ''"),
        ("leg@y1", r"unknown data set 'leg'"),
    ],
)
def test_what_is_no_output_is_refused(
    arm: Callable[..., Registry], name: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        arm().load(name)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"'boston' has no output 'RAD' \(it has one\)"):
        REGISTRY.describe("boston@RAD")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('outputs = ["y1..y3"]', 'outputs = ["y1", "y3"]', "the target among them"),
        (
            'outputs = ["y1..y3"]',
            'outputs = ["y2", "y4"]',
            r"not among the columns x1, .*: \['y4'\]",
        ),
        ('target = "y2"', 'target = "y2"\nfeatures = ["y1"]', "'y1' is among the features"),
        ('outputs = ["y1..y3"]', 'outputs = ["y2", "y2"]', "a column is named twice"),
        (
            'outputs = ["y1..y3"]',
            f'outputs = ["y2"]\noutput_fingerprints = {{ y3 = "{ZEROS}" }}',
            "no output",
        ),
        ('"regression"', '"classification"\nlabels = { 0 = 0, 1 = 1 }', "those of a regression"),
    ],
)
def test_outputs_that_cannot_be_are_refused(
    arm: Callable[..., Registry], old: str, new: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        arm(old, new).names()


def test_the_seven_torques_of_sarcos_are_those_that_scipy_reads(tmp_path: Path) -> None:
    registry = mirrored_registry(tmp_path)
    fingerprints = set()
    for joint in range(1, 8):
        dataset = registry.load(f"sarcos:test-half@torque{joint}")
        table = loadmat(tmp_path / "sarcos" / "sarcos_inv_test.mat")["sarcos_inv_test"]
        assert np.array_equal(dataset.X, table[:, :21])
        assert np.array_equal(dataset.y, table[:, 20 + joint])
        fingerprints.add(dataset.fingerprint)
    assert len(fingerprints) == 7


def test_an_output_has_the_fingerprint_that_is_declared_for_it(
    arm: Callable[..., Registry],
) -> None:
    pinned = f'outputs = ["y1..y3"]\noutput_fingerprints = {{ y3 = "{ZEROS}" }}'
    registry = arm('outputs = ["y1..y3"]', pinned)
    assert registry.describe("arm@y3").fingerprint == ZEROS
    assert registry.describe("arm@y1").fingerprint is None
    with pytest.raises(DataError, match="'arm@y3': its registry has a fingerprint of zeros"):
        registry.load("arm@y3")


def test_every_torque_of_the_test_file_is_known_without_the_file(tmp_path: Path) -> None:
    registry = mirrored_registry(tmp_path)
    for joint in range(1, 8):
        name = f"sarcos:test-half@torque{joint}"
        assert REGISTRY.describe(name).fingerprint == registry.load(name).fingerprint
