"""Kobe 2021, Eqs. 2.24–2.27: one natural step of rate 1 against the collapsed bound (claim 05)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from svgpbench.checks.cases import Problem
from svgpbench.checks.dense.gaussians import sgpr_bound
from svgpbench.papers.algebra.random_problems import SEEDS, bench_of
from svgpbench.papers.kobe2021.algebra.cases import KERNEL, Rows, random_problem

PRINTED_JITTER = 1e-10


def shortfall(method: str, problem: Problem, rows: int, jitter: float = 1e-6) -> float:
    """Return the relative difference of the bound and the collapsed one after a step on the first rows.

    Both bounds are on all data; the step has rate 1.
    """
    b = bench_of(method, "gaussian", problem, jitter=jitter)
    state = b.e_step(b.start, b.batch(np.arange(rows)), 1.0)
    best = sgpr_bound(problem.theta(b.model), KERNEL, problem.X, problem.y, jitter)
    return abs(float(b.ops.to_numpy(b.bound(state, b.full))) - best) / abs(best)


def one_step_of_rate_one() -> pd.DataFrame:
    """Return the relative gap to the collapsed bound after one step of rate 1 from q = p."""
    rows: Rows = []
    for seed in SEEDS:
        problem = random_problem(seed)
        n = len(problem.X)
        found = {
            "one step": shortfall("q-svgp natgrad unwhitened", problem, n),
            "one step, whitened": shortfall("q-svgp natgrad", problem, n),
            "one step, printed jitter": shortfall("q-svgp natgrad", problem, n, PRINTED_JITTER),
            "one step on a minibatch": shortfall("q-svgp natgrad", problem, n // 2),
        }
        rows += [{"check": k, "seed": seed, "residual": x} for k, x in found.items()]
    return pd.DataFrame(rows)
