"""Every argument of the estimators and of `compare_inducing_counts` reaches `fit` under its name."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_fits import QUICK, classes, regression

from svgpbench.api import Posterior, UserError, compare_inducing_counts, fit

pytestmark = pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")

Given = list[dict[str, Any]]
OTHERS: dict[str, Any] = {
    "method": "q-svgp",
    "likelihood": "student-t",
    "kernel": "se",
    "inducing": 7,
    "training": QUICK,
    "backend": "torch:compile",
    "device": "cuda",
    "threads": 3,
    "jitter": 1e-3,
    "random_state": 5,
}
"""A value of each parameter of an estimator that is not its default."""


def spied(monkeypatch: pytest.MonkeyPatch, module: str, posterior: Posterior) -> Given:
    """What the module's calls of `fit` are given; each answers with one posterior."""
    calls: Given = []

    def recorded(X: Any, y: Any, **arguments: Any) -> Posterior:
        calls.append({"X": np.asarray(X), "y": np.asarray(y)} | arguments)
        return posterior

    monkeypatch.setattr(sys.modules[module], "fit", recorded)
    return calls


def test_every_parameter_of_an_estimator(
    monkeypatch: pytest.MonkeyPatch, regressed: Posterior
) -> None:
    estimators = pytest.importorskip("svgpbench.sklearn")
    calls = spied(monkeypatch, "svgpbench.sklearn", regressed)
    X, y = regression()
    for kind in (estimators.SVGPRegressor, estimators.SVGPClassifier):
        defaults = kind().get_params()
        assert set(defaults) == set(OTHERS)
        assert not [name for name, value in defaults.items() if value == OTHERS[name]]
        kind(**OTHERS).fit(X, y if kind is estimators.SVGPRegressor else y > 40)
        call = calls.pop()
        expected = OTHERS | {"seed": OTHERS["random_state"]}
        del expected["random_state"]
        assert {name: call[name] for name in expected} == expected
        np.testing.assert_array_equal(call["X"], X)


@pytest.mark.parametrize(("count", "expected"), [(2, "bernoulli-probit"), (3, "softmax")])
def test_the_likelihood_that_suits_the_classes(
    monkeypatch: pytest.MonkeyPatch, regressed: Posterior, count: int, expected: str
) -> None:
    estimators = pytest.importorskip("svgpbench.sklearn")
    calls = spied(monkeypatch, "svgpbench.sklearn", regressed)
    X, y = classes()
    estimators.SVGPClassifier().fit(X, y if count == 3 else y == "oak")
    (call,) = calls
    assert call["likelihood"] == expected
    assert len(set(call["y"])) == count


def test_arguments_of_a_comparison_of_counts_take_precedence(
    monkeypatch: pytest.MonkeyPatch, regressed: Posterior
) -> None:
    calls = spied(monkeypatch, "svgpbench.posterior.inducing_counts", regressed)
    X, y = regression()
    more = {
        "method": "t-svgp",
        "training": QUICK,
        "kernel": "se",
        "seed": 3,
        "jitter": 1e-4,
        "threads": 2,
    }
    compare_inducing_counts(X, y, [9, 5], **more)
    assert [call["inducing"] for call in calls] == [5, 9]
    for call in calls:
        assert {name: call[name] for name in more} == more
        assert call["likelihood"] == "gaussian"
        np.testing.assert_array_equal(call["y"], y)
    calls.clear()
    noise = {"name": "gaussian", "noise_variance": 0.2}
    compare_inducing_counts(X, y, [5], likelihood=noise, method="t-svgp")
    (call,) = calls
    assert (call["likelihood"], call["method"]) == (noise, "t-svgp")
    assert call["training"]["optimiser"] == "l-bfgs"  # what is not given keeps its default
    calls.clear()
    compare_inducing_counts(X, y, [5], dtype="float32")  # in which L-BFGS does not run
    (call,) = calls
    assert call.keys() == {"X", "y", "likelihood", "inducing", "dtype"}
    calls.clear()
    table = compare_inducing_counts(X, y, [5], likelihood={"noise_variance": 0.2})
    (call,) = calls
    assert call["method"] == "sgpr"  # a table without a name is Gaussian, as in `fit`
    assert table["upper_bound"].notna().all()
    calls.clear()
    compare_inducing_counts(X, y, [5], likelihood="student-t", seed=4)
    (call,) = calls
    assert call.keys() == {"X", "y", "likelihood", "inducing", "seed"}


def test_a_table_of_counts_has_gains_by_row_and_what_each_bound_lacks(
    monkeypatch: pytest.MonkeyPatch, regressed: Posterior
) -> None:
    """Without an upper bound `missing` is what lacks to the last bound, and never below 0."""
    bounds = iter([-90.0, -40.0, -39.0, -39.5])

    def answer(*_: Any, **__: Any) -> Posterior:
        trace = regressed.trace.assign(elbo=next(bounds)).to_dict("list")
        return replace(regressed, facts=regressed.facts.model_copy(update={"trace": trace}))

    monkeypatch.setattr(sys.modules["svgpbench.posterior.inducing_counts"], "fit", answer)
    table = compare_inducing_counts(*regression(), [3, 4, 5, 6], likelihood="student-t")
    assert table["bound"].tolist() == [-90.0, -40.0, -39.0, -39.5]
    gains = [np.nan, 50 / 80, 1 / 80, -0.5 / 80]
    assert table["gain"].tolist() == pytest.approx(gains, nan_ok=True)
    assert table["missing"].tolist() == pytest.approx([50.5 / 80, 0.5 / 80, 0.0, 0.0])
    assert table["enough"].tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    "names",
    [["height", "height_"], ["Unnamed: 0", "__index_level_0__"]],
    ids=["as the target", "as a saved row index"],
)
def test_an_input_may_have_any_name(regressed: Posterior, names: list[str]) -> None:
    """Neither column replaces the other, whatever names are taken already."""
    X, y = regression()
    named = X.set_axis(names, axis=1)
    found = fit(named, y, inducing=12, training=QUICK, method="t-svgp")
    assert found.elbo == pytest.approx(regressed.elbo, rel=1e-12)
    assert found.predict(named).equals(regressed.predict(X))
    with pytest.raises(UserError, match=f"no column '{names[1]}'"):
        found.predict(named[names[:1]])


def test_options_may_be_numbers_of_numpy() -> None:
    X, y = regression()
    found = fit(
        *(X, y),
        method={"name": "decoupled", "options": {"subset": np.int64(2)}},
        likelihood={"name": "student-t", "df": np.float32(4.0)},
        kernel={"name": "sum", "parts": [{"name": "se", "variance": np.float32(0.5)}] * 2},
        inducing={"count": np.int64(5), "gamma": np.int32(4)},
        training=QUICK | {"e_rate": np.float32(0.01)},
    )
    assert found.facts.method.options["subset"] == 2
    assert found.facts.likelihood.options["df"] == 4.0
