"""The scikit-learn estimators pass its own checks and predict what `fit` predicts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from small_fits import QUICK, classes, regression

from svgpbench.api import fit
from svgpbench.sklearn import SVGPClassifier, SVGPRegressor

pytestmark = pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")


@pytest.mark.parametrize(("estimator", "iterations"), [(SVGPRegressor, 10), (SVGPClassifier, 3)])
def test_scikit_learn_accepts_it(estimator: type, iterations: int) -> None:
    check_estimator(estimator(inducing=10, training={"em_iterations": iterations}), on_skip=None)


def test_predictions_are_those_of_a_fit() -> None:
    X, y = regression()
    settings = {"kernel": "se", "inducing": 7, "training": QUICK, "jitter": 1e-5}
    model = SVGPRegressor(method="q-svgp", random_state=3, **settings).fit(X, y)
    expected = fit(X, y, method="q-svgp", seed=3, **settings).predict(X)
    mean, sd = model.predict(X, return_std=True)
    assert mean == pytest.approx(expected["mean"].to_numpy(), rel=1e-12)
    assert sd == pytest.approx(np.sqrt(expected["variance"].to_numpy()), rel=1e-12)
    assert model.predict(X) == pytest.approx(mean, rel=1e-12)


def test_labels_come_back_as_they_were() -> None:
    X, y = classes()
    model = SVGPClassifier(inducing=10, training=QUICK).fit(X, y)
    assert model.posterior_.facts.likelihood.name == "softmax"
    assert model.classes_.tolist() == ["ash", "elm", "oak"]
    expected = fit(X, y, likelihood="softmax", inducing=10, training=QUICK).predict(X)
    p = expected[["p(ash)", "p(elm)", "p(oak)"]].to_numpy()
    assert model.predict_proba(X) == pytest.approx(p, rel=1e-12)
    assert model.predict(X).tolist() == expected["label"].tolist()
    two = SVGPClassifier(inducing=10, training=QUICK).fit(X, y == "oak")
    assert two.posterior_.facts.likelihood.name == "bernoulli-probit"
    assert two.predict(X).dtype == bool


def test_there_are_no_more_inducing_inputs_than_distinct_rows() -> None:
    X, y = (np.repeat(np.asarray(x)[:10], 2, axis=0) for x in regression())
    model = SVGPRegressor(inducing=15, training=QUICK).fit(X, y)
    assert model.posterior_.theta.inducing.shape[0] == 10


def test_it_goes_into_pipelines_and_searches() -> None:
    X, y = regression()
    pipeline = make_pipeline(StandardScaler(), SVGPRegressor(inducing=10, training=QUICK))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.5
    search = GridSearchCV(SVGPRegressor(training=QUICK), {"inducing": [1, 12]}, cv=3).fit(X, y)
    assert search.best_params_ == {"inducing": 12}
    assert clone(search.best_estimator_).get_params()["inducing"] == 12


@pytest.mark.parametrize("likelihood", ["student-t", "poisson"])
def test_deviations_are_those_of_any_likelihood_of_numbers(likelihood: str) -> None:
    X, y = regression()
    model = SVGPRegressor(likelihood=likelihood, inducing=5, training=QUICK)
    mean, sd = model.fit(X, np.round(np.exp(y))).predict(X, return_std=True)
    expected = model.posterior_.predict(X, std=True)
    assert mean.tolist() == expected["mean"].to_list() and sd.tolist() == expected["std"].to_list()
    assert np.isfinite(sd).all() and (sd > 0.0).all()


def test_the_posterior_has_the_names_of_the_frame() -> None:
    X, y = regression()
    model = SVGPRegressor(inducing=6, training=QUICK).fit(X, y)
    assert model.feature_names_in_.tolist() == ["left", "right"]
    assert model.posterior_.facts.features == ("left", "right")
    assert {"left", "right"} <= {*model.posterior_.hyperparameters()["input"]}
    turned = model.posterior_.predict(X[["right", "left"]])["mean"].to_numpy()
    assert turned == pytest.approx(model.predict(X), rel=1e-12)
    assert model.posterior_.plot(along="right").axes[0].get_xlabel() == "right"
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[["right", "left"]])  # scikit-learn's rule
    numbered = SVGPRegressor(inducing=6, training=QUICK).fit(X.set_axis([3, 5], axis=1), y)
    assert not hasattr(numbered, "feature_names_in_")
    assert numbered.posterior_.facts.features == ("3", "5")
    assert SVGPRegressor(inducing=6, training=QUICK).fit(
        X.to_numpy(), y
    ).posterior_.facts.features == (
        "x1",
        "x2",
    )
