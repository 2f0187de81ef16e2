"""Declarations of all metrics for tables, figures, JSON and the progress of a run.

A metric is one number of a cell, that is of one output, split and seed. Over splits and seeds, the number
itself is averaged (the mean of RMSEs, not the root of a mean square). Over several outputs, it is averaged
if `over_outputs` is true. A metric in the units of an output is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from svgpbench.errors import unknown

if TYPE_CHECKING:
    import pandas as pd

Better: TypeAlias = Literal["higher", "lower"] | float
"""Direction in which a metric is better; a number is the target value."""

CALIBRATION_BINS = 15
"""Number of bins of equal width on [0, 1] in the expected calibration error (Guo et al. 2017)."""

# rounded, as 0.1 * 3 is 0.30000000000000004
PIT_LEVELS = tuple(round(0.1 * i, 1) for i in range(1, 10))
"""Levels for which a record holds the share of test targets below the predictive quantile."""


@dataclass(frozen=True)
class Metric:
    """Declaration of a metric; `formula` is the text of its footnote."""

    name: str  # in records, files and JSON
    title: str  # in tables and figures
    says: str  # in a caption
    task: Literal["regression", "classification", "any"]
    better: Better
    unit: Literal["", "nat", "s"] = ""
    rows: Literal["training", "test", ""] = "test"
    y: Literal["", "standardised", "original"] = ""  # scale of the targets in a regression
    over_outputs: bool = True
    formula: str = ""
    gaussian: bool = False  # defined only for a Gaussian predictive density

    @property
    def phrase(self) -> str:
        """Phrase that names the metric inside a sentence."""
        part = {"training": " on the training part", "test": " of the test part", "": ""}
        return f"{self.says}{part[self.rows]}"

    @property
    def label(self) -> str:
        """Title, followed by "(test)" if the metric is on the test rows."""
        return f"{self.title} (test)" if self.rows == "test" else self.title

    def fits(self, task: str) -> bool:
        """Return True if the metric applies to a task."""
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
"""Hyperparameters in a trace. A figure that is too low for all curves shows the lower ones in full."""

USUAL = {
    "regression": ("elbo", "nlpd", "nlpd_original", "rmse"),
    "classification": ("elbo", "nlpd", "error_rate"),
}
"""Default metrics of a table, by task."""


def metric(name: str) -> Metric:
    """Return a metric by name; raises `UserError`, with the nearest name, if it is unknown."""
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


def of_a_trace(name: str) -> Metric:
    """Return a metric or a hyperparameter by name.

    Raises `UserError`, with the nearest name, if it is unknown.
    """
    known = {**METRICS, **HYPERPARAMETERS}
    if name not in known:
        raise unknown("metric", name, known)
    return known[name]


Number = TypeVar("Number", float, npt.NDArray[np.float64], "pd.Series[float]")


def loss(value: Number, better: Better) -> Number:
    """Return a number that is lower for a better value, or an array or a series of such numbers."""
    if isinstance(better, float):
        return abs(value - better)
    return -value if better == "higher" else value


def pit_column(level: float) -> str:
    """Return the trace column with the share of test targets below the predictive quantile of `level`."""
    return f"pit_{level:g}"
