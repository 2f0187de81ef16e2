"""Δ backends and Δ rounding: which cells they compare, and what a relative difference is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hand_records import cell, record

from svgpbench.config import BackendConfig, SplitConfig
from svgpbench.results.backend_agreement import between_backends, by_rounding, on_some_cells
from svgpbench.results.frames import final_frame
from svgpbench.results.records import Record


def backends_differ(*records: Record) -> float:
    return between_backends(final_frame(records))


def rounding_differs(*records: Record) -> float:
    return by_rounding(final_frame(records))


def on(backend: str, elbo: float, dtype: str = "float64", **changes: Any) -> Record:
    return record(cell(**changes).model_copy(update={"backend": backend_(backend, dtype)}), elbo)


def backend_(name: str, dtype: str) -> BackendConfig:
    return BackendConfig.parse(name, dtype=dtype)


def test_difference_is_relative_to_the_largest_value_and_not_the_mean_or_the_cell_count() -> None:
    # of −100 and −80: 20/100
    assert backends_differ(on("jax", -100.0), on("torch", -80.0)) == pytest.approx(0.2, rel=1e-15)
    # of three, the two farthest apart
    three = (on("jax", -100.0), on("torch", -80.0), on("numpy", -90.0))
    assert backends_differ(*three) == pytest.approx(0.2, rel=1e-15)
    assert backends_differ(on("jax", -1.0), on("torch", 1.0)) == pytest.approx(2.0, rel=1e-15)


def test_the_largest_over_cells_is_told_and_not_their_mean() -> None:
    records = [
        on(name, elbo, fold=fold)
        for fold, pair in enumerate(((-10.0, -10.0), (-10.0, -9.0), (-10.0, -9.5)))
        for name, elbo in zip(("jax", "torch"), pair, strict=True)
    ]
    assert backends_differ(*records) == pytest.approx(0.1, rel=1e-15)


def other_split(seed: int) -> SplitConfig:
    return SplitConfig(kind="random", seed=seed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"fold": 0}, {"fold": 1}),
        ({"seed": 0}, {"seed": 1}),
        ({"data": "airfoil"}, {"data": "boston"}),
        ({"method": "A"}, {"method": "B"}),
        ({"split": other_split(0)}, {"split": other_split(1)}),
    ],
    ids=["fold", "seed", "data", "method", "split seed"],
)
def test_only_results_of_one_cell_are_compared(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert math.isnan(backends_differ(on("jax", -100.0, **one), on("torch", -80.0, **other)))
    replica = on("jax", -80.0, perturbation=1e-15, **other)
    assert math.isnan(rounding_differs(on("jax", -100.0, **one), replica))


def test_neither_precisions_nor_replicas_nor_failures_count_between_backends() -> None:
    good = (on("jax", -100.0), on("torch", -99.0))
    others = (
        on("jax", -50.0, dtype="float32"),
        on("torch", -40.0, perturbation=1e-15),
        record(cell(backend="numpy"), -1.0, status="diverged"),
    )
    assert backends_differ(*good, *others) == pytest.approx(0.01, rel=1e-14)
    # but two backends of float32 are compared with one another
    single = (on("jax", -50.0, dtype="float32"), on("torch", -25.0, dtype="float32"))
    assert backends_differ(*good, *single) == 0.5


def test_one_backend_alone_has_no_difference() -> None:
    assert math.isnan(backends_differ(on("jax", -100.0), on("jax", -80.0, fold=1)))
    failed = record(cell(backend="torch"), -80.0, status="not_pd")
    assert math.isnan(backends_differ(on("jax", -100.0), failed))


def test_rounding_compares_a_cell_with_its_replica_on_the_same_backend() -> None:
    records = (
        on("jax", -100.0),
        on("jax", -98.0, perturbation=1e-15),
        on("torch", -60.0),  # far from jax, which is no rounding
    )
    assert rounding_differs(*records) == pytest.approx(0.02, rel=1e-14)
    assert math.isnan(rounding_differs(records[0], records[2]))
    both = (*records, on("torch", -59.7, perturbation=1e-15))
    assert rounding_differs(*both) == pytest.approx(0.02, rel=1e-14)
    failed = record(cell(perturbation=1e-15), -50.0, status="diverged")
    assert math.isnan(rounding_differs(records[0], failed))


def test_equal_numbers_differ_by_zero_and_not_by_nothing() -> None:
    assert backends_differ(on("jax", -100.0), on("torch", -100.0)) == 0.0


def test_a_note_says_of_cells_that_some_backends_ran_how_far_they_are_apart_and_rounding_carries() -> (
    None
):
    every = [on("jax", -100.0, fold=fold) for fold in range(3)]
    some = [on("torch", -99.0, fold=0), on("tensorflow", -98.0, fold=0), on("torch", -97.0, fold=2)]
    replica = on("jax", -95.0, fold=1, perturbation=1e-15)
    assert on_some_cells(final_frame([*every, *some, replica]), "jax") == (
        "2 of 3 cells ran on torch, tensorflow too: the final ELBO of one is up to 3e-02 apart, "
        "relative; rounding moves it by 5e-02"
    )
    without = on_some_cells(final_frame([*every, *some]), "jax")
    assert without.endswith("up to 3e-02 apart, relative; no cell ran perturbed")
    # a cell that the reference did not run is none of them
    more = on_some_cells(final_frame([*every, some[0], on("torch", -9.0, fold=7)]), "jax")
    assert more.startswith("1 of 3 cells ran on torch too: the final ELBO of one is up to 1e-02")
    whole = [on("torch", -99.0, fold=fold) for fold in range(3)]
    for records in (every, [*every, *whole], [*every, on("torch", -9.0, fold=7)]):
        assert on_some_cells(final_frame(records), "jax") == ""
