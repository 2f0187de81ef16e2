"""Bounds on log p(y): dense algebra beside them, log p(y) between them, and none where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm
from small_fits import QUICK, classes, regression

from svgpbench.api import (
    Posterior,
    UserError,
    compare_inducing_counts,
    evidence_bounds,
    fit,
)
from svgpbench.backends import load_backend
from svgpbench.kernels.kernels import Matern52
from svgpbench.posterior.inducing_counts import COUNTS, answer


def dense(posterior: Posterior) -> tuple[float, float, float, float]:
    """Titsias's lower bound, log p(y), the upper bound and Titsias's, by n × n algebra."""
    X, y = regression()
    x = (X.to_numpy() - posterior.x_mean) / posterior.x_scale
    targets = (y.to_numpy() - posterior.facts.y_mean) / posterior.facts.y_scale
    ops, theta = load_backend("numpy"), posterior.theta
    Z, noise = theta.inducing, float(theta.likelihood.noise_variance)

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.asarray(Matern52().cross(ops, theta.kernel, A, B))[0]

    K, Kzx = k(x, x), k(Z, x)
    Q = Kzx.T @ np.linalg.solve(k(Z, Z) + posterior.facts.jitter * np.eye(len(Z)), Kzx)
    rest = np.trace(K - Q)
    identity = np.eye(len(x))
    lower = multivariate_normal.logpdf(targets, cov=Q + noise * identity) - rest / (2 * noise)
    exact = multivariate_normal.logpdf(targets, cov=K + noise * identity)
    log_determinant = np.linalg.slogdet(2 * np.pi * (Q + noise * identity))[1]
    v = np.linalg.solve(Q + noise * identity, targets)
    ours = 2 * v @ targets - v @ (K + noise * identity) @ v
    titsias = targets @ np.linalg.solve(Q + (noise + rest) * identity, targets)
    upper, titsias = (-0.5 * (log_determinant + quadratic) for quadratic in (ours, titsias))
    return lower, exact, upper, titsias


@pytest.mark.parametrize("chunk", [1000, 7])
def test_bounds_are_those_of_dense_algebra(
    regressed: Posterior, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr("svgpbench.posterior.posterior.EVALUATION_ROWS", chunk)
    bounds = evidence_bounds(regressed, *regression())
    lower, exact, upper, titsias = dense(regressed)
    assert bounds == pytest.approx((lower, upper, titsias, 80), rel=1e-9)
    assert regressed.elbo - 1e-9 <= bounds.lower < exact < bounds.upper < titsias
    assert bounds.gap_per_row == pytest.approx((upper - lower) / 80)


def test_many_rows_have_the_bound_of_titsias_alone(
    regressed: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["svgpbench.posterior.evidence_bounds"]
    monkeypatch.setattr(module, "MOST_ROWS", 79)
    bounds = evidence_bounds(regressed, *regression())
    assert bounds.upper == bounds.titsias_2014


def test_bounds_meet_where_every_row_is_an_inducing_input() -> None:
    X, y = regression(30)
    settings = {"em_iterations": 1, "m_steps": 0}
    posterior = fit(X, y, method="sgpr", inducing=30, training=settings, jitter=1e-10)
    assert evidence_bounds(posterior, X, y).gap_per_row == pytest.approx(0.0, abs=1e-7)


def test_what_has_no_bounds_is_refused(classified: Posterior) -> None:
    with pytest.raises(UserError, match="need Gaussian noise; the likelihood is 'softmax'"):
        evidence_bounds(classified, *classes())
    X, y = regression()
    two = fit(X, y, method="orth", inducing={"count": 5, "gamma": 5}, training=QUICK)
    with pytest.raises(UserError, match="'orth' does not have one set of inducing inputs"):
        evidence_bounds(two, X, y)
    with pytest.raises(UserError, match=r"y has shape \(79,\) for 80 rows"):
        evidence_bounds(fit(X, y, inducing=5, training=QUICK), X, y[1:])


def test_a_table_of_counts_certifies_the_smallest_that_is_enough() -> None:
    X, y = regression()
    y = y + 3.0 * np.random.default_rng(2).normal(size=len(y))
    table = compare_inducing_counts(X, y, [40, 4, 12, 500])
    assert table["inducing"].tolist() == [4, 12, 40]
    first_columns = ["inducing", "bound", "gain", "upper_bound", "missing", "enough", "share"]
    assert list(table) == [*first_columns, "seconds", "warning"]
    best = table["upper_bound"].iloc[-1]
    assert table["missing"].tolist() == pytest.approx(((best - table["bound"]) / 80).tolist())
    assert table["enough"].tolist() == (table["missing"] <= 0.01).tolist() == [False, True, True]
    assert answer(table).startswith("M = 12 is enough: at the hyperparameters of M = 40 log p(y)")
    z = (y - y.mean()) / y.std(ddof=0)
    noise = norm.logpdf(z).sum()  # of a Gaussian with their mean and variance
    assert table["share"].tolist() == pytest.approx(
        ((table["bound"] - noise) / (best - noise)).tolist()
    )
    first = 4 if table["share"].iloc[0] >= 0.95 else 12
    assert answer(table).endswith(
        f"The bound at M = {first} has at least 95 % of what any number could gain over a noise model."
    )
    alone = compare_inducing_counts(X, y, [4])
    assert answer(alone).startswith("No M is certified: at the hyperparameters of M = 4 more")


def test_the_numbers_that_are_tried_are_those_of_the_page() -> None:
    page = (
        Path(__file__)
        .parents[2]
        .joinpath("docs/how-many-inducing-points.md")
        .read_text(encoding="utf-8")
    )
    assert f"# tries M = {', '.join(map(str, COUNTS))}\n" in page


def test_the_answer_names_the_first_number_with_most_of_the_gain_or_the_share_of_the_largest() -> (
    None
):
    table = pd.DataFrame({"inducing": [10, 20, 50], "bound": [-3.0, -2.0, -1.0]})
    table["gain"], table["upper_bound"], table["missing"] = np.nan, 0.0, 0.005
    table["enough"] = True
    for shares, words in (
        ((0.9, 0.95, 0.99), "M = 20 has at least 95 %"),
        ((0.949, 0.949, 0.951), "M = 50 has at least 95 %"),
        ((0.5, 0.7, 0.949), "M = 50 has 94.9 %"),
    ):
        table["share"] = shares
        assert f"The bound at {words} of what any number could gain" in answer(table)


def test_noise_has_no_share() -> None:
    rng = np.random.default_rng(5)
    table = compare_inducing_counts(rng.normal(size=(60, 1)), rng.normal(size=60), [5])
    assert table["share"].isna().all() and "noise model" not in answer(table)


def test_without_gaussian_noise_nothing_is_certified() -> None:
    X, y = classes()
    table = compare_inducing_counts(
        X, y == "ash", [2, 20, 40], likelihood="bernoulli-probit", training=QUICK
    )
    assert table["upper_bound"].isna().all()
    assert table["warning"].str.startswith("the bound rose").all()
    assert table["missing"].iloc[-1] == 0.0 and table["share"].isna().all()
    assert "so no number is certified" in answer(table)
    assert answer(table[:2]).startswith("The bound still grows up to M = 20; try more.")
    assert answer(table[:1]).startswith("One number of points does not show a gain; try several.")


def test_counts_above_the_rows_are_refused() -> None:
    with pytest.raises(UserError, match="is at most the 80 distinct rows of the table"):
        compare_inducing_counts(*regression(), [81])
    for counts in (5, ["5"], [5.5]):
        with pytest.raises(UserError, match="give a list of whole numbers"):
            compare_inducing_counts(*regression(), counts)


def test_counts_above_the_distinct_rows_are_left_out() -> None:
    """A fit with 20 of them would have 5, and the table would say 20."""
    X, y = regression()
    X = X.iloc[np.arange(80) % 5]
    assert compare_inducing_counts(X, y, [5, 20])["inducing"].tolist() == [5]


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([-900.0, -700.0, -699.8, -699.7], "Use M = 20: all after it added 0.003."),
        ([-900.0, -800.0, -700.0, -600.0], "The last ones added 1: try more."),
        ([-700.0, -699.9, -699.8, -699.7], "Use M = 10: all after it added 0.003."),
    ],
)
def test_where_no_number_is_certified_the_answer_says_how_many_to_use(
    bounds: list[float], words: str
) -> None:
    bound = pd.Series(bounds)
    table = pd.DataFrame({"inducing": [10, 20, 50, 100], "bound": bound})
    table["gain"] = bound.diff() / 100
    table["upper_bound"], table["missing"], table["enough"] = -650.0, 0.49, False
    table["share"] = np.nan
    said = answer(table)
    assert said.startswith("No M is certified: at the hyperparameters of M = 100 more points could")
    assert said.endswith(words)
