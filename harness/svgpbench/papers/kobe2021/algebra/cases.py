"""Kobe 2021: random problems for its exact claims, for the methods' own code and for dense algebra."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import Case, Problem, build_model, small_problem
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench.methods import build_method
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.plugins import load_backend

Rows = list[dict[str, Any]]
KERNEL = "matern52"
STILL = 1e-11
"""A run ends when a step changes the state by less than this, relatively."""


def random_problem(seed: int, *, n: int = 40, M: int = 8) -> Problem:
    """Return a problem with inputs in three dimensions and Z near some of them."""
    return small_problem(n=n, M=M, b=min(n, 16), seed=seed)


def at_the_data(problem: Problem) -> Problem:
    """Return the problem with Z = X."""
    return replace(problem, Z=problem.X)


def bench_of(
    method: str, options: dict[str, Any], likelihood: str, problem: Problem, jitter: float = 1e-6
) -> Bench:
    """Build the bench of a method on a problem, with the NumPy backend."""
    model = build_model(likelihood, KERNEL, jitter=jitter)
    return Bench(load_backend("numpy"), model, build_method(method, options), problem)


def diagonal(optimiser: str, likelihood: str, problem: Problem, jitter: float = 1e-6) -> Bench:
    """Build the bench of the O(M) family with one of its E-steps.

    It starts at S⁻¹ = K⁻¹ + I, as in the thesis.
    """
    options = {"optimiser": optimiser, "start": "unit"}
    return bench_of("diagonal-precision", options, likelihood, problem, jitter)


def dense(likelihood: str, problem: Problem, jitter: float = 1e-6) -> Dense:
    """Return the reference: dense algebra with explicit inverses at the same θ and data."""
    case = Case("diagonal-precision exact", likelihood, KERNEL)
    model, _ = case.build()
    y = problem.targets(model.likelihood.support)
    return Dense(case, problem.theta(model), problem.X, y, 1.0, jitter=jitter)


def random_state(seed: int, M: int) -> DiagonalState:
    """Draw a state with random μ [1, M] and g [1, M] in [0.5, 2]."""
    rng = np.random.default_rng(seed)
    mu, g = 0.3 * rng.standard_normal((1, M)), rng.uniform(0.5, 2.0, (1, M))
    return DiagonalState(mu, g, np.zeros(()), ())


def settled(b: Bench, rate: float = 0.5, steps: int = 300) -> DiagonalState:
    """Run E-steps on all data until the state stops changing, at most `steps`; return the state."""
    state: DiagonalState = b.start
    full = b.full
    for _ in range(steps):
        before, state = state, b.e_step(state, full, rate)
        if max(difference(before.mu, state.mu), difference(before.g, state.g)) < STILL:
            break
    return state
