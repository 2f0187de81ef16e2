"""X and y from Python: what is no table of finite real numbers is refused in a line that says where."""

import dataclasses
import gc
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from small_fits import QUICK, regression

from svgpbench.api import Posterior, UserError, compare_inducing_counts, evidence_bounds, fit
from svgpbench.errors import DataWarning, UnsettledWarning
from svgpbench.posterior.inputs import finite, table_of
from svgpbench.sklearn import SVGPClassifier, SVGPRegressor

X, Y = regression()


def with_column(values: object, name: str = "more") -> pd.DataFrame:
    return X.assign(**{name: values})


@pytest.mark.parametrize(
    ("inputs", "targets", "words"),
    [
        ([[1, 2], [3]], [1.0, 2.0], "X has rows of different lengths"),
        (X.to_numpy()[:, :, None], Y, "X has shape (80, 2, 1); give [n, D]"),
        (3.0, Y, "X has shape ()"),
        (X[:0], Y[:0], "X has shape (0, 2); give [n, D] with n ≥ 1"),
        (np.empty((0, 2)), [], "X has shape (0, 2); give [n, D] with n ≥ 1"),
        (X[[]], Y, "no feature columns beside the target"),
        (X + 1j, Y, "X['left'] is of type complex128"),
        (with_column(pd.Timestamp("2020-01-01")), Y, "X['more'] is of type datetime64"),
        (with_column("word"), Y, "X['more'][0] is 'word', not a number"),
        (with_column([0.5] * 79 + ["w"]), Y, "X['more'][79] is 'w', not a number"),
        (with_column(pd.array([1] * 79 + [None], dtype="Int64")), Y, "X['more'][79] is nan"),
        (X.drop(7).reindex(X.index), Y, "X['left'][7] is nan; fill in or remove that row"),
        (np.full((80, 2), np.inf), Y, "X[0, 0] is inf"),
        (X.set_axis(["a", "a"], axis=1), Y, "X has more than one column 'a'"),
        (X, Y.to_numpy()[:, None], "y has shape (80, 1) for 80 rows"),
        (X, Y.drop(3).reindex(Y.index), "y[3] is nan; fill in or remove that row"),
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
        (
            {"likelihood": "poisson"},
            "likelihood 'poisson' takes counts 0, 1, 2, …, but y[0] holds ",
        ),
        ({"training": [50]}, "training is [50]; give a table"),
        ({"method": 5}, "method is 5; give a name, or a table"),
        ({"kernel": None}, "kernel is None; give a name, or a table"),
        ({"likelihood": ["gaussian"]}, "likelihood is ['gaussian']; give a name"),
        ({"likelihood": "softmax"}, "y holds 80 distinct numbers in 80 rows, such as "),
        ({"likelihood": "bernoulli-probit"}, "y holds 80 distinct numbers in 80 rows"),
    ],
)
def test_no_message_names_a_file_that_nobody_gave(change: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as error:
        fit(X, Y, **change)
    assert str(error.value).startswith(words)


def test_a_fit_of_one_row_says_so_and_names_no_file() -> None:
    with pytest.raises(UserError, match=r"^1 data row; give at least two$"):
        fit(X[:1], Y[:1])


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


@pytest.mark.parametrize("far", [1e200, 1e308])  # its square, or itself in units of the model
@pytest.mark.parametrize(
    "use",
    [
        lambda posterior, rows: posterior.latent_mean(rows),
        lambda posterior, rows: posterior.latent_covariance(rows),
        lambda posterior, rows: posterior.update(rows, [40.0, 40.0]),
        lambda posterior, rows: evidence_bounds(posterior, rows, [40.0, 40.0]),
    ],
)
def test_far_rows_are_named_by_all_that_reads_rows(regressed, use, far: float) -> None:
    narrow = dataclasses.replace(regressed, x_scale=0.1 * regressed.x_scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match="row 1 of X is too far from the training's"):
            use(narrow, [[1.0, 2.0], [far, far]])


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


MASKED_Y = np.ma.masked_equal(np.where(np.arange(80) == 7, -9999.0, Y), -9999.0)
MASKED_X = np.ma.masked_equal(np.where(np.eye(80, 2)[::-1] == 1, -9999.0, X), -9999.0)
USES: dict[str, Callable[[Posterior, object, object], object]] = {
    "fit": lambda _, x, y: fit(x, y, inducing=5, training=QUICK),
    "bounds": evidence_bounds,
    "counts": lambda _, x, y: compare_inducing_counts(x, y, [5]),
    "score": lambda posterior, x, y: posterior.score(x, y),
    "regressor": lambda _, x, y: SVGPRegressor(inducing=5, training=QUICK).fit(x, y),
    "classifier": lambda _, x, y: SVGPClassifier(inducing=5, training=QUICK).fit(x, y > 0),
}


@pytest.mark.parametrize("use", USES)
def test_a_masked_value_is_refused_where_it_is(regressed: Posterior, use: str) -> None:
    with pytest.raises(UserError, match=r"^y\[7\] is masked; fill in or remove that row$"):
        USES[use](regressed, X, MASKED_Y)
    with pytest.raises(UserError, match=r"^X\[78, 1\] is masked; fill in or remove that row$"):
        USES[use](regressed, MASKED_X, Y)


def test_inputs_of_predictions_may_not_be_masked(regressed: Posterior) -> None:
    model = SVGPRegressor(inducing=5, training=QUICK).fit(X, Y)
    for predict in (regressed.predict, regressed.latent, regressed.plot, model.predict):
        with pytest.raises(UserError, match=r"^X\[78, 1\] is masked"):
            predict(MASKED_X)
        with pytest.raises(UserError, match=r"^X\[78, 1\] is masked"):
            predict([*MASKED_X])  # rows that are masked each


def test_a_mask_that_hides_nothing_is_no_mistake(regressed: Posterior) -> None:
    whole = np.ma.masked_array(X.to_numpy(), mask=np.zeros((80, 2), bool))
    for inputs in (whole, [*whole], np.ma.masked_array(X.to_numpy())):
        assert regressed.predict(inputs)["mean"].equals(regressed.predict(X)["mean"])
    assert regressed.score(X, np.ma.masked_array(Y)) == regressed.score(X, Y)


NUMBERS = {
    "float16": (np.array([0.5, 2.0], np.float16), [0.5, 2.0]),
    "longdouble": (np.array([0.5, 2.0], np.longdouble), [0.5, 2.0]),
    "uint64": (np.array([1, 2**53], np.uint64), [1.0, 2.0**53]),
    "big but exact": (np.array([2**60, -(2**62)]), [2.0**60, -(2.0**62)]),
    "big-endian": (np.array([1.5, 2.0], ">f4"), [1.5, 2.0]),
    "truth values": (np.array([True, False]), [1.0, 0.0]),
    "objects": (np.array([1, 0.25], object), [1.0, 0.25]),
    "Decimal": ([Decimal("0.1"), Decimal(3)], [0.1, 3.0]),
    "Fraction": ([Fraction(1, 4), Fraction(3)], [0.25, 3.0]),
    "text": (np.array(["1.5", " -2e3 "]), [1.5, -2000.0]),
    "bytes": (np.array([b"1.5", b"2"]), [1.5, 2.0]),
    "zero-dimensional": ([np.array(1.5), np.float32(2.0)], [1.5, 2.0]),
    "Int64": (pd.array([1, 2], dtype="Int64"), [1.0, 2.0]),
    "boolean": (pd.array([True, False], dtype="boolean"), [1.0, 0.0]),
    "category": (pd.Categorical([3.5, 1.0]), [3.5, 1.0]),
    "sparse": (pd.arrays.SparseArray([0.0, 2.5]), [0.0, 2.5]),
    "arrow": (pd.array([1.5, 2.0], dtype="double[pyarrow]"), [1.5, 2.0]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_kind_are_their_values(kind: str) -> None:
    given, values = NUMBERS[kind]
    assert finite(given, "y").tolist() == values
    assert finite(pd.Series(given), "y").tolist() == values
    assert finite(finite(given, "y"), "y").dtype == np.float64


BIG = 2**53 + 1
WRONG = {
    "int64": (np.array([1, BIG]), "y[1] is 9007199254740993, a whole number that float64 cannot"),
    "uint64": (np.array([2**64 - 1], np.uint64), "y[0] is 18446744073709551615, a whole number"),
    "negative": (np.array([-BIG]), "y[0] is -9007199254740993, a whole number"),
    "object": ([1, 10**19 + 1], "y[1] is 10000000000000000001, a whole number"),
    "integer beside a float": ([0.5, BIG], "y[1] is 9007199254740993, a whole number"),
    "Decimal": ([Decimal(BIG)], "y[0] is 9007199254740993, a whole number"),
    "Fraction": ([Fraction(BIG)], "y[0] is 9007199254740993, a whole number"),
    "text": ([str(BIG)], "y[0] is 9007199254740993, a whole number"),
    "Int64": (pd.array([BIG], dtype="Int64"), "y[0] is 9007199254740993, a whole number"),
    "arrow": (pd.array([BIG], dtype="int64[pyarrow]"), "y[0] is 9007199254740993, a whole"),
    "huge": ([10**400], "y[0] is too large for float64"),
    "complex": (np.array([1j]), "y is of type complex128; give real numbers"),
    "complex object": (np.array([1.0, 1 + 0j], object), "y[1] is '(1+0j)', not a number"),
    "date": (np.array(["2020-01-01"], "datetime64[D]"), "y is of type datetime64[D]"),
    "span": (np.array([5], "timedelta64[s]"), "y is of type timedelta64[s]"),
    "date object": ([pd.Timestamp("2020-01-01"), 1], "y[0] is '2020-01-01 00:00:00', not a number"),
    "date scalar": (np.array([np.datetime64("2020", "ns"), 1], object), "y[0] is '2020-01-01T"),
    "NA": ([1.0, pd.NA], "y[1] is missing"),
    "NaT": ([pd.NaT, 1.0], "y[0] is missing"),
    "None": ([1.0, None], "y[1] is missing"),
    "nan": ([1.0, np.nan], "y[1] is nan"),
    "infinity": (np.array([1.0, -np.inf]), "y[1] is -inf"),
    "word": (np.array([1.0, "word"], object), "y[1] is 'word', not a number"),
    "underscores": (["1_000"], "y[0] is '1_000', not a number"),
    "digits of other scripts": (["\u0661"], "not a number"),
    "text nan": (["nan"], "y[0] is 'nan', not a number"),
    "ragged": ([[1.0], [1.0, 2.0]], "y has rows of different lengths"),
    "dict": ({"a": [1.0]}, "y is a dict; give a DataFrame of it"),
    "set": ({1.0}, "y is a set; give an array"),
    "generator": ((x for x in [1.0]), "y is a generator; give an array"),
    "None alone": (None, "y is a NoneType; give an array"),
    "sparse matrix": (scipy.sparse.eye(2).tocsr(), "y is sparse; give y.toarray()"),
    "records": (np.zeros(2, [("a", "f8")]), "y is of type [('a', '<f8')]; give real numbers"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_exact_finite_number_is_refused_where_it_is(kind: str) -> None:
    given, words = WRONG[kind]
    with pytest.raises(UserError) as error:
        finite(given, "y")
    assert words in str(error.value) and "\n" not in str(error.value)


def test_tensors_are_arrays_unless_they_have_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    assert finite(torch.ones(2), "y").tolist() == [1.0, 1.0]
    assert finite([torch.tensor(1.5), 2.0], "y").tolist() == [1.5, 2.0]
    with pytest.raises(UserError, match=r"^X cannot be made an array: Can't call numpy\(\)"):
        finite(torch.ones(2, requires_grad=True), "X")
    jnp = pytest.importorskip("jax.numpy")
    assert finite(jnp.ones(2), "y").tolist() == [1.0, 1.0]


def test_tables_of_other_libraries_keep_their_names() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"width": [1.0, 2.0], "age": [3, 4]})
    assert table_of(table).to_dict("list") == {"width": [1.0, 2.0], "age": [3.0, 4.0]}
