"""The method and the training that a fit chooses, and what it says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_fits import regression

from svgpbench.api import Posterior, UserError, fit, load_posterior, save_posterior
from svgpbench.errors import UnsettledWarning
from svgpbench.methods import build_method
from svgpbench.posterior.defaults import LIMIT, MINIBATCHES, auto_method, training_of
from svgpbench.sklearn import SVGPRegressor
from svgpbench.suite.board import Board
from svgpbench.suite.outcomes import Outcomes
from svgpbench.suite.schema import SHIPPED, load_suite


@pytest.mark.parametrize(
    ("gaussian", "training", "rows", "inducing", "method"),
    [
        (True, {}, 20_000, 50, "sgpr"),
        (True, {}, 20_001, 50, "t-svgp"),  # 5e7 = 20,000 · 50²
        (True, {}, 1_000, 300, "sgpr"),  # one batch
        (True, {}, 1_001, 300, "t-svgp"),
        (True, {"optimiser": "l-bfgs"}, 20_001, 50, "sgpr"),
        (True, {"optimiser": "adam"}, 100, 50, "sgpr"),
        (True, {"batch_size": 10}, 100, 50, "t-svgp"),
        (True, {"kind": "online"}, 100, 50, "t-svgp"),
        (False, {}, 100, 10, "t-svgp"),
    ],
)
def test_the_method_is_sgpr_where_noise_and_rows_allow_it(
    gaussian: bool, training: dict[str, Any], rows: int, inducing: int, method: str
) -> None:
    assert auto_method(gaussian, training, rows, inducing) == method


COMMON = {"steps": "guarded", "until": "settled", "em_iterations": LIMIT}


@pytest.mark.parametrize(
    ("given", "method", "options", "dtype", "large", "expected"),
    [
        ({}, "sgpr", {}, "float64", False, {"optimiser": "l-bfgs"}),
        ({}, "sgpr", {}, "float32", False, {}),
        ({"m_rate": 0.1}, "sgpr", {}, "float64", False, {"m_rate": 0.1}),
        ({}, "t-svgp", {}, "float64", False, {"e_steps": 4}),
        ({"e_steps": 1, "until": "limit"}, "t-svgp", {}, "float64", False, {"e_steps": 1, "until": "limit"}),
        ({}, "q-svgp", {"optimiser": "adam"}, "float64", False, {}),
        ({}, "t-svgp", {}, "float64", True, dict(MINIBATCHES)),
        (
            {"batch_size": 32},
            "t-svgp",
            {},
            "float64",
            False,
            {**MINIBATCHES, "batch_size": 32},
        ),
    ],
)  # fmt: skip
def test_the_training_is_that_of_the_caller_and_else_the_default(
    given: dict[str, Any],
    method: str,
    options: dict[str, Any],
    dtype: str,
    large: bool,
    expected: dict[str, Any],
) -> None:
    found = training_of(given, build_method(method, options), dtype, large=large)
    assert found == COMMON | expected


def test_minibatches_have_the_default_rates_of_the_board() -> None:
    suite = load_suite(SHIPPED)
    outcomes = Outcomes.read()
    labels = [x.label for x in suite.entrants if not x.reference]
    board = Board(outcomes, labels, [x.title for x in suite.problems])
    rates = (MINIBATCHES["e_rate"], MINIBATCHES["m_rate"])
    assert board.default_rates()["t-SVGP"] == rates
    assert MINIBATCHES["batch_size"] == suite.protocol.batch_size
    assert MINIBATCHES["cool_down"] == suite.protocol.cool_down


def test_a_caller_s_trace_takes_the_place_of_the_evaluations() -> None:
    method = build_method("t-svgp", {})
    found = training_of({"trace_every": 10}, method, "float64", large=True)
    assert found["trace_every"] == 10 and "evaluation" not in found


def test_an_online_fit_is_guarded_and_has_its_own_limit() -> None:
    online = {"kind": "online", "batch_size": 10}
    assert training_of(online, build_method("t-svgp", {}), "float64") == online | {
        "steps": "guarded"
    }


@pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")
def test_an_online_fit_has_no_held_out_bound() -> None:
    online = {"iterations": 6, "increment": 4, "rates": (0.1,), "trace_every": 3}
    training = {"kind": "online", "batch_size": 20, "online": online}
    found = fit(*regression(), inducing=8, training=training)
    assert found.trace["iteration"].tolist() == [1, 3, 6]
    assert found.trace["inducing"].tolist() == [4, 8, 8]
    assert "heldout_elbo" not in found.trace


@pytest.fixture(scope="module")
def automatic() -> Posterior:
    return fit(*regression(), inducing=12)


def test_a_fit_says_what_was_chosen_and_what_ended_it(automatic: Posterior, tmp_path: Any) -> None:
    facts = automatic.facts
    assert (facts.method.name, facts.method_is_automatic, facts.ended) == ("sgpr", True, "settled")
    count = int(automatic.trace["iteration"].iloc[-1])
    assert repr(automatic).startswith("<Posterior sgpr (auto), gaussian, ")
    assert repr(automatic).endswith(f", {count} iterations (settled)>")
    for text in (">sgpr (auto)<", f"{count} iterations (settled)"):
        assert text in automatic._repr_html_()
    assert automatic.unsettled == ""
    save_posterior(automatic, tmp_path / "kept.npz")
    assert repr(load_posterior(tmp_path / "kept.npz")) == repr(automatic)


def test_a_fit_that_its_limit_ended_says_so_and_warns() -> None:
    X, y = regression()
    with pytest.warns(UnsettledWarning, match=r"rose by .*; train longer"):
        short = fit(X, y, method="t-svgp", inducing=12, training={"em_iterations": 4})
    assert short.facts.ended == "limit"
    assert ", 4 iterations (the limit), the bound rose by " in repr(short)
    assert "(auto)" not in repr(short)
    with pytest.warns(UnsettledWarning):
        settings = {"em_iterations": 4, "until": "limit"}
        plain = fit(X, y, method="t-svgp", inducing=12, training=settings)
    assert (plain.facts.ended, "iterations" in repr(plain)) == ("", False)


def test_few_rows_and_many_points_fit_with_defaults() -> None:
    """n·M² is above the limit of steps on all rows, and there is no minibatch of 1000 rows."""
    found = fit(*regression(600), inducing=300, training={"em_iterations": 1})
    assert (found.facts.method.name, found.facts.minibatches) == ("sgpr", False)


@pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")
def test_none_in_the_training_is_as_if_left_out() -> None:
    X, y = regression()
    left_out = fit(X, y, inducing=5, training={"em_iterations": 2})
    found = fit(X, y, inducing=5, training={"em_iterations": 2, "batch_size": None})
    assert (found.facts.method.name, found.elbo) == ("sgpr", left_out.elbo)
    with pytest.raises(UserError, match=r"\[training\] em_iterations must be an integer, got None"):
        fit(X, y, training={"em_iterations": None})


@pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")
def test_the_method_suits_the_rows_that_train_and_the_optimiser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("svgpbench.posterior.defaults.MOST_WORK", 0.0)
    X, y = regression(1001)
    for more, method in (({}, "t-svgp"), ({"rows": 40}, "sgpr"), ({"optimiser": "l-bfgs"}, "sgpr")):
        found = fit(X, y, inducing=5, training={"em_iterations": 1} | more)
        assert found.facts.method.name == method


def test_ten_rows_and_repeated_rows_fit_with_defaults() -> None:
    X, y = regression(10)
    assert fit(X, y).theta.inducing.shape[0] == 10
    twice = (np.repeat(np.asarray(a), 2, axis=0) for a in (X, y))
    assert SVGPRegressor().fit(*twice).posterior_.theta.inducing.shape[0] == 10
