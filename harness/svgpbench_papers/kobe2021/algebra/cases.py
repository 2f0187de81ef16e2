"""Kobe 2021: random problems for its exact claims, and the benches of its family."""

from __future__ import annotations

import functools

import numpy as np

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import SmallProblem, small_problem
from svgpbench.methods import build_method
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench_papers.algebra import objectives
from svgpbench_papers.algebra.random_problems import Row, bench_of

Rows = list[Row]
FULL = "q-svgp natgrad"
"""The variant whose q is any Gaussian."""


def random_problem(seed: int, *, n: int = 40, M: int = 8) -> SmallProblem:
    """Return a problem with inputs in three dimensions and Z near some of them."""
    return small_problem(n=n, M=M, b=min(n, 16), seed=seed)


def diagonal_bench(
    optimiser: str, likelihood: str, problem: SmallProblem, jitter: float = 1e-6
) -> Bench:
    """Build the bench of the O(M) family with one of its E-steps, from S⁻¹ = K⁻¹ + I as in the thesis."""
    method = build_method("diagonal-precision", {"optimiser": optimiser, "start": "unit"})
    return bench_of(method, likelihood, problem, jitter=jitter)


def random_state(seed: int, M: int) -> DiagonalState:
    """Draw a state with random μ [1, M] and g [1, M] in [0.5, 2]."""
    rng = np.random.default_rng(seed)
    mu, g = 0.3 * rng.standard_normal((1, M)), rng.uniform(0.5, 2.0, (1, M))
    return DiagonalState(mu, g, np.zeros(()), ())


converged_state = functools.partial(objectives.converged_state, rate=0.5, still=1e-11, most=300)
