"""Checks, before training, that likelihood and kernel fit the numbers of a data set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.kernels import SMALLEST_POSITIVE
from svgpbench.likelihoods import Likelihood, build_likelihood
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench_datasets import Dataset
from svgpbench_datasets.standardise import column_statistics


def likelihood_for(config: CellConfig, dataset: Dataset) -> Likelihood:
    """Return the likelihood of a cell. The data set gives the number of classes if it is not set.

    Raises `UserError` if the likelihood is for another task, if it does not accept the targets, if
    counts or positive numbers are to be standardised, or if a column that is not standardised varies too
    little.
    """
    likelihood = build_likelihood(config.likelihood)
    task = "regression" if dataset.task == "regression" else "classification"
    if likelihood.task != task:
        raise UserError(
            f"likelihood {likelihood.name!r} is for {likelihood.task}, "
            f"but data set {dataset.name!r} is for {task}"
        )
    if isinstance(likelihood, MulticlassLikelihood) and not likelihood.classes:
        count = len(dataset.class_labels or ())
        likelihood = dataclasses.replace(likelihood, classes=count)
    # after the number of classes is known, which bounds the labels
    if wrong := misfit(likelihood, dataset.y):
        raise UserError(f"likelihood {likelihood.name!r} {wrong} (data set {dataset.name!r})")
    if likelihood.support in ("counts", "positive") and config.data.standardise_y:
        what = "counts" if likelihood.support == "counts" else "positive numbers"
        raise UserError(
            f"likelihood {likelihood.name!r} takes {what} as they are: "
            f"set standardise_y = false for data set {dataset.name!r}"
        )
    # powers 2 and 1: a noise variance has the square of y's unit, a lengthscale the unit of x
    if likelihood.support == "real" and not config.data.standardise_y:
        _refuse_tiny(dataset.y[:, None], [dataset.target_name], 2, "y", dataset.name)
    if not config.data.standardise_x:
        _refuse_tiny(dataset.X, dataset.feature_names, 1, "x", dataset.name)
    return likelihood


def _refuse_tiny(
    columns: np.typing.NDArray[np.float64], names: Sequence[str], power: int, which: str, data: str
) -> None:
    """Raise `UserError` for columns [n, D] in raw units that no lengthscale or noise variance reaches.

    Both have a floor. `power` is that of the spread which is compared with it.
    """
    spread, constant = column_statistics(columns, names=names)[1:]
    tiny = ~constant & (spread**power <= SMALLEST_POSITIVE)
    if tiny.any():
        column = int(np.argmax(tiny))
        raise UserError(
            f"column {names[column]!r} of data set {data!r} varies by {spread[column]:.1g} only, below "
            f"what parameters of at least {SMALLEST_POSITIVE:g} can follow: rescale it, "
            f"or set standardise_{which} = true"
        )


def misfit(
    likelihood: Likelihood,
    y: np.typing.NDArray[np.float64],
    place: Callable[[int], str] = lambda row: f"row {row + 1}",
) -> str:
    """Return the reason why the likelihood does not accept targets y [n]; empty if it does.

    `place` gives the words for a target from its index.
    """
    fits, accepted, remedy = _accepted(likelihood, y)
    if fits.all():
        return ""
    row = int(np.argmin(fits))
    return f"{accepted}, but {place(row)} holds {y[row]:g}; {remedy}"


def _accepted(
    likelihood: Likelihood, y: np.typing.NDArray[np.float64]
) -> tuple[np.typing.NDArray[np.bool_], str, str]:
    """Return which targets a likelihood accepts, in words too, and the remedy for others."""
    is_count = (y == np.floor(y)) & (y >= 0)
    if likelihood.support == "binary":
        return is_count & (y < 2), "takes labels 0 and 1", "softmax takes more classes"
    if isinstance(likelihood, MulticlassLikelihood):
        last = likelihood.classes - 1
        remedy = "set likelihood.classes to the number of classes"
        return is_count & (y <= last), f"takes labels 0 to {last}", remedy
    if likelihood.support == "counts":
        return is_count, "takes counts 0, 1, 2, …", "a count is a whole number, at least 0"
    if likelihood.support == "positive":
        return y > 0.0, "takes numbers above 0", "remove such rows, or use another likelihood"
    return np.full(len(y), True), "", ""
