"""Derivatives by differences, with which claims of adam2021 are computed."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench_papers.algebra.objectives import curvature, slope


def test_derivatives_are_those_of_polynomials_to_the_sixth_degree() -> None:
    def f(x: float) -> float:
        return 3.0 + 2.0 * x - 5.0 * x**2 + x**3 - x**4 + 4.0 * x**5 - x**6

    assert slope(f, 0.1) == pytest.approx(2.0, abs=1e-12)
    assert curvature(f, 0.1) == pytest.approx(-10.0, abs=1e-11)
    assert slope(lambda t: np.array([np.sin(t), np.exp(t)])) == pytest.approx([1.0, 1.0], abs=1e-12)
