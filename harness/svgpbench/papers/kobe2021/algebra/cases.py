"""Kobe 2021: random problems for its exact claims, and the benches of its family."""

from __future__ import annotations

from typing import Any

import numpy as np

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import SmallProblem, build_model, small_problem
from svgpbench.methods import build_method
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.plugins import load_backend

Rows = list[dict[str, Any]]
FULL = "q-svgp natgrad"
"""The variant whose q is any Gaussian."""
STILL = 1e-11
"""A run ends when a step changes the state by less than this, relatively."""


def residual_rows(residuals: dict[str, float], **case: Any) -> Rows:
    """Return one row per check, with the case and the check's residual."""
    return [{"check": check, **case, "residual": x} for check, x in residuals.items()]


def random_problem(seed: int, *, n: int = 40, M: int = 8) -> SmallProblem:
    """Return a problem with inputs in three dimensions and Z near some of them."""
    return small_problem(n=n, M=M, b=min(n, 16), seed=seed)


def diagonal_bench(
    optimiser: str, likelihood: str, problem: SmallProblem, jitter: float = 1e-6
) -> Bench:
    """Build the bench of the O(M) family with one of its E-steps.

    It starts at S⁻¹ = K⁻¹ + I, as in the thesis.
    """
    method = build_method("diagonal-precision", {"optimiser": optimiser, "start": "unit"})
    model = build_model(likelihood, "matern52", jitter=jitter)
    return Bench(load_backend("numpy"), model, method, problem)


def random_state(seed: int, M: int) -> DiagonalState:
    """Draw a state with random μ [1, M] and g [1, M] in [0.5, 2]."""
    rng = np.random.default_rng(seed)
    mu, g = 0.3 * rng.standard_normal((1, M)), rng.uniform(0.5, 2.0, (1, M))
    return DiagonalState(mu, g, np.zeros(()), ())


def converged_state(b: Bench) -> DiagonalState:
    """Return the state after E-steps of rate ½ on all data, at most 300, until it stops changing."""
    state: DiagonalState = b.start
    full = b.full
    for _ in range(300):
        before, state = state, b.e_step(state, full, 0.5)
        if worst_of([before.mu, before.g], [state.mu, state.g]) < STILL:
            break
    return state
