"""Scores of predictions and θ in a few numbers, by hand; a constant prediction scores as it should."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from svgpbench.kernels import Theta
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.likelihoods import GaussianParameters
from svgpbench.likelihoods.likelihood import Predicted
from svgpbench.metrics import METRICS
from svgpbench.training.trace_point import hyperparameters
from svgpbench.training.trace_point import scores as scores_of

DENSITY = np.array([-1.0, -2.0, -6.0])
Y = np.array([0.0, 2.0, 5.0])
Floats = npt.NDArray[np.float64]


def scores(
    task: str, density: Floats, guess: Floats, y: Floats, y_scale: float = 1.0, variance: Any = ()
) -> dict[str, float]:
    return scores_of(task, Predicted(density, guess, variance), y, y_scale)


def test_nlpd_is_minus_the_mean_log_density_of_a_point() -> None:
    for task in ("regression", "classification"):
        assert scores(task, DENSITY, Y, Y, 1.0)["nlpd"] == 3.0


def test_rmse_is_the_root_of_the_mean_square() -> None:
    found = scores("regression", DENSITY, Y + np.array([1.0, -2.0, 4.0]), Y, 1.0)
    assert found["rmse"] == pytest.approx(math.sqrt(7.0), rel=1e-15)
    assert "error_rate" not in found
    # squares, so that errors of both signs do not cancel
    assert scores("regression", DENSITY[:2], np.array([1.0, -1.0]), np.zeros(2), 1.0)["rmse"] == 1.0


@pytest.mark.parametrize("scale", [0.25, 1.0, 8.0])
def test_original_units_multiply_an_error_and_shift_a_density(scale: float) -> None:
    """A density of y is that of y/s over s: log s more to the NLPD, which is negative below scale 1."""
    found = scores("regression", DENSITY, Y + 1.0, Y, scale)
    assert found["nlpd_original"] == pytest.approx(3.0 + math.log(scale), rel=1e-15)
    assert found["rmse_original"] == scale
    # of a Gaussian written out in both units
    wide = 0.5 * math.log(2 * math.pi * (0.3 * scale) ** 2) + 0.5 * (scale / (0.3 * scale)) ** 2
    narrow = 0.5 * math.log(2 * math.pi * 0.3**2) + 0.5 * (1 / 0.3) ** 2
    one = scores("regression", np.array([-narrow]), np.ones(1), np.zeros(1), scale)
    assert one["nlpd_original"] == pytest.approx(wide, rel=1e-14)


def test_a_label_is_one_where_its_probability_is_above_a_half() -> None:
    below, above = np.nextafter(0.5, 0.0), np.nextafter(0.5, 1.0)
    guess, y = np.array([below, 0.5, above, 0.9, 0.1]), np.array([0.0, 0.0, 1.0, 0.0, 1.0])
    found = scores("classification", np.zeros(5), guess, y, 1.0)
    assert (found["nlpd"], found["error_rate"]) == (0.0, 0.4)
    assert scores("classification", np.zeros(5), guess, 1.0 - y, 1.0)["error_rate"] == 0.6


def test_of_several_classes_the_most_probable_is_the_label() -> None:
    # none above a half in the first point; the class is the row, not the column
    guess = np.array([[0.4, 0.1, 0.2, 0.2], [0.35, 0.8, 0.3, 0.3], [0.25, 0.1, 0.5, 0.5]])
    y = np.array([0.0, 1.0, 2.0, 0.0])
    assert scores("classification", np.zeros(4), guess, y, 1.0)["error_rate"] == 0.25


def test_classes_are_not_scaled() -> None:
    found = scores("classification", DENSITY, np.ones(3), np.ones(3), 8.0)
    assert found == scores("classification", DENSITY, np.ones(3), np.ones(3), 0.5)


RNG = np.random.default_rng(0)
MEAN, VARIANCE = RNG.normal(size=40), RNG.uniform(0.1, 3.0, 40)
TARGET = MEAN + 1.3 * RNG.normal(size=40)
GAUSSIAN = scores("regression", np.zeros(40), MEAN, TARGET, 1.0, VARIANCE)


def test_absolute_and_normalised_errors_by_hand() -> None:
    found = scores("regression", np.zeros(4), np.array([1.0, 2, 3, 10]), np.array([0.0, 2, 6, 8]))
    # errors 1 0 −3 2; targets −4 −2 2 4 from their mean
    assert (found["mae"], found["nmae"]) == (6 / 4, 6 / 12)
    assert found["nmse"] == pytest.approx(14 / 40, rel=1e-15)
    for targets in (np.zeros(2), np.full(3, 0.1)):  # of which rounding leaves a variance of 2e-34
        alike = scores("regression", 0.0 * targets, 0.0 * targets + 1.0, targets)
        assert math.isnan(alike["nmse"]) and math.isnan(alike["nmae"])


def test_crps_is_the_integral_of_its_definition() -> None:
    """∫(P(Y ≤ z) − 1[y ≤ z])² dz, on either side of y."""
    total = 0.0
    for m, s, y in zip(MEAN, np.sqrt(VARIANCE), TARGET, strict=True):
        below = quad(lambda z, m=m, s=s: norm.cdf(z, m, s) ** 2, min(m, y) - 12 * s, y)[0]
        above = quad(lambda z, m=m, s=s: norm.sf(z, m, s) ** 2, y, max(m, y) + 12 * s)[0]
        total += below + above
    assert GAUSSIAN["crps"] == pytest.approx(total / 40, rel=1e-7)


def test_coverage_and_quantiles_are_those_of_scipy() -> None:
    low, high = norm.interval(0.95, MEAN, np.sqrt(VARIANCE))
    inside = np.mean((low <= TARGET) & (high >= TARGET))
    assert 0.5 < inside < 0.95
    assert GAUSSIAN["coverage"] == inside
    for level in (0.1, 0.3, 0.9):
        share = np.mean(norm.ppf(level, MEAN, np.sqrt(VARIANCE)) >= TARGET)
        assert GAUSSIAN[f"pit_{level}"] == share
    assert 0.0 < GAUSSIAN["pit_0.1"] < GAUSSIAN["pit_0.5"] < GAUSSIAN["pit_0.9"] < 1.0


def test_what_needs_a_gaussian_is_left_out_where_there_is_none() -> None:
    found = scores("regression", DENSITY, Y, Y)
    needs = {name for name, metric in METRICS.items() if metric.gaussian}
    assert needs == {"crps", "coverage"}
    assert not needs & found.keys()
    assert not [name for name in found if name.startswith("pit")]


def test_every_score_is_a_declared_metric_and_every_metric_is_scored_or_of_the_run() -> None:
    of_run = {"elbo", "heldout_elbo", "seconds"}
    of_classes = scores("classification", DENSITY, np.ones(3), np.ones(3))
    for task, found in (("regression", GAUSSIAN), ("classification", of_classes)):
        declared = {name for name, metric in METRICS.items() if metric.fits(task)}
        shares = {name for name in found if name.startswith("pit_")}
        assert set(found) - shares == declared - of_run


def test_brier_score_by_hand() -> None:
    y = np.array([1.0, 0.0])
    assert scores("classification", np.zeros(2), np.array([0.75, 0.5]), y)["brier"] == (
        (0.0625 + 0.25) / 2
    )
    three = np.array([[0.5, 0.25], [0.25, 0.5], [0.25, 0.25]])
    # label 1: 0.25 + 0.5625 + 0.0625; label 0: 0.5625 + 0.25 + 0.0625
    assert scores("classification", np.zeros(2), three, y)["brier"] == 0.875


def test_calibration_error_by_hand() -> None:
    """Confidences 0.9 (three, two right) and 0.7 (one, right) in two bins of fifteen."""
    p, y = np.array([0.9, 0.1, 0.9, 0.7]), np.array([1.0, 0.0, 0.0, 1.0])
    wanted = 0.75 * abs(2 / 3 - 0.9) + 0.25 * abs(1 - 0.7)
    assert scores("classification", np.zeros(4), p, y)["ece"] == pytest.approx(wanted, rel=1e-14)
    # of several classes the confidence is that of the most probable one
    three = np.array([[0.6, 0.2], [0.3, 0.3], [0.1, 0.5]])
    found = scores("classification", np.zeros(2), three, np.array([0.0, 1.0]))["ece"]
    assert found == pytest.approx(0.5 * 0.4 + 0.5 * 0.5, rel=1e-14)
    # within a bin errors of both signs cancel: ten guesses at 0.7, seven of them right
    ten = np.repeat([1.0, 0.0], [7, 3])
    even = scores("classification", np.zeros(10), np.full(10, 0.7), ten)["ece"]
    assert even == pytest.approx(0.0, abs=1e-15)
    assert scores("classification", np.zeros(1), np.array([1.0 + 1e-16]), np.ones(1))["ece"] == 0.0


class Pair(NamedTuple):
    scale: float
    shape: float


def test_lengthscales_are_told_by_least_geometric_mean_and_greatest() -> None:
    kernel = KernelParameters(np.array([2.5]), np.array([[8.0, 1.0, 27.0, 6.0]]))
    found = hyperparameters(Theta(kernel, GaussianParameters(np.float64(0.3)), ()))
    assert found == pytest.approx(
        {
            "variance": 2.5,
            "lengthscale_min": 1.0,
            "lengthscale_mean": 6.0,  # (8·1·27·6)^¼; the arithmetic mean is 10.5
            "lengthscale_max": 27.0,
            "noise_variance": 0.3,
        },
        rel=1e-14,
    )


def test_parameters_of_a_likelihood_go_by_their_names() -> None:
    kernel = KernelParameters(np.array([2.5]), np.array([[3.0]]))
    found = hyperparameters(Theta(kernel, Pair(0.7, 4.0), ()))
    assert (found["scale"], found["shape"]) == (0.7, 4.0)
    assert set(hyperparameters(Theta(kernel, (), ()))) == {
        "variance",
        "lengthscale_min",
        "lengthscale_mean",
        "lengthscale_max",
    }
