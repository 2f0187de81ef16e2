"""Every metric, declared once: what tables, figures, JSON and a run's progress know of it.

A metric is a number of one cell: of one output, split and seed. Over splits and seeds it is averaged as it
is (the mean of RMSEs, not the root of a mean square); over the outputs of a table of several it is averaged
too where `over_outputs` says so, and not where it is in the units of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from svgpbench.errors import unknown

Better: TypeAlias = Literal["higher", "lower"] | float
"""Which way is better; a number is the value to be near."""

CALIBRATION_BINS = 15
"""Of equal width on [0, 1], in the expected calibration error (Guo et al. 2017)."""

PIT_LEVELS = tuple(round(0.1 * i, 1) for i in range(1, 10))
"""Levels at which a record has the share of test targets below the predictive quantile."""


@dataclass(frozen=True)
class Metric:
    """One number of a cell; `formula` is what a footnote says of it."""

    name: str  # in records, files and JSON
    title: str  # in tables and figures
    says: str  # in a caption
    task: Literal["regression", "classification", "any"]
    better: Better
    unit: Literal["", "nat", "s"] = ""
    rows: Literal["training", "test", ""] = "test"
    y: Literal["", "standardised", "original"] = ""  # of a regression, which targets it is of
    over_outputs: bool = True
    formula: str = ""
    gaussian: bool = False  # defined where the predictive density is Gaussian

    @property
    def phrase(self) -> str:
        """What it is, in a sentence."""
        part = {"training": " on the training part", "test": " of the test part", "": ""}
        return f"{self.says}{part[self.rows]}"

    @property
    def label(self) -> str:
        """The title, with the part of the data that it is of where that is not the training part."""
        return f"{self.title} (test)" if self.rows == "test" else self.title

    def fits(self, task: str) -> bool:
        """Whether it is one of a task's."""
        return self.task in ("any", task)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("elbo", "ELBO", "the bound", "any", "higher", "nat", "training"),
        Metric(
            "nlpd",
            "NLPD",
            "the negative log predictive density",
            "any",
            "lower",
            "nat",
            y="standardised",
        ),
        Metric(
            "nlpd_original",
            "NLPD [y]",
            "the negative log predictive density in the units of y",
            "regression",
            "lower",
            "nat",
            y="original",
            over_outputs=False,
        ),
        Metric(
            "rmse",
            "RMSE",
            "the root mean square error",
            "regression",
            "lower",
            y="standardised",
        ),
        Metric(
            "rmse_original",
            "RMSE [y]",
            "the root mean square error in the units of y",
            "regression",
            "lower",
            y="original",
            over_outputs=False,
        ),
        Metric("error_rate", "error rate", "the error rate", "classification", "lower"),
        Metric(
            "heldout_elbo",
            "held-out ELBO",
            "the held-out bound",
            "any",
            "higher",
            "nat",
            formula="(n/t) Σ E log p(y|f) over the t test points − KL",
        ),
        Metric(
            "nmse",
            "nMSE",
            "the normalised mean square error",
            "regression",
            "lower",
            formula="Σ(y − ŷ)² / Σ(y − ȳ)² over the test points, ȳ their mean",
        ),
        Metric(
            "mae",
            "MAE",
            "the mean absolute error",
            "regression",
            "lower",
            y="standardised",
        ),
        Metric(
            "nmae",
            "nMAE",
            "the normalised mean absolute error",
            "regression",
            "lower",
            formula="Σ|y − ŷ| / Σ|y − ȳ| over the test points, ȳ their mean",
        ),
        Metric(
            "crps",
            "CRPS",
            "the continuous ranked probability score",
            "regression",
            "lower",
            y="standardised",
            formula="∫(P(Y ≤ z) − 1[y ≤ z])² dz",
            gaussian=True,
        ),
        Metric(
            "coverage",
            "coverage",
            "the share of targets within the central 95 % of the predictive density",
            "regression",
            0.95,
            formula="share of test targets within the central 95 % of the predictive density",
            gaussian=True,
        ),
        Metric(
            "brier",
            "Brier",
            "the Brier score",
            "classification",
            "lower",
            formula="mean of (p − y)² for two classes, of Σ(p_c − 1[y = c])² over the classes for more",
        ),
        Metric(
            "ece",
            "ECE",
            "the expected calibration error",
            "classification",
            "lower",
            formula=f"mean |accuracy − probability of the predicted class| over {CALIBRATION_BINS} "
            "bins of that probability, equally wide on [0, 1]",
        ),
        Metric(
            "seconds",
            "time [s]",
            "the time of training",
            "any",
            "lower",
            "s",
            "",
            formula="seconds of training steps, compiling included, evaluation left out",
        ),
    )
}


HYPERPARAMETERS = {
    metric.name: metric
    for metric in (
        Metric("variance", "σ²", "the kernel's variance", "any", "lower", rows=""),
        Metric("lengthscale_mean", "ℓ", "the lengthscale", "any", "lower", rows=""),
        Metric("noise_variance", "noise variance", "the noise variance", "any", "lower", rows=""),
    )
}
"""What a trace has beside the metrics; where a panel is too low for all curves, the lower ones are whole."""

USUAL = {
    "regression": ("elbo", "nlpd", "nlpd_original", "rmse"),
    "classification": ("elbo", "nlpd", "error_rate"),
}
"""What a table shows of a task where nobody asks for other metrics."""


def metric(name: str) -> Metric:
    """A metric by name; raises `UserError` with the nearest one that there is."""
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


def of_a_trace(name: str) -> Metric:
    """A metric or a hyperparameter by name; raises `UserError` with the nearest one that there is."""
    known = {**METRICS, **HYPERPARAMETERS}
    if name not in known:
        raise unknown("metric", name, known)
    return known[name]


def loss(value: float, better: Better) -> float:
    """A number that is lower where the value is better."""
    if isinstance(better, float):
        return abs(value - better)
    return -value if better == "higher" else value


def pit_column(level: float) -> str:
    """The column of a trace that has the share of test targets below the predictive quantile."""
    return f"pit_{level:g}"
