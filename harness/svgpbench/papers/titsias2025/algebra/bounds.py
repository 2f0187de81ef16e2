"""The order of the bounds on random problems: claims 01 to 03."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import SmallProblem
from svgpbench.checks.dense import gpr_bound
from svgpbench.checks.matrix import difference
from svgpbench.ops import Tree
from svgpbench.papers.algebra.random_problems import LIKELIHOODS, bench_of, problems
from svgpbench.tree import leaves

WIDTHS = {"prior": "sgpr", "one v": "sgpr scalar", "a v_i each": "sgpr diagonal"}


def _bound(b: Bench, state: Tree) -> float:
    return float(b.ops.to_numpy(b.bound(state, b.full)))


def collapsed() -> pd.DataFrame:
    """Return claim 01's gaps between consecutive collapsed bounds, in units of |log p(y)|.

    With Z = X, the row is the relative difference of the prior's bound and that with a v_i for each datum.
    """
    return pd.DataFrame([row for seed, problem in problems() for row in _collapsed(seed, problem)])


def _collapsed(seed: int, problem: SmallProblem) -> Iterator[dict[str, Any]]:
    benches = {name: bench_of(title, "gaussian", problem) for name, title in WIDTHS.items()}
    bounds = {name: _bound(b, b.start) for name, b in benches.items()}
    theta = problem.theta(benches["prior"].model)
    bounds["log p(y)"] = gpr_bound(theta, "matern52", problem.X, problem.y)
    unit = abs(bounds["log p(y)"])
    for low, high in pairwise(bounds):
        gap = (bounds[high] - bounds[low]) / unit
        yield {"seed": seed, "check": f"{low} ≤ {high}", "residual": max(0.0, -gap)}
        yield {"seed": seed, "check": f"{low} < {high}", "residual": gap}
    points = dataclasses.replace(problem, Z=problem.X)
    usual, narrower = (bench_of(WIDTHS[x], "gaussian", points) for x in ("prior", "a v_i each"))
    apart = difference(_bound(usual, usual.start), _bound(narrower, narrower.start))
    yield {"seed": seed, "check": "Z = X", "residual": apart}


def same_steps() -> pd.DataFrame:
    """Return claim 02's change of minibatch E-steps and predictions by a v_i for each datum."""
    pairs = {
        "t-SVGP": ("t-svgp tied-projected", "t-svgp diagonal"),
        "q-SVGP": ("q-svgp natgrad", "q-svgp natgrad diagonal"),
        "ORTH": ("orth dual newton", "orth dual newton diagonal"),
    }
    return pd.DataFrame(
        {"seed": seed, "check": name, "residual": _largest_difference(pair, problem)}
        for seed, problem in problems()
        for name, pair in pairs.items()
    )


def _largest_difference(pair: tuple[str, str], problem: SmallProblem) -> float:
    """Return the largest difference of the two variants' states and marginals after five minibatches."""
    benches = [bench_of(title, "gaussian", problem) for title in pair]
    states = [b.minibatch_run(5) for b in benches]
    ends = [[*leaves(s), *b.marginals(s)] for b, s in zip(benches, states, strict=True)]
    return max(float(np.max(np.abs(x - y), initial=0.0)) for x, y in zip(*ends, strict=True))


def any_likelihood() -> pd.DataFrame:
    """Return claim 03's gaps between the bound with one v and the prior's, each at its best q.

    All likelihoods are included.
    """
    rows = []
    for likelihood, (seed, problem) in product(LIKELIHOODS, problems()):
        bounds = []
        for title in ("t-svgp tied-projected", "t-svgp scalar"):
            b = bench_of(title, likelihood, problem)
            state = b.start
            for _ in range(60):
                state = b.e_step(state, b.full, 0.5)
            bounds.append(_bound(b, state))
        gap = (bounds[1] - bounds[0]) / abs(bounds[0])
        below = {"check": f"{likelihood}: prior ≤ one v", "residual": max(0.0, -gap)}
        above = {"check": f"{likelihood}: prior < one v", "residual": gap}
        rows += [{"seed": seed, **below}, {"seed": seed, **above}]
    return pd.DataFrame(rows)
