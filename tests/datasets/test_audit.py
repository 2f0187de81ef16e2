"""Leaks that are planted in a copy of real data are flagged from the numbers alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from svgpbench_datasets import REGISTRY, Dataset, k_fold
from svgpbench_datasets.audit import Flag, audit, facts_of, flags_of

Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def raised(dataset: Dataset) -> tuple[Flag, ...]:
    split = k_fold(len(dataset.y), 5, 0, 0)
    return flags_of(dataset, facts_of(dataset, split))


def leaks(dataset: Dataset) -> set[str]:
    return {flag.kind for flag in raised(dataset) if flag.leak}


def notes(dataset: Dataset) -> set[str]:
    return {flag.kind for flag in raised(dataset) if not flag.leak}


def changed(name: str, change: Callable[[Any, Any, Any], Arrays]) -> Dataset:
    """A copy of a data set in another row order, with something done to it."""
    dataset = REGISTRY.load(name)
    random = np.random.default_rng(7)
    rows = random.permutation(len(dataset.y))
    X, y = change(dataset.X[rows].copy(), dataset.y[rows].copy(), random)
    names = tuple(f"x{at}" for at in range(X.shape[1]))
    return dataclasses.replace(dataset, X=X, y=y, feature_names=names)


def unchanged(X: Any, y: Any, random: Any) -> Arrays:
    return X, y


@pytest.mark.parametrize("name", ["airfoil", "boston", "sonar", "pima", "banana"])
def test_clean_data_raise_no_leak(name: str) -> None:
    assert leaks(changed(name, unchanged)) == set()


def added(column: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Arrays]:
    return lambda X, y, random: (np.column_stack([X, column(y, random)]), y)


@pytest.mark.parametrize("name", ["airfoil", "boston"])
@pytest.mark.parametrize(
    "column",
    [
        lambda y, random: y,
        lambda y, random: 3.0 - 0.5 * y,
        lambda y, random: np.log(y),
        lambda y, random: np.square(y - y.mean()) * np.sign(y - y.mean()),
        lambda y, random: y + 1e-3 * y.std() * random.standard_normal(len(y)),
    ],
)
def test_a_feature_that_determines_the_target_is_flagged(name: str, column: Any) -> None:
    found = raised(changed(name, added(column)))
    determined = [flag for flag in found if flag.kind == "determines-target"]
    assert len(determined) == 1
    assert determined[0].leak
    D = REGISTRY.load(name).X.shape[1]
    assert determined[0].text.startswith(f"x{D} alone")


def in_two_parts(combine: Callable[[Any, Any], Any], scale: float = 1.0) -> Any:
    def change(X: Any, y: Any, random: Any) -> Arrays:
        part = random.uniform(-3, 3, len(y)) * y.std()
        return np.column_stack([X, part * scale, combine(y, part)]), y

    return change


@pytest.mark.parametrize("name", ["airfoil", "boston"])
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (in_two_parts(lambda y, part: y - part), "sum-determines-target"),
        (in_two_parts(lambda y, part: y + part), "sum-determines-target"),
        (in_two_parts(lambda y, part: np.exp(y / y.max()) - part), "sum-determines-target"),
        (in_two_parts(lambda y, part: y - part, scale=7.0), "pair-determines-target"),
    ],
)
def test_two_features_that_determine_the_target_together_are_flagged(
    name: str, change: Any, kind: str
) -> None:
    found = raised(changed(name, change))
    D = REGISTRY.load(name).X.shape[1]
    pair = [flag.text for flag in found if flag.kind == kind]
    assert len(pair) == 1
    assert f"x{D}" in pair[0]
    assert f"x{D + 1}" in pair[0]
    assert "determines-target" not in {flag.kind for flag in found}


def test_the_two_parts_of_a_label_are_flagged() -> None:
    found = leaks(changed("pima", in_two_parts(lambda y, part: y - part)))
    assert found == {"sum-determines-target"}


def test_a_row_number_is_flagged_and_so_is_what_it_gives_away() -> None:
    dataset = REGISTRY.load("sonar")  # ordered by class
    number = np.arange(1.0, 209.0)
    for column in (number, (number - number.mean()) / number.std(), np.round(number / 7, 5)):
        X = np.column_stack([dataset.X, column])
        names = (*dataset.feature_names, "number")
        planted = dataclasses.replace(dataset, X=X, feature_names=names)
        assert leaks(planted) >= {"row-number-input", "determines-target"}
    assert "ordered-by-target" in notes(dataset)
    two_files = np.concatenate([number[:150], number[:58]])
    planted = dataclasses.replace(
        dataset,
        X=np.column_stack([dataset.X, two_files]),
        feature_names=(*dataset.feature_names, "number"),
    )
    assert "row-number-input" in leaks(planted)


def test_a_label_as_an_input_is_flagged() -> None:
    assert leaks(changed("pima", added(lambda y, random: 1.0 - y))) == {"determines-target"}


def test_training_rows_in_the_test_part_are_flagged() -> None:
    def doubled(X: Any, y: Any, random: Any) -> Arrays:
        again = random.permutation(len(y))[: len(y) // 20]
        return np.concatenate([X, X[again]]), np.concatenate([y, y[again] + 0.1])

    dataset = changed("airfoil", doubled)
    found = {flag.kind: flag for flag in raised(dataset)}
    assert found["test-inputs-in-training"].leak
    split = k_fold(len(dataset.y), 5, 0, 0)
    facts = facts_of(dataset, split)
    train = {tuple(row) for row in dataset.X[split.train].tolist()}
    seen = sum(tuple(row) in train for row in dataset.X[split.test].tolist())
    assert (facts.test_seen, facts.test_rows) == (seen, len(split.test))
    assert facts.distinct_inputs == len(np.unique(dataset.X, axis=0)) == 1503


def test_a_capped_target_is_noted_at_either_end() -> None:
    assert "capped-target" in notes(REGISTRY.load("boston"))
    assert "capped-target" not in notes(REGISTRY.load("airfoil"))

    def capped(X: Any, y: Any, random: Any) -> Arrays:
        return X, np.maximum(y, np.quantile(y, 0.03))

    assert "capped-target" in notes(changed("airfoil", capped))


def test_zeros_that_stand_for_missing_values_are_noted_with_their_columns() -> None:
    text = next(flag.text for flag in raised(REGISTRY.load("pima")) if flag.kind == "zeros-apart")
    assert text.endswith(
        "glucose (5), blood_pressure (35), skin_thickness (227), insulin (374), bmi (11)"
    )

    def emptied(X: Any, y: Any, random: Any) -> Arrays:
        X[random.permutation(len(y))[:40], 3] = 0.0
        return X, y

    dataset = changed("airfoil", emptied)
    assert "zeros-apart" not in notes(
        dataset
    )  # the velocity takes four values only: no measurement
    dataset = changed("concrete", emptied)
    assert any("x3 (40)" in flag.text for flag in raised(dataset) if flag.kind == "zeros-apart")


def test_columns_without_information_are_noted() -> None:
    assert "constant-column" in notes(REGISTRY.load("ionosphere"))
    twin = changed("boston", lambda X, y, random: (np.column_stack([X, X[:, 5]]), y))
    texts = [flag.text for flag in raised(twin) if flag.kind == "equal-columns"]
    assert texts == ["x5 and x13 are equal"]


def test_the_row_correlation_is_the_textbook_one() -> None:
    dataset = REGISTRY.load("airfoil")
    facts = audit(REGISTRY, "airfoil").facts
    expected = abs(np.corrcoef(np.arange(1503), dataset.y)[0, 1])
    assert facts.row_correlation == pytest.approx(expected, abs=1e-12)
    # of two classes the correlation ratio is the absolute correlation
    sonar = REGISTRY.load("sonar")
    expected = abs(np.corrcoef(np.arange(208), sonar.y)[0, 1])
    assert audit(REGISTRY, "sonar").facts.row_correlation == pytest.approx(expected, abs=1e-12)


def test_an_audit_names_its_split_and_its_classes() -> None:
    looked = audit(REGISTRY, "pima")
    assert looked.facts.split == "k-fold, fold 0 of 5, seed 0"
    assert looked.facts.classes == {"0": 500, "1": 268}
    assert looked.to_json()["fingerprint"] == REGISTRY.describe("pima").fingerprint
