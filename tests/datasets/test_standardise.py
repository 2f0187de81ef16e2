"""Standardisation uses the training part's statistics and no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from planted import table

from svgpbench_datasets import (
    REGISTRY,
    DataError,
    Split,
    Standardiser,
    k_fold,
    prepare,
    standardise,
)
from svgpbench_datasets.dataset import sealed


def test_test_rows_leave_the_training_part_as_it_is() -> None:
    """Fails if any statistic were taken over the test rows too."""
    dataset, split = REGISTRY.load("boston"), k_fold(506, 5, 2, 0)
    X, y = dataset.X.copy(), dataset.y.copy()
    X[split.test] = 1e6 * (X[split.test] + 1.0)
    y[split.test] += 1e6
    original, changed = prepare(dataset, split), prepare(table(X, y), split)
    np.testing.assert_array_equal(changed.X_train, original.X_train)
    np.testing.assert_array_equal(changed.y_train, original.y_train)
    np.testing.assert_array_equal(changed.standardiser.mean, original.standardiser.mean)
    assert (changed.y_mean, changed.y_scale) == (original.y_mean, original.y_scale)
    assert np.abs(changed.X_test[:]).min() > np.abs(original.X_test[:]).min()


def test_training_part_has_mean_zero_and_spread_one_and_test_part_follows() -> None:
    dataset, split = REGISTRY.load("concrete"), k_fold(1030, 5, 0, 3)
    prepared = prepare(dataset, split)
    np.testing.assert_allclose(np.asarray(prepared.X_train).mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.asarray(prepared.X_train).std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(prepared.y_train.std(), 1, rtol=1e-12)
    X_train, X_test = dataset.X[split.train], dataset.X[split.test]
    np.testing.assert_allclose(
        prepared.X_test, (X_test - X_train.mean(axis=0)) / X_train.std(axis=0), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        prepared.y_test * prepared.y_scale + prepared.y_mean, dataset.y[split.test], rtol=1e-12
    )


def test_rows_are_made_on_demand_from_the_one_table() -> None:
    """The bits are those of a standardised copy, which is not made."""
    dataset, split = REGISTRY.load("concrete"), k_fold(1030, 5, 0, 3)
    rows = prepare(dataset, split).X_train
    assert rows.table is dataset.X
    X = dataset.X[split.train]
    whole = (X - X.mean(axis=0)) / np.sqrt(np.square(X - X.mean(axis=0)).mean(axis=0))
    assert (rows.shape, len(rows)) == (whole.shape, len(whole))
    assert np.asarray(rows).tobytes() == whole.tobytes()
    some = np.array([[5, 0, 5], [823, 7, 1]])
    assert rows[some].tobytes() == whole[some].tobytes()
    assert rows[10:13].tobytes() == whole[10:13].tobytes()
    with pytest.raises(ValueError, match="cannot be had uncopied"):
        np.asarray(rows, copy=False)


def test_statistics_taken_part_by_part_are_those_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.column_stack([REGISTRY.load("concrete").X, np.full(1030, 0.1)])
    whole = Standardiser.fit(X)
    monkeypatch.setattr(standardise, "ROWS_AT_ONCE", 100)
    parted = Standardiser.fit(X)
    np.testing.assert_allclose(parted.mean, whole.mean, rtol=1e-13)
    np.testing.assert_allclose(parted.scale, whole.scale, rtol=1e-13)
    assert (parted.mean[-1], parted.scale[-1]) == (0.1, 1.0)


def test_a_sealed_table_is_not_copied_and_another_is() -> None:
    X, y = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), np.arange(3.0)
    assert table(X, y).X is not X
    assert table(sealed(X), y).X is X
    assert table(X[:2], y[:2]).X.base is None  # a view is of memory that is another's
    assert table(np.asfortranarray(X), y).X.flags.c_contiguous


def test_prepared_parts_record_where_they_came_from() -> None:
    dataset, split = REGISTRY.load("airfoil"), k_fold(1503, 5, 4, 1)
    prepared = prepare(dataset, split)
    assert prepared.fingerprint == dataset.fingerprint
    assert prepared.split_hash == split.hash
    assert prepared.X_train[:].dtype == prepared.y_test.dtype == np.float64
    for array in (prepared.X_train.table, prepared.y_train, prepared.y_test):
        assert not array.flags.writeable


def test_the_constant_column_of_ionosphere_becomes_zero() -> None:
    prepared = prepare(REGISTRY.load("ionosphere"), k_fold(351, 5, 0, 0))
    assert (prepared.X_train[:][:, 1] == 0).all()
    assert (prepared.X_test[:][:, 1] == 0).all()
    assert prepared.standardiser.scale[1] == 1.0
    assert np.isfinite(prepared.X_train[:]).all()


def test_a_column_constant_in_the_training_part_only_stays_finite() -> None:
    X = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0], [7.1, 3.0]])
    split = Split(np.array([0, 1, 2]), np.array([3]), "random", 0, 1, 0)
    prepared = prepare(table(X, np.arange(4.0)), split)
    assert (prepared.X_train[:][:, 0] == 0).all()
    assert prepared.X_test[:][0, 0] == 7.1 - 0.1


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-13, 1.0, 1e13, 1e150, 1e300])
@pytest.mark.parametrize("offset", [-1.0, 1.0, 1e6])
def test_a_spread_far_below_the_mean_counts_as_constant_in_any_unit(
    offset: float, unit: float
) -> None:
    limit = 1e-12 * abs(offset)
    below = unit * np.array([[offset - limit / 4], [offset + limit / 4]])
    assert Standardiser.fit(below).scale[0] == 1.0
    above = unit * np.array([[offset - 8 * limit], [offset + 8 * limit]])
    # rounding of the two values is 1e-16 of the offset, 3e-5 of their distance
    assert Standardiser.fit(above).scale[0] == pytest.approx(8 * limit * unit, rel=3e-5)


@pytest.mark.parametrize("unit", [1e-307, 1e-300, 1e-162, 1e-29, 1e-13, 1e13, 1e155, 1e300])
def test_other_units_give_the_same_standard_numbers(unit: float) -> None:
    """Fails for any absolute tolerance, and for squares that leave float64 (they do from 1e-162 on)."""
    X = np.random.default_rng(0).normal([0.0, 3.0, -50.0], [1.0, 0.1, 20.0], (40, 3))
    here, there = Standardiser.fit(X), Standardiser.fit(unit * X)
    np.testing.assert_allclose(there.mean, unit * here.mean, rtol=1e-13)
    np.testing.assert_allclose(there.scale, unit * here.scale, rtol=1e-13)
    np.testing.assert_allclose(there.apply(unit * X), here.apply(X), rtol=1e-9)


def test_a_power_of_two_as_unit_changes_no_bit() -> None:
    X = np.random.default_rng(0).normal(2.0, 1.0, (40, 3))
    for exponent in (-900, -40, 40, 900):
        unit = np.ldexp(1.0, exponent)
        there = Standardiser.fit(unit * X)
        assert there.scale.tobytes() == (unit * Standardiser.fit(X).scale).tobytes()


def test_labels_are_untouched() -> None:
    for name in ("sonar", "banana", "pima"):
        dataset = REGISTRY.load(name)
        split = k_fold(dataset.y.size, 5, 0, 0)
        prepared = prepare(dataset, split)
        np.testing.assert_array_equal(prepared.y_train, dataset.y[split.train])
        np.testing.assert_array_equal(prepared.y_test, dataset.y[split.test])
        assert (prepared.y_mean, prepared.y_scale) == (0.0, 1.0)


def test_a_regression_target_can_keep_its_units() -> None:
    dataset, split = REGISTRY.load("boston"), k_fold(506, 5, 0, 0)
    prepared = prepare(dataset, split, standardise_y=False)
    np.testing.assert_array_equal(prepared.y_train, dataset.y[split.train])
    assert (prepared.y_mean, prepared.y_scale) == (0.0, 1.0)


def test_a_constant_regression_target_becomes_zero() -> None:
    dataset = table(np.arange(6.0)[:, None], np.full(6, 0.3))
    prepared = prepare(dataset, k_fold(6, 3, 0, 0))
    assert (prepared.y_train == 0).all()
    assert (prepared.y_mean, prepared.y_scale) == (0.3, 1.0)


def test_a_split_of_other_rows_is_refused() -> None:
    dataset = REGISTRY.load("banana")
    with pytest.raises(DataError, match="split is of 506 rows but data set 'banana' has 400"):
        prepare(dataset, k_fold(506, 5, 0, 0))
    beyond = Split(np.arange(399), np.array([400]), "random", 0, 1, 0)
    with pytest.raises(DataError, match="make the split for this data set"):
        prepare(dataset, beyond)


def test_a_range_beyond_float64_is_refused() -> None:
    """1e200 has no square in float64, but a standard deviation."""
    X = np.array([[1.0, 1e200], [2.0, -1e200]])
    assert Standardiser.fit(X).scale == pytest.approx([0.5, 1e200])
    with pytest.raises(DataError, match="column 2 is too large to standardise"):
        Standardiser.fit(np.array([[1.0, 1.5e308], [2.0, -1.5e308]]))
    with pytest.raises(DataError, match="column 'b' is too small to standardise"):
        Standardiser.fit(np.array([[1.0, 5e-324], *[[2.0, 0.0]] * 20]), names=["a", "b"])


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 20), st.integers(1, 4)),
        elements=st.floats(-8e307, 8e307, allow_subnormal=False),
    )
)
def test_numbers_of_any_size_standardise_to_finite_numbers(X: np.ndarray) -> None:
    standardiser = Standardiser.fit(X)
    scaled = standardiser.apply(X)
    assert np.isfinite(scaled).all()
    assert (standardiser.scale > 0).all()
    assert (scaled[:, X.min(axis=0) == X.max(axis=0)] == 0).all()
