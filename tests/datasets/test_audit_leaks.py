"""Leaks that are planted in a copy of real data are flagged from the numbers alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from planted import Arrays, added, changed, leaks, notes, raised, unchanged

from svgpbench_datasets import REGISTRY, Dataset, Split, k_fold
from svgpbench_datasets.audit.facts import facts_of


@pytest.mark.parametrize("name", ["airfoil", "boston", "sonar", "pima", "banana"])
def test_clean_data_raise_no_leak(name: str) -> None:
    clean = changed(name, unchanged)
    assert leaks(clean) == set()
    assert "test-inputs-in-training" not in notes(clean)


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


def of_few_rows(column: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Arrays]:
    """100 rows of heavy tails, in which neighbours are far apart."""

    def change(X: Any, y: Any, random: Any) -> Arrays:
        few = random.standard_t(3, 100)
        return np.column_stack([X[:100], column(few, random)]), few

    return change


@pytest.mark.parametrize("column", [lambda y, _: 2.0 * y, lambda y, _: np.arctan(y)])
def test_few_rows_are_enough(column: Any) -> None:
    assert leaks(changed("boston", of_few_rows(column))) == {"determines-target"}


def test_of_few_rows_a_good_feature_is_no_leak() -> None:
    good = of_few_rows(lambda y, random: y + 0.05 * random.standard_normal(len(y)))
    assert leaks(changed("boston", good)) == set()


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


def test_shared_inputs_are_a_leak_only_where_they_come_with_the_target() -> None:
    def doubled(with_target: bool) -> Callable[[Any, Any, Any], Arrays]:
        def change(X: Any, y: Any, random: Any) -> Arrays:
            again = random.permutation(len(y))[: len(y) // 10]
            more = y[again] if with_target else random.permutation(y)[: len(again)]
            return np.concatenate([X, X[again]]), np.concatenate([y, more])

        return change

    for with_target in (True, False):
        dataset = changed("airfoil", doubled(with_target))
        facts = facts_of(dataset, k_fold(len(dataset.y), 5, 0, 0))
        assert facts.test_seen > 20
        assert (facts.test_told == facts.test_seen) == with_target
    assert leaks(changed("airfoil", doubled(True))) == {"test-inputs-in-training"}
    one = changed("sonar", lambda X, y, random: (np.vstack([X, X[:1]]), np.append(y, y[0])))
    assert leaks(one) == set()


def test_a_twin_of_another_class_tells_nothing_however_near_its_number_is() -> None:
    inputs = np.tile(np.arange(200.0), 2)[:, None]
    labels = np.random.default_rng(0).integers(0, 49, 200)
    split = Split(np.arange(200), np.arange(200, 400), "random", 0, 1, 0)
    for other, told in ((labels + 1, 0), (labels, 200)):
        y, names = np.concatenate([labels, other]), tuple(map(str, range(50)))
        made = Dataset("t", "multiclass", inputs, y, ("x",), "y", "a test", class_labels=names)
        facts = facts_of(made, split)
        assert (facts.test_seen, facts.test_told) == (200, told)
