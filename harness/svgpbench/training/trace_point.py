"""Columns of a trace point: scores of predictions at test inputs, and a summary of θ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr, ndtri

from svgpbench.kernels import Theta
from svgpbench.likelihoods.likelihood import Likelihood, Predicted
from svgpbench.metrics import CALIBRATION_BINS, PIT_LEVELS, pit_column
from svgpbench.tree import leaves

Floats = npt.NDArray[np.float64]


def scores(task: str, predicted: Predicted, y: Floats, y_scale: float) -> dict[str, float]:
    """Return the metrics of predictions, by their names in `svgpbench.metrics`.

    Args:
        task: the likelihood's task.
        predicted: predictions at t test points, on the host.
        y: test targets, [t], in units of `y_scale`.
        y_scale: the number by which the targets were divided.
    """
    density, guess, variance = predicted
    nlpd = -float(np.mean(density))
    if task == "classification":
        label = np.argmax(guess, axis=0) if guess.ndim == 2 else guess > 0.5
        return {
            "nlpd": nlpd,
            "error_rate": float(np.mean(label != y)),
            "brier": brier(guess, y),
            "ece": expected_calibration_error(guess, y),
        }
    rmse = float(np.sqrt(np.mean((guess - y) ** 2)))
    mae = float(np.mean(np.abs(guess - y)))
    metrics = {
        "nlpd": nlpd,
        # the density of s·y is p(y)/s, so its −log has log s more
        "nlpd_original": nlpd + float(np.log(y_scale)),
        "rmse": rmse,
        "rmse_original": rmse * y_scale,
        # of the test targets themselves: 1 is the error of their own mean, the best constant
        "nmse": _relative(rmse**2, float(np.var(y)), y),
        "mae": mae,
        "nmae": _relative(mae, float(np.mean(np.abs(y - np.mean(y)))), y),
    }
    # these need only a mean and a variance; for heavier tails or counts they would be wrong
    return metrics if isinstance(variance, tuple) else metrics | gaussian_scores(guess, variance, y)


def constant_scores(likelihood: Likelihood, y: Floats, y_test: Floats) -> dict[str, float]:
    """Return the NLPD and the bound of the best prediction that ignores the inputs.

    This is N(mean, variance) of real targets, the class frequencies of labels and the Poisson density with
    the mean count. Half a count is added to each class and to the counts, so that no probability is 0. The
    bound is the log density of the training targets, as this model has no KL.

    Args:
        likelihood: says what the targets are.
        y: training targets, [n].
        y_test: test targets, [t], in the same units.
    """

    def log_density(targets: Floats) -> Floats:
        if likelihood.support == "counts":
            rate = (np.sum(y) + 0.5) / len(y)
            return np.asarray(targets * np.log(rate) - rate - gammaln(targets + 1.0))
        if likelihood.task == "regression":
            z = (targets - np.mean(y)) / np.std(y)
            return np.asarray(-0.5 * (z * z + np.log(2.0 * np.pi)) - np.log(np.std(y)))
        counts = np.bincount(y.astype(int), minlength=max(likelihood.latents, 2)) + 0.5
        return np.asarray(np.log(counts / counts.sum())[targets.astype(int)])

    return {"nlpd": -float(np.mean(log_density(y_test))), "elbo": float(np.sum(log_density(y)))}


def _relative(error: float, spread: float, y: Floats) -> float:
    """Return error / spread, or NaN if the test targets y [t] are all equal."""
    # by the targets too: the mean of 0.1, 0.1, 0.1 is not 0.1, and their variance 2e-34
    return error / spread if spread and np.ptp(y) else float("nan")


def gaussian_scores(mean: Floats, variance: Floats, y: Floats) -> dict[str, float]:
    """Compute CRPS, coverage and PIT of Gaussian predictive densities with means and variances [t].

    Source: Gneiting and Raftery 2007, Eq. 21 (CRPS).
    """
    deviation = np.sqrt(variance)
    z = (y - mean) / deviation
    # below: the probability integral transform of y
    below, density = ndtr(z), np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    crps = deviation * (z * (2.0 * below - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))
    return {
        "crps": float(np.mean(crps)),
        "coverage": float(np.mean(np.abs(z) <= ndtri(0.975))),
        **{pit_column(level): float(np.mean(below <= level)) for level in PIT_LEVELS},
    }


def brier(p: Floats, y: Floats) -> float:
    """Return the mean of (p − y)² for p [t] of class 1, or of Σ_c (p_c − 1[y = c])² for p [C, t]."""
    if p.ndim == 1:
        return float(np.mean((p - y) ** 2))
    return float(np.mean(np.sum((p - (np.arange(len(p))[:, None] == y)) ** 2, axis=0)))


def expected_calibration_error(p: Floats, y: Floats) -> float:
    """Return the mean |accuracy − confidence| over bins of confidence, weighted by their points.

    Args:
        p: probabilities [t] of class 1, or [C, t] of several classes.
        y: labels, [t].

    Confidence is the probability of the predicted class. Source: Guo et al. 2017, Eq. 3.
    """
    classes = p if p.ndim == 2 else np.stack([1.0 - p, p])
    confidence, is_correct = np.max(classes, axis=0), np.argmax(classes, axis=0) == y
    # bins (0, 1/15], (1/15, 2/15], …; rounding may carry a probability past 1
    # a NaN gets bin 0 and makes the result NaN by its weight; as an integer it is undefined
    bins = np.clip(np.nan_to_num(np.ceil(confidence * CALIBRATION_BINS)), 0, CALIBRATION_BINS)
    # Σ (correct − confidence) over a bin is n_bin (accuracy − confidence): one pass for Eq. 3
    gaps = np.bincount(bins.astype(int), weights=is_correct - confidence)
    return float(np.sum(np.abs(gaps)) / len(y))


def hyperparameters(theta: Theta) -> dict[str, float]:
    """Return the kernel and likelihood parameters of a θ on the host.

    The lengthscales, of all parts of a compound kernel, are given by their minimum, geometric mean and
    maximum. The variance is that of the first part.
    """
    parameters = leaves(theta.kernel)  # variance [Q] and lengthscales [Q, D] of each part
    lengthscales = np.concatenate([np.ravel(x) for x in parameters[1::2]]).astype(np.float64)
    rows = {
        "variance": float(np.ravel(parameters[0])[0]),
        "lengthscale_min": float(lengthscales.min()),
        "lengthscale_mean": float(np.exp(np.mean(np.log(lengthscales)))),
        "lengthscale_max": float(lengthscales.max()),
    }
    names = getattr(theta.likelihood, "_fields", ())
    return rows | {k: float(x) for k, x in zip(names, theta.likelihood, strict=True)}
