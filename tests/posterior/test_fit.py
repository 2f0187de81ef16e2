"""A fit from Python: its numbers are those of the training loop, and its mistakes one line."""

import numpy as np
import pandas as pd
import pytest
from small_fits import QUICK, classes, regression, trained_loop

from svgpbench.api import UserError, fit
from svgpbench.likelihoods.gaussian import GaussianLikelihood
from svgpbench.likelihoods.softmax import Softmax


def predicted(trainer):
    """What the loop's own step says of its rows."""
    steps, state = trainer.steps, trainer.state
    return steps.predict(state.raw, state.prior, state.q, trainer.batches.test())


def test_a_fit_is_the_training_loop_on_all_rows(regressed) -> None:
    X, y = regression()
    standard = (y.to_numpy() - y.mean()) / y.std(ddof=0)
    trainer = trained_loop(X.to_numpy(), standard, GaussianLikelihood(), inducing=12)
    assert regressed.elbo == pytest.approx(trainer.elbo(trainer.state), rel=1e-12)
    _, mean, variance = predicted(trainer)
    found = regressed.predict(X)
    expected = y.mean() + y.std(ddof=0) * mean
    assert found["mean"].to_numpy() == pytest.approx(expected, rel=1e-9)
    assert found["variance"].to_numpy() == pytest.approx(y.var(ddof=0) * variance, rel=1e-9)


def test_a_likelihood_that_samples_predicts_with_the_draws_of_its_evaluation(classified) -> None:
    X, y = classes()
    numbers = np.searchsorted(["ash", "elm", "oak"], y).astype(np.float64)
    softmax, guarded = Softmax(samples=20, classes=3), QUICK | {"steps": "guarded"}
    trainer = trained_loop(X, numbers, softmax, inducing=10, training=guarded)
    found = classified.predict(X).iloc[:, 1:].to_numpy().T
    assert found == pytest.approx(predicted(trainer).mean, rel=1e-9)


def test_the_trace_has_an_iteration_a_row_and_no_scores_of_no_rows(regressed) -> None:
    assert list(regressed.trace["iteration"]) == [1, 2, 3, 4]
    assert regressed.elbo == regressed.trace["elbo"].iloc[-1] > regressed.trace["elbo"].iloc[0]
    assert not {"nlpd", "rmse"} & set(regressed.trace)


def test_scores_of_the_training_rows_are_those_of_the_predictions(regressed) -> None:
    X, y = regression()
    found, predicted = regressed.score(X, y), regressed.predict(X)
    error, s2 = predicted["mean"] - y, predicted["variance"]
    assert found["rmse_original"] == pytest.approx(np.sqrt(np.mean(error**2)))
    density = -0.5 * (np.log(2 * np.pi * s2) + error**2 / s2)
    assert found["nlpd_original"] == pytest.approx(-density.mean())


def test_columns_are_found_by_name_in_any_order(regressed) -> None:
    X, _ = regression()
    turned = X[["right", "left"]].assign(more=1.0).set_index(pd.Index(range(7, 87)))
    again = regressed.predict(turned)
    assert list(again.index) == list(range(7, 87))
    assert again["mean"].to_numpy() == pytest.approx(regressed.predict(X)["mean"].to_numpy())


def test_classes_keep_their_names(classified) -> None:
    X, y = classes()
    found = classified.predict(X)
    assert list(found) == ["label", "p(ash)", "p(elm)", "p(oak)"]
    assert found.iloc[:, 1:].sum(axis=1).to_numpy() == pytest.approx(1.0)
    wrong = float(np.mean(found["label"].to_numpy() != y))
    assert classified.score(X, y)["error_rate"] == pytest.approx(wrong)
    assert wrong < 0.4


def test_labels_may_be_numbers() -> None:
    X, y = regression()
    likelihood = "bernoulli-probit"
    one = fit(X, (y > y.median()).astype(int), likelihood=likelihood, inducing=5, training=QUICK)
    assert list(one.predict(X)) == ["label", "p(0)", "p(1)"]
    as_floats = one.score(X, (y > y.median()).astype(float))
    assert as_floats == one.score(X, (y > y.median()).astype(int))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "t-svpg"}, "did you mean 't-svgp'"),
        ({"training": {"em_iteration": 3}}, "unknown key 'em_iteration' in [training]"),
        ({"inducing": {"count": 81}}, "inducing.count = 81 is more than the 80 training rows"),
        ({"backend": "pytorch"}, "unknown backend 'pytorch'"),
        ({"likelihood": "poisson"}, "takes counts"),
        ({"training": QUICK | {"m_rate": -1}}, "m_rate must be greater than 0"),
        ({"method": {"name": "t-svgp", "options": {"tying": "none"}}}, "tying"),
    ],
)
def test_a_mistake_is_one_line(change, message) -> None:
    with pytest.raises(UserError) as error:
        fit(*regression(), **change)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_shapes_that_do_not_fit_are_refused(regressed) -> None:
    X, y = regression()
    with pytest.raises(UserError, match=r"y has shape \(79,\) for 80 rows"):
        fit(X, y[1:])
    with pytest.raises(UserError, match=r"X has shape \(80,\)"):
        fit(X["left"].to_numpy(), y)
    with pytest.raises(UserError, match="no column 'right'"):
        regressed.predict(X[["left"]])
    with pytest.raises(UserError, match=r"X\['left'\]\[\d+\] is nan"):
        regressed.predict(X.where(X["left"] > 3.0))
    with pytest.raises(UserError, match=r"y has shape \(79,\) for 80 rows"):
        regressed.score(X, y[1:])


def test_a_training_that_fails_says_why() -> None:
    X, y = regression()
    with pytest.raises(UserError, match=r"the fit ended as timeout: no result within 0\.01 s"):
        fit(X, y, inducing=5, timeout=0.01)
