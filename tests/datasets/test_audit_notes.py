"""What is odd in a data set and no leak is noted, and what is counted is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from planted import Arrays, changed, notes, raised, unchanged

from svgpbench_datasets import REGISTRY, Dataset, k_fold
from svgpbench_datasets.audit import column_notes
from svgpbench_datasets.audit.facts import facts_of, same_rows
from svgpbench_datasets.audit.report import audit


def test_a_capped_target_is_noted_at_either_end() -> None:
    texts = {flag.kind: flag.text for flag in raised(REGISTRY.load("boston"))}
    assert "the greatest target 50 stands in 16 rows" in texts["capped-target"]
    assert "capped-target" not in notes(REGISTRY.load("airfoil"))

    def capped(X: Any, y: Any, random: Any) -> Arrays:
        return X, np.maximum(y, np.quantile(y, 0.03))

    assert "capped-target" in notes(changed("airfoil", capped))


def test_zeros_that_stand_for_missing_values_are_noted_with_their_columns() -> None:
    text = next(flag.text for flag in raised(REGISTRY.load("pima")) if flag.kind == "lowest-apart")
    assert text.endswith(
        "glucose (5), blood_pressure (35), skin_thickness (227), insulin (374), bmi (11)"
    )

    def emptied(X: Any, y: Any, random: Any) -> Arrays:
        X[random.permutation(len(y))[:40], 3] = 0.0
        return X, y

    dataset = changed("airfoil", emptied)
    assert "lowest-apart" not in notes(
        dataset
    )  # the velocity takes four values only: no measurement
    dataset = changed("concrete", emptied)
    assert any("x3 (40)" in flag.text for flag in raised(dataset) if flag.kind == "lowest-apart")


def test_columns_without_information_are_noted() -> None:
    texts = {flag.kind: flag.text for flag in raised(REGISTRY.load("ionosphere"))}
    assert texts["constant-column"] == "constant: pulse_01_im"
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
    audited = audit(REGISTRY, "pima")
    assert audited.facts.split == "k-fold, fold 0 of 5, seed 0"
    assert audited.facts.classes == {"0": 500, "1": 268}
    assert audited.to_json()["fingerprint"] == REGISTRY.describe("pima").fingerprint


def test_the_linear_fit_is_that_of_least_squares() -> None:
    for name in ("airfoil", "boston", "sonar"):
        dataset = REGISTRY.load(name)
        A = np.column_stack([np.ones(len(dataset.y)), dataset.X])
        residual = dataset.y - A @ np.linalg.lstsq(A, dataset.y, rcond=None)[0]
        expected = 1 - residual.var() / dataset.y.var()
        assert audit(REGISTRY, name).facts.linear_r2 == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", ["airfoil", "boston", "concrete", "pima"])
def test_a_target_that_belongs_to_other_rows_has_no_signal(name: str) -> None:
    assert "no-signal" not in notes(changed(name, unchanged))

    def shuffled(X: Any, y: Any, random: Any) -> Arrays:
        return X, random.permutation(y)

    assert "no-signal" in notes(changed(name, shuffled))


def test_a_target_that_only_neighbours_tell_has_signal() -> None:
    def ring(X: Any, y: Any, random: Any) -> Arrays:
        X = random.standard_normal(X.shape)
        return X, np.square(X).sum(axis=1) + 0.1 * random.standard_normal(len(y))

    found = changed("airfoil", ring)
    assert facts_of(found, k_fold(1503, 5, 0, 0)).linear_r2 < 0.01
    assert "no-signal" not in notes(found)


@pytest.mark.parametrize("name", ["airfoil", "boston", "concrete"])
def test_rows_in_the_order_of_the_target_are_noted_however_they_run(name: str) -> None:
    def sawtooth(X: Any, y: Any, random: Any) -> Arrays:
        order = np.argsort(y)
        rows = np.concatenate([order[at::8][:: (-1) ** at] for at in range(8)])
        return X[rows], y[rows]

    assert notes(changed(name, unchanged)).isdisjoint({"ordered-by-target", "ordered-rows"})
    assert "ordered-rows" in notes(changed(name, sawtooth))
    up = changed(name, lambda X, y, random: (X[np.argsort(y)], np.sort(y)))
    assert "ordered-by-target" in notes(up)


@pytest.mark.parametrize("name", ["airfoil", "boston", "concrete", "sonar", "ionosphere"])
@pytest.mark.parametrize(("digits", "scaled"), [(None, True), (6, True), (6, False)])
def test_columns_that_were_centred_with_all_rows_are_noted(
    name: str, digits: int | None, scaled: bool
) -> None:
    assert "centred" not in notes(changed(name, unchanged))

    def done(X: Any, y: Any, random: Any) -> Arrays:
        X = X - X.mean(axis=0)
        X = X / np.where(X.std(axis=0) == 0, 1, X.std(axis=0)) if scaled else X
        return (X if digits is None else np.round(X, digits)), y

    assert "centred" in notes(changed(name, done))
    # the mean of the training part alone leaves the whole off zero

    def rightly(X: Any, y: Any, random: Any) -> Arrays:
        return X - X[: len(y) * 4 // 5].mean(axis=0), y

    assert "centred" not in notes(changed(name, rightly))


def test_a_full_grid_is_noted_and_one_row_less_is_none() -> None:
    def grid(X: Any, y: Any, random: Any) -> Arrays:
        axes = np.meshgrid(np.arange(5.0), np.arange(4.0), np.arange(3.0), indexing="ij")
        points = np.column_stack([axis.ravel() for axis in axes])
        points = points[random.permutation(60)]
        return points, np.sin(points).sum(axis=1)

    text = [flag.text for flag in raised(changed("airfoil", grid)) if flag.kind == "full-grid"]
    assert text == ["rows are a full grid: x0 (5) x x1 (4) x x2 (3), 1 row each"]

    def torn(X: Any, y: Any, random: Any) -> Arrays:
        points, target = grid(X, y, random)
        return points[1:], target[1:]

    assert "full-grid" not in notes(changed("airfoil", torn))

    def small(X: Any, y: Any, random: Any) -> Arrays:
        points = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(16, 2)
        return points, random.standard_normal(16)

    assert "full-grid" not in notes(changed("airfoil", small))


def test_a_target_of_few_values_is_noted() -> None:
    rounded = changed("airfoil", lambda X, y, random: (X, np.round(y)))
    assert "few-target-values" in notes(rounded)
    assert "few-target-values" not in notes(changed("airfoil", unchanged))


def test_a_sentinel_below_the_others_is_noted_and_a_count_is_not() -> None:
    def with_column(values: Callable[[Any, int], Any]) -> Dataset:
        return changed(
            "concrete",
            lambda X, y, random: (np.column_stack([X[:, :2], values(random, len(y))]), y),
        )

    def sentinel(random: Any, n: int) -> Any:
        return np.where(random.uniform(size=n) < 0.02, -999.0, random.standard_normal(n))

    assert "lowest-apart" in notes(with_column(sentinel))
    assert "lowest-apart" not in notes(with_column(lambda random, n: random.poisson(3, n)))
    assert "lowest-apart" not in notes(with_column(lambda random, n: random.geometric(0.1, n)))
    assert "lowest-apart" not in notes(with_column(lambda random, n: random.standard_normal(n)))


def test_equal_rows_are_found_whatever_the_sign_of_zero() -> None:
    table = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [0.0, 1.0]])
    numbers = same_rows(table.T)
    assert numbers[0] == numbers[1] == numbers[4]
    assert len(set(numbers.tolist())) == 3


def test_a_target_that_scores_hang_on_is_noted() -> None:
    def texts(y: Any, labels: tuple[str, ...] | None = None) -> dict[str, str]:
        X = np.random.default_rng(0).standard_normal((len(y), 2))
        task = "regression" if labels is None else "multiclass"
        return {flag.kind: flag.text for flag in raised(
            Dataset("d", task, X, y, ("a", "b"), "y", "here", labels))}  # fmt: skip

    constant = texts(np.full(50, 3.0))
    assert constant["constant-target"] == "the target is 3 in every row: nothing can be learned"
    assert "few-target-values" not in constant
    prices = np.append(np.full(300, 5505.0) + np.arange(300), 917_704.0)
    tail = "the greatest target 917704 is 162 times the median"
    assert texts(prices)["heavy-target"].startswith(f"{tail}: predict its logarithm")
    assert texts(np.append(np.full(300, 10.0), 1000.0)).keys() >= {"heavy-target"}
    for other in (np.append(np.full(300, 10.0), 999.0), prices - 6000.0, np.eye(300)[0]):
        assert texts(other).keys().isdisjoint({"heavy-target", "constant-target"})
    rare = np.append(np.zeros(2970), np.ones(30))
    text = "few of 3000 rows are of class yes (30): accuracy says little, compare the NLPD"
    assert texts(rare, ("no", "yes"))["rare-class"] == text
    assert "rare-class" not in texts(np.append(rare, np.ones(50)), ("no", "yes"))
    assert "rare-class" not in texts(np.arange(3000) % 100.0, tuple(map(str, range(100))))
    assert "rare-class" in texts(np.append(np.arange(90) % 2.0, [2.0] * 9), ("a", "b", "c"))


@pytest.mark.parametrize(
    ("offset", "unit", "flagged"),
    [
        (1.7e9, 60.0, False),
        (5e6, 1.0, False),
        (1e12, 1.0, True),
        (1.7e18, 1e3, True),
        (1.7e18, 6e10, False),
    ],
)
def test_inputs_too_far_from_zero_for_their_digits(
    offset: float, unit: float, flagged: bool
) -> None:
    """Seconds since 1970, metres of a map, and nanoseconds within microseconds or minutes."""
    rng = np.random.default_rng(0)
    X = np.column_stack([offset + unit * 30.0 * rng.standard_normal(80), rng.standard_normal(80)])
    dataset = Dataset(
        name="far", task="regression", X=X, y=rng.standard_normal(80),
        feature_names=("t", "u"), target_name="y", source="",
    )  # fmt: skip
    found = [flag.text for flag in column_notes.few_digits(dataset)]
    assert bool(found) == flagged
    assert all(text.startswith("t: float64 holds it to") for text in found)
    constant = replace(dataset, X=np.full((80, 2), 1e18))
    assert not list(column_notes.few_digits(constant))
