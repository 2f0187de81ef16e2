"""Plots of a posterior: its bound in training, its predictions, and bounds against the inducing points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from svgpbench.errors import UserError
from svgpbench.output.panel import STYLE, plain

CENTRAL = (0.025, 0.975)
"""Levels of the quantiles between which a band lies."""

if TYPE_CHECKING:
    from svgpbench.posterior.posterior import Posterior


def plot_trace(posterior: Posterior) -> Figure:
    """Draw the bound against the iteration of the training.

    Raises `UserError` if another library trained the posterior.
    """
    posterior.elbo  # noqa: B018 - raises if there is no trace
    trace = posterior.trace
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.0, 2.6), layout="constrained")
        axes = figure.subplots()
        axes.plot(trace["iteration"], trace["elbo"], color="#0072B2", marker=".", markersize=3)
        # the limits leave the first quarter out, whose rise would flatten all that follows
        later = trace["elbo"].iloc[len(trace) // 4 :]
        if np.isfinite(later).sum() > 1 and later.max() > later.min():
            margin = 0.08 * (later.max() - later.min())
            axes.set_ylim(later.min() - margin, later.max() + margin)
        axes.set_xlabel("iteration")
        axes.set_ylabel("ELBO")
        if moving := posterior.unsettled:
            axes.set_title(moving, color="#B00020", fontsize=7.5)
    return figure


def plot(
    posterior: Posterior, X: npt.ArrayLike | pd.DataFrame | None = None, *, along: str | None = None
) -> Figure:
    """Draw predictions along one input: the mean and the central 95 % of y, or the class probabilities.

    Args:
        posterior: the posterior.
        X: inputs [t, D] to predict at, in any order; by default 200 rows along the input, within 2.5 standard
            deviations of its mean, with the other inputs at their means.
        along: name of the input on the horizontal axis; the first one by default.

    Raises:
        UserError: for an unknown input, and as `Posterior.predict`.
    """
    if isinstance(X, str):
        raise UserError(f"X is the text {X!r}; an input is named with along={X!r}")
    features = posterior.facts.features
    name = features[0] if along is None else along
    if name not in features:
        raise UserError(f"the posterior has no input {name!r}; it has {', '.join(features)}")
    position = features.index(name)
    if X is None:
        X = np.repeat(posterior.x_mean[None], 200, axis=0)
        X[:, position] += posterior.x_scale[position] * np.linspace(-2.5, 2.5, 200)
    inputs = posterior.inputs(X)[:, position]
    order = np.argsort(inputs)
    labels = posterior.facts.class_labels
    predicted = posterior.predict(X).iloc[order]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.0, 2.6), layout="constrained")
        axes = figure.subplots()
        if labels is None:
            axes.plot(inputs[order], predicted["mean"], color="#0072B2")
            axes.set_ylabel("y")
            try:
                ends = posterior.predict(X, quantiles=CENTRAL).iloc[order]
            except UserError as error:  # the means stand without a band
                axes.set_title(f"no band: {error}", color="#B00020", fontsize=7.5, wrap=True)
            else:
                low, high = (ends[f"{level:g}"] for level in CENTRAL)
                axes.fill_between(inputs[order], low, high, color="#0072B2", alpha=0.2, linewidth=0)
        else:
            for label in labels:
                axes.plot(inputs[order], predicted[f"p({label})"])
            axes.set_ylim(0.0, 1.0)
            axes.set_ylabel("probability")
            # named here: of lines with a name, the legend leaves out those that begin with "_"
            axes.legend(axes.lines, [plain(label) for label in labels], frameon=False)
        axes.set_xlabel(plain(name))
    return figure


def plot_inducing_counts(table: pd.DataFrame, n: int) -> Figure:
    """Draw the bounds per row of a table of `compare_inducing_counts` against M; the data have n rows."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.0, 2.8), layout="constrained")
        axes = figure.subplots()
        axes.plot(table["inducing"], table["bound"] / n, color="#0072B2", marker=".", label="bound")
        if table["upper_bound"].notna().any():
            upper = table["upper_bound"] / n
            axes.plot(table["inducing"], upper, color="#D55E00", marker=".", label="upper bound")
        axes.set_xscale("log")
        axes.set_xticks(table["inducing"], [str(count) for count in table["inducing"]])
        axes.minorticks_off()
        axes.set_xlabel("inducing points M")
        axes.set_ylabel("nats per row")
        axes.legend(frameon=False)
    return figure
