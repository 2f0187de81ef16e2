"""Hessians of the bounds of Salimbeni et al. 2018b."""

from __future__ import annotations

import numpy as np

from svgpbench_papers.salimbeni2018.algebra.surface import Surface, random_problem


def test_hessians_are_the_gaussian_bounds_own_in_the_mean() -> None:
    """K⁻¹ + AAᵀ/σ² in m, at each of several points."""
    of = Surface("COUPLED", "gaussian", random_problem(0))
    points = of.random_points(np.random.default_rng(0), 3)
    W, M = of.blocks.W[0], of.lengths[0]
    noise = float(of.model.likelihood.initial_parameters().noise_variance)
    L_inv = np.linalg.inv(of.blocks.L[0])
    expected = L_inv.T @ (np.eye(M) + W @ W.T / noise) @ L_inv
    for H in of.hessians(points):
        np.testing.assert_allclose(H[:M, :M], expected, rtol=0, atol=1e-7 * np.abs(expected).max())
