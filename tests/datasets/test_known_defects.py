"""What is known to be wrong with the published files is found in their numbers alone.

Not looked for, as no number tells it: classes that a copy lacks (connect-4 has 2 of the documented 3),
a target that is a transform of the published one (a logarithm), which of several targets a paper
took, what a zero means, licences.

Skipped where SVGPBENCH_MIRROR names no folder.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from mirror import manifest, mirrored

from svgpbench_datasets import REGISTRY, Registry
from svgpbench_datasets.audit.report import Audit, audit


@cache
def audited(registry: Registry, name: str) -> Audit:
    return audit(registry, name)


def flags(registry: Registry, name: str) -> dict[str, str]:
    return {flag.kind: flag.text for flag in audited(registry, name).flags}


def leaks(registry: Registry, name: str) -> set[str]:
    return {flag.kind for flag in audited(registry, name).leaks}


ROW_NUMBERS = [
    name
    for name in REGISTRY.names()
    if name.endswith(":row-number") and not REGISTRY.describe(name).unseen
]


@pytest.mark.parametrize("name", ROW_NUMBERS)
def test_a_row_number_is_found_and_nothing_like_it_without(registry: Registry, name: str) -> None:
    base = name.partition(":")[0]
    assert "row-number-input" in leaks(registry, name)
    if base in ("magic", "chess-krvk", "sonar"):  # in the order of their classes
        assert "determines-target" in leaks(registry, name)
    clean = leaks(registry, base)
    assert clean <= {"test-inputs-in-training"}


@pytest.mark.parametrize(
    ("name", "correlation"),
    [
        ("chess-krvk", 0.89),
        ("magic", 0.83),
        ("sonar", 0.86),
        ("mushroom", 0.53),
        ("chess-krvkp", 0.50),
    ],
)
def test_rows_in_the_order_of_their_class_are_found(
    registry: Registry, name: str, correlation: float
) -> None:
    # within the rounding of what is listed
    assert audited(registry, name).facts.row_correlation == pytest.approx(correlation, abs=0.005)
    assert "ordered-by-target" in flags(registry, name)


def test_two_columns_that_add_up_to_the_target_are_found(registry: Registry) -> None:
    assert flags(registry, "bike:leaky")["sum-determines-target"].startswith("x16 + x17 ")
    assert leaks(registry, "bike") == set()
    assert flags(registry, "bike")["lowest-apart"].endswith(": x14 (22)")
    equal = [f.text for f in audited(registry, "bike").flags if f.kind == "equal-columns"]
    assert equal == ["x1 and x5 are equal", "x2 and x6 are equal"]


@pytest.mark.parametrize(
    ("name", "distinct", "seen", "test"),
    [("keggdirected", 15811, 3624, 4882), ("keggundirected", 18451, 4936, 6360)],
)
def test_inputs_that_a_published_split_shares_are_found(
    registry: Registry, name: str, distinct: int, seen: int, test: int
) -> None:
    facts = audited(registry, name).facts
    assert (facts.distinct_inputs, facts.test_seen, facts.test_rows) == (distinct, seen, test)
    assert leaks(registry, name) == {"test-inputs-in-training"}
    assert "few-distinct-inputs" in flags(registry, name)


@pytest.mark.parametrize(("name", "repeated"), [("protein", 1711), ("concrete", 25)])
def test_rows_that_repeat_an_earlier_one_are_found(
    registry: Registry, name: str, repeated: int
) -> None:
    assert audited(registry, name).facts.repeated_rows == repeated
    assert flags(registry, name)["repeated-rows"] == f"{repeated} rows repeat an earlier row"
    dataset = registry.load(name)
    joined = np.column_stack([dataset.X, dataset.y])
    assert len(joined) - len(np.unique(joined, axis=0)) == repeated


def test_a_target_without_signal_is_found_and_one_without_a_linear_signal_is_not(
    registry: Registry,
) -> None:
    assert audited(registry, "tamielectric").facts.linear_r2 == pytest.approx(1e-4, abs=5e-5)
    assert "no-signal" in flags(registry, "tamielectric")
    assert leaks(registry, "tamielectric") == set()
    for bent in ("kin40k", "pumadyn32nm", "sinc"):
        assert audited(registry, bent).facts.linear_r2 < 1e-3
        assert "no-signal" not in flags(registry, bent)


def test_naval_is_found_to_be_a_grid_with_columns_that_tell_nothing(registry: Registry) -> None:
    found = flags(registry, "naval")
    assert audited(registry, "naval").facts.target_values == 51
    grid = "rows are a full grid: compressor_decay (51) x lever_position (9), 26 rows each"
    assert found["full-grid"] == grid
    assert found["constant-column"] == (
        "constant: compressor_inlet_temperature, compressor_inlet_pressure"
    )
    equal = "starboard_propeller_torque and port_propeller_torque are equal"
    assert found["equal-columns"] == equal
    assert {"few-target-values", "ordered-by-target"} <= found.keys()
    assert "ordered-rows" in flags(registry, "naval:turbine")


def test_zeros_for_missing_values_are_found_where_they_are_standardised(registry: Registry) -> None:
    coded = "f2 (5), f3 (35), f4 (227), f5 (374), f6 (11)"
    assert flags(registry, "pima:jmlr")["lowest-apart"].endswith(coded)


@pytest.mark.parametrize("name", ["adult", "adult:complete"])
def test_missing_values_are_counted_in_the_files(registry: Registry, name: str) -> None:
    facts = audited(registry, name).facts
    assert facts.missing_cells == {"workclass": 2799, "occupation": 2809, "native_country": 857}
    assert facts.missing_rows == 3620
    assert "missing-values" in flags(registry, name)
    halves = [mirrored(f"adult/adult.{half}").decode() for half in ("data", "test")]
    assert sum(half.count(" ?,") for half in halves) == sum(facts.missing_cells.values()) == 6465


PROCESSED = [
    name
    for name in REGISTRY.names()
    if not (entry := REGISTRY.describe(name)).unseen
    and any(file.path.endswith((".data.csv", "_R.dat")) for file in entry.files)
]


@pytest.mark.parametrize("name", PROCESSED)
def test_tables_that_were_centred_with_their_test_rows_are_found(
    registry: Registry, name: str
) -> None:
    assert "centred" in flags(registry, name)


MEASURED = [
    "airfoil", "boston", "concrete", "sonar", "kin8nm", "protein", "pol", "elevators", "naval",
    "sarcos:test-half", "wine-quality-white", "statlog-landsat:uci", "thyroid:uci", "adult",
    "thesis-sinusoid", "thesis-gp-sample", "sinc", "banana",
]  # fmt: skip


@pytest.mark.parametrize("name", MEASURED)
def test_tables_as_they_were_measured_are_not_called_centred(registry: Registry, name: str) -> None:
    assert "centred" not in flags(registry, name)


def published_as(folder: str) -> str:
    """The data set whose folds a folder of the collection holds."""
    return f"{folder}-classes" if folder == "wine-quality-white" else folder


def test_every_file_of_folds_is_declared_to_be_no_partition() -> None:
    folds = [row["file"] for row in manifest() if "conxuntos_kfold" in row["file"]]
    assert len(folds) == 21
    for file in folds:
        folder = file.partition("/")[0]
        lists = mirrored(f"{folder}/conxuntos_kfold.dat").decode().splitlines()
        parts = [[int(row) for row in line.split()] for line in lists if line]
        rows = set().union(*parts)
        never = rows.difference(*parts[1::2])
        assert (len(parts), rows) == (8, set(range(len(rows))))
        # a quarter drawn four times leaves 0.75**4 of the rows; three binomial deviations
        left = 0.75**4
        deviation = np.sqrt(len(rows) * left * (1.0 - left))
        assert abs(len(never) - left * len(rows)) < 3.0 * deviation
        defects = " ".join(REGISTRY.describe(published_as(folder)).defects)
        stated = re.findall(r"conxuntos_kfold.dat .* ([0-9]+) of ([0-9]+) ", defects)
        assert stated == [(str(len(never)), str(len(rows)))], folder
