"""X and y from Python: what is no table of finite real numbers is refused in a line that says where."""

import gc
import warnings

import numpy as np
import pandas as pd
import pytest
from small_fits import QUICK, regression

from svgpbench.api import UserError, fit
from svgpbench.errors import DataWarning, UnsettledWarning

X, Y = regression()


def with_column(values: object, name: str = "more") -> pd.DataFrame:
    return X.assign(**{name: values})


@pytest.mark.parametrize(
    ("inputs", "targets", "words"),
    [
        ([[1, 2], [3]], [1.0, 2.0], "X has rows of different lengths"),
        (X.to_numpy()[:, :, None], Y, "X has shape (80, 2, 1); give [n, D]"),
        (3.0, Y, "X has shape ()"),
        (X + 1j, Y, "X['left'] is of type complex128"),
        (with_column(pd.Timestamp("2020-01-01")), Y, "X['more'] is of type datetime64"),
        (with_column("word"), Y, "X['more'][0] is 'word', not a number"),
        (with_column([0.5] * 79 + ["w"]), Y, "X['more'][79] is 'w', not a number"),
        (with_column(pd.array([1] * 79 + [None], dtype="Int64")), Y, "X['more'][79] is nan"),
        (X.drop(7).reindex(X.index), Y, "X['left'][7] is nan; fill in or remove that row"),
        (np.full((80, 2), np.inf), Y, "X[0, 0] is inf"),
        (X.set_axis(["a", "a"], axis=1), Y, "X has more than one column 'a'"),
        (X, Y.to_numpy()[:, None], "y has shape (80, 1) for 80 rows"),
        (X, Y.drop(3).reindex(Y.index), "y[3] is missing"),
        (X, ["u"] * 80, "y[0] is 'u', not a number"),
        (X, Y + 1j, "y is of type complex128"),
        (X, Y * 1e300, "column 'height' is too large to standardise"),
        (X, Y * 1e-200, "column 'height' is too small to standardise: its variance"),
        (X * [1.0, 1.5e307], Y, "column 'right' is too large to standardise"),
    ],
)
def test_what_cannot_be_trained_on_is_named(inputs: object, targets: object, words: str) -> None:
    with pytest.raises(UserError) as error:
        fit(inputs, targets, inducing=5, training=QUICK)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("unit", [1e-150, 1e-29, 1e-13, 1e13, 1e150])
@pytest.mark.parametrize("of", ["X", "y"])
def test_a_change_of_units_changes_the_units_of_predictions_only(of: str, unit: float) -> None:
    """scikit-learn#19726: fields near 1e-13 tesla were taken for constants."""
    settings = {"inducing": 5, "training": QUICK}
    by_x, by_y = (unit, 1.0) if of == "X" else (1.0, unit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsettledWarning)
        here, there = fit(X, Y, **settings), fit(X * by_x, Y * by_y, **settings)
    expected, found = here.predict(X), there.predict(X * by_x)
    assert found["mean"].to_numpy() == pytest.approx(by_y * expected["mean"], rel=1e-6)
    assert np.sqrt(found["variance"]).to_numpy() == pytest.approx(
        by_y * np.sqrt(expected["variance"]), rel=1e-6
    )
    scores, scaled = here.score(X, Y), there.score(X * by_x, Y * by_y)
    assert scaled["nlpd"] == pytest.approx(scores["nlpd"], rel=1e-6)
    assert scaled["nlpd_original"] == pytest.approx(scores["nlpd_original"] + np.log(by_y))
    assert scaled["rmse_original"] == pytest.approx(by_y * scores["rmse_original"], rel=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inducing": 8.5}, "inducing is 8.5; give how many"),
        ({"inducing": True}, "inducing is True; give how many"),
        ({"likelihood": "softmax"}, "target 'height' has 80 distinct numbers in 80 rows"),
        ({"likelihood": "bernoulli-probit"}, "target 'height' has 80 distinct values"),
    ],
)
def test_no_message_names_a_file_that_nobody_gave(change: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as error:
        fit(X, Y, **change)
    assert str(error.value).startswith(words)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([["a", "b"]], "X[0, 0] is 'a', not a number"),
        ([[1.0, 2.0], [3.0]], "X has rows of different lengths"),
        (5.0, "X has shape ()"),
        (pd.DataFrame({"left": [1.0], "right": ["r"]}), "X['right'][0] is 'r'"),
        ([[1.0, 2.0], [1e300, 1e300]], "row 1 of X is too far from the training's"),
    ],
)
def test_what_cannot_be_predicted_at_is_named(regressed, inputs: object, words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError) as error:
            regressed.predict(inputs)
    assert words in str(error.value)


def test_targets_to_score_against_are_checked(regressed) -> None:
    with pytest.raises(UserError, match=r"y\[0\] is 'u', not a number"):
        regressed.score(X[:2], ["u", "v"])
    with pytest.raises(UserError, match=r"y has shape \(2, 1\) for 2 rows of X"):
        regressed.score(X[:2], [[1.0], [2.0]])


def test_columns_of_a_frame_may_be_named_by_numbers_and_hold_any_numbers() -> None:
    numbered = X.set_axis([0, 1], axis=1).astype("Float64")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit(numbered, Y, inducing=5, training=QUICK, threads=2)
        one = fit(numbered, Y, inducing=np.int64(5), training=QUICK)
        gc.collect()  # of files left open by the process with two threads
    assert {each.category for each in seen} == {UnsettledWarning}
    assert one.facts.features == ("0", "1")
    other = fit(X.to_numpy(), Y, inducing=5, training=QUICK)
    assert one.predict(numbered)["mean"].to_list() == other.predict(X.to_numpy())["mean"].to_list()


def test_a_fit_warns_of_row_numbers_and_of_targets_that_scores_hang_on() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.uniform(0, 9, 200), "index": random.permutation(200)})
    positives = np.repeat(["yes", "no"], [3, 197])
    rows = [
        (np.ones(200), "gaussian", "the target is 1 in every row"),
        (np.exp(4 * random.standard_normal(200)), "gaussian", "times the median: predict its log"),
        (positives, "bernoulli-probit", r"few of 200 rows are of class yes \(3\)"),
    ]
    for y, likelihood, words in rows:
        with (
            pytest.warns(DataWarning, match="index numbers the rows in another order: leave it"),
            pytest.warns(DataWarning, match=words),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", UnsettledWarning)
            fit(frame, y, likelihood=likelihood, inducing=5, training=QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        warnings.simplefilter("ignore", UnsettledWarning)
        fit(np.arange(200.0)[:, None], np.sin(np.arange(200.0)), inducing=5, training=QUICK)
