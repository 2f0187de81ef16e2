"""Kobe 2021: the random problems of its exact claims, each as our code and as dense algebra sees it."""

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
"""A step that moves a state by less, relatively, ends a run."""


def random_problem(seed: int, *, n: int = 40, M: int = 8) -> Problem:
    """Inputs in three dimensions, Z beside some of them."""
    return small_problem(n=n, M=M, b=min(n, 16), seed=seed)


def at_the_data(problem: Problem) -> Problem:
    """The same with Z = X."""
    return replace(problem, Z=problem.X)


def bench_of(
    method: str, options: dict[str, Any], likelihood: str, problem: Problem, jitter: float = 1e-6
) -> Bench:
    """A method of ours on a problem, NumPy throughout."""
    model = build_model(likelihood, KERNEL, jitter=jitter)
    return Bench(load_backend("numpy"), model, build_method(method, options), problem)


def diagonal(optimiser: str, likelihood: str, problem: Problem, jitter: float = 1e-6) -> Bench:
    """The O(M) family with one of its E-steps, from S⁻¹ = K⁻¹ + I as the thesis starts."""
    options = {"optimiser": optimiser, "start": "unit"}
    return bench_of("diagonal-precision", options, likelihood, problem, jitter)


def dense(likelihood: str, problem: Problem, jitter: float = 1e-6) -> Dense:
    """The judge: explicit inverses at the same θ and data."""
    case = Case("diagonal-precision exact", likelihood, KERNEL)
    model, _ = case.build()
    y = problem.targets(model.likelihood.support)
    return Dense(case, problem.theta(model), problem.X, y, 1.0, jitter=jitter)


def random_state(seed: int, M: int) -> DiagonalState:
    """Some μ, and g about 1."""
    rng = np.random.default_rng(seed)
    mu, g = 0.3 * rng.standard_normal((1, M)), rng.uniform(0.5, 2.0, (1, M))
    return DiagonalState(mu, g, np.zeros(()), ())


def settled(b: Bench, rate: float = 0.5, steps: int = 300) -> DiagonalState:
    """Where E-steps on all data stop, or are after so many."""
    state: DiagonalState = b.start
    full = b.full
    for _ in range(steps):
        before, state = state, b.e_step(state, full, rate)
        if max(difference(before.mu, state.mu), difference(before.g, state.g)) < STILL:
            break
    return state
