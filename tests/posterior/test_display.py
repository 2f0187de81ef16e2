"""A posterior says in one line and in a short HTML table what it is; its plots show what it predicts."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pandas as pd
import pytest
from small_fits import QUICK, classes, regression

from svgpbench.api import Posterior, UserError, fit
from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UnsettledWarning
from svgpbench.likelihoods import spread


def test_text_is_one_line(regressed: Posterior) -> None:
    rise = regressed.unsettled
    assert rise.startswith("the bound rose by ")
    assert repr(regressed) == (
        "<Posterior t-svgp, gaussian, matern52, n=80, D=2, M=12, "
        f"ELBO {regressed.elbo:.6g}, {rise}>"
    )


def test_rows_that_nobody_counted_are_not_told(regressed: Posterior) -> None:
    """Another library's posterior does not say how many rows trained it."""
    unknown = dataclasses.replace(regressed, facts=regressed.facts.model_copy(update={"n": 0}))
    assert repr(unknown).startswith("<Posterior t-svgp, gaussian, matern52, D=2, M=12, ")
    assert ">2 inputs<" in unknown._repr_html_() and "rows" not in unknown._repr_html_()


def test_html_has_the_curve_of_the_bound_and_escapes_names() -> None:
    X, y = regression()
    posterior = fit(X.rename(columns={"left": "<b>"}), y, inducing=5, training=QUICK)
    text = posterior._repr_html_()
    assert "<svg" in text
    assert "lengthscale &lt;b&gt;" in text
    assert "<b>&" not in text
    assert len(text) < 3000


def test_hyperparameters_are_in_the_units_of_the_table() -> None:
    X, y = regression()
    small = fit(X, y, inducing=12, training=QUICK).hyperparameters()
    large = fit(X * [10.0, 1.0], y * 3.0, inducing=12, training=QUICK).hyperparameters()
    assert small["parameter"].tolist() == [
        *("variance", "lengthscale", "lengthscale", "noise_variance")
    ]
    assert small["input"].tolist() == ["", "left", "right", ""]
    ratio = (large["value"] / small["value"]).tolist()
    assert ratio == pytest.approx([9.0, 10.0, 1.0, 9.0], rel=1e-6)


def test_parts_of_a_product_share_one_unit() -> None:
    X, y = regression()
    parts = [{"name": "se", "ard": False}, {"name": "matern32"}]
    for name, unit in (("sum", 25.0), ("product", 1.0)):
        kernel = {"name": name, "parts": parts}
        one, five = (
            fit(X, scale * y, kernel=kernel, inducing=8, training=QUICK).hyperparameters()
            for scale in (1.0, 5.0)
        )
        variances = one["parameter"].isin(["se 1 variance", "matern32 2 variance"])
        ratio = (five["value"] / one["value"])[variances].tolist()
        assert ratio == pytest.approx([25.0, unit], rel=1e-6)


def test_a_fit_whose_bound_still_moves_warns() -> None:
    X, y = regression()
    with pytest.warns(UnsettledWarning, match="the bound rose by .*; train longer"):
        fit(X, y, inducing=5, training=QUICK)


def test_plots_show_mean_and_band_and_probabilities(
    regressed: Posterior, classified: Posterior
) -> None:
    X, _ = regression()
    axes = regressed.plot(X, along="right").axes[0]
    (line,) = axes.lines
    order = np.argsort(X["right"].to_numpy())
    assert line.get_xdata() == pytest.approx(X["right"].to_numpy()[order])
    predicted = regressed.predict(X)
    assert line.get_ydata() == pytest.approx(predicted["mean"].to_numpy()[order])
    upper = axes.collections[0].get_paths()[0].vertices[:, 1].max()
    assert upper == pytest.approx(
        (predicted["mean"] + 1.959963984540054 * predicted["variance"] ** 0.5).max()
    )
    axes = classified.plot().axes[0]
    lines, legend = axes.lines, axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["ash", "elm", "oak"]
    assert sum(line.get_ydata() for line in lines) == pytest.approx(np.ones(200))
    trace = regressed.plot_trace().axes[0]
    assert trace.lines[0].get_ydata() == pytest.approx(regressed.trace["elbo"].to_numpy())
    assert trace.get_title() == regressed.unsettled


def test_the_legend_has_labels_that_begin_with_an_underscore(classified: Posterior) -> None:
    labels = ("_ash", "$elm", "oak")
    facts = classified.facts.model_copy(update={"class_labels": labels, "classes": None})
    legend = dataclasses.replace(classified, facts=facts).plot().axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["_ash", r"\$elm", "oak"]


def test_counts_have_a_band_unless_their_distribution_is_too_wide_to_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, _ = regression()
    counts = np.random.default_rng(0).poisson(100.0, len(X))
    posterior = fit(X, counts, likelihood="poisson", inducing=5, training=QUICK)
    axes = posterior.plot(X, along="right").axes[0]
    upper = axes.collections[0].get_paths()[0].vertices[:, 1].max()
    assert upper == posterior.predict(X, quantiles=(0.975,))["0.975"].max()
    monkeypatch.setattr(spread, "MOST_COUNTS", 64)
    axes = posterior.plot(X, along="right").axes[0]
    assert not axes.collections
    assert axes.get_title().startswith(
        "no band: the predictive distribution reaches beyond 64 counts"
    )


def test_fits_share_one_process_and_do_not_remember() -> None:
    X, y = classes()
    first = fit(X, y, likelihood="softmax", inducing=5, training=QUICK)
    with pytest.raises(UserError):
        fit(X, y, likelihood="softmax", inducing={"count": 91}, training=QUICK)
    again = fit(X, y, likelihood="softmax", inducing=5, training=QUICK)
    assert first.trace.drop(columns="seconds").equals(again.trace.drop(columns="seconds"))


def test_another_kind_of_fit_has_a_process_of_its_own() -> None:
    idle = sys.modules["svgpbench.posterior.fit"]._idle
    workers = []
    for threads in (2, 2, 1):
        fit(*regression(), inducing=5, training=QUICK, threads=threads)
        ((worker, _),) = idle
        assert worker.kind.threads == threads
        workers.append(worker)
    assert workers[0] is workers[1] and not workers[1].alive


def test_a_bound_of_minibatches_is_smoothed_before_it_is_judged(regressed: Posterior) -> None:
    X, y = regression()
    assert not regressed.facts.minibatches
    assert fit(X, y, inducing=5, training=QUICK | {"batch_size": 20}).facts.minibatches
    bound = [100.0] * 100
    bound[90] = 50.0  # one noisy evaluation
    trace = {"iteration": list(range(1, 101)), "elbo": bound}
    texts = {False: "the bound fell by 50 in the last quarter of the run", True: ""}
    for minibatches, text in texts.items():
        facts = regressed.facts.model_copy(update={"trace": trace, "minibatches": minibatches})
        assert dataclasses.replace(regressed, facts=facts).unsettled == text


def test_a_rise_that_is_small_beside_the_rows_is_told_where_the_bound_of_labels_is_small(
    regressed: Posterior,
) -> None:
    trace = {"iteration": [17, 18, 19, 20], "elbo": [-9.05, -9.04, -9.03, -9.0]}
    texts = {
        "gaussian": "",
        "bernoulli-logit": "the bound rose by 0.05 in the last quarter of the run",
        "poisson": "the bound rose by 0.05 in the last quarter of the run",
    }
    for name, text in texts.items():
        changes = {"trace": trace, "likelihood": LikelihoodConfig(name=name)}
        facts = regressed.facts.model_copy(update=changes)  # of 80 rows
        assert dataclasses.replace(regressed, facts=facts).unsettled == text


def test_q_of_u_is_one_line_however_many_points(regressed) -> None:
    assert (
        repr(regressed.inducing()) == "<Inducing Z [12, 2], mean [1, 12], covariance [1, 12, 12]>"
    )


def test_the_name_of_an_input_is_no_first_argument_of_a_plot(regressed) -> None:
    with pytest.raises(
        UserError, match="X is the text 'right'; an input is named with along='right'"
    ):
        regressed.plot("right")
    with pytest.raises(UserError, match="the posterior has no input 'zz'; it has left, right"):
        regressed.plot(along="zz")
    with pytest.raises(UserError, match=r"X has shape \(3, 1\)"):
        regressed.plot([[1.0], [2.0], [3.0]], along="right")
    with pytest.raises(UserError, match="X has no column 'right'"):
        regressed.plot(pd.DataFrame({"left": [1.0]}))


def test_dollars_in_the_names_of_inputs_and_classes_are_drawn() -> None:
    X = pd.DataFrame({"$x^$": np.linspace(-1.0, 1.0, 40)})
    y = np.where(X["$x^$"] > 0, "$a^$", "$b")
    figure = fit(X, y, likelihood="bernoulli-probit", inducing=5, training=QUICK).plot()
    figure.draw_without_rendering()
    assert figure.axes[0].get_xlabel() == r"\$x^\$"
