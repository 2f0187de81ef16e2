"""Scores of predictions and θ in a few numbers, by hand; a constant prediction scores as it should."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from svgpbench.likelihoods import GaussianParameters
from svgpbench.model import Theta
from svgpbench.model.kernels import KernelParameters
from svgpbench.training.trace_point import hyperparameters, scores

DENSITY = np.array([-1.0, -2.0, -6.0])
Y = np.array([0.0, 2.0, 5.0])


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
    assert found == {"nlpd": 0.0, "error_rate": 0.4}
    assert scores("classification", np.zeros(5), guess, 1.0 - y, 1.0)["error_rate"] == 0.6


def test_of_several_classes_the_most_probable_is_the_label() -> None:
    # none above a half in the first point; the class is the row, not the column
    guess = np.array([[0.4, 0.1, 0.2, 0.2], [0.35, 0.8, 0.3, 0.3], [0.25, 0.1, 0.5, 0.5]])
    y = np.array([0.0, 1.0, 2.0, 0.0])
    assert scores("classification", np.zeros(4), guess, y, 1.0)["error_rate"] == 0.25


def test_classes_are_not_scaled() -> None:
    assert set(scores("classification", DENSITY, np.ones(3), np.ones(3), 8.0)) == {
        "nlpd",
        "error_rate",
    }


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
