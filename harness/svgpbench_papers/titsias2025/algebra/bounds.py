"""The order of the bounds on random problems, and the costs of steps: claims 01 to 04."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import build_model
from svgpbench.checks.dense import gpr_bound
from svgpbench.checks.matrix import difference
from svgpbench.cost import Size, count
from svgpbench.methods.registry import build_named
from svgpbench.ops import Tree
from svgpbench.tree import leaves
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    SEEDS,
    Check,
    bench_of,
    frame_over,
    positive_part,
    random_problem,
)

WIDTHS = {"prior": "sgpr", "one v": "sgpr scalar", "a v_i each": "sgpr diagonal"}


def _bound(b: Bench, state: Tree) -> float:
    return float(b.ops.to_numpy(b.bound(state, b.full)))


@frame_over(seed=SEEDS)
def collapsed(seed: int) -> Iterator[Check]:
    """Return claim 01's gaps of consecutive collapsed bounds over abs(log p(y)); a difference at Z = X."""
    problem = random_problem(seed)
    benches = {name: bench_of(title, "gaussian", problem) for name, title in WIDTHS.items()}
    bounds = {name: _bound(b, b.start) for name, b in benches.items()}
    theta = problem.theta(benches["prior"].model)
    bounds["log p(y)"] = gpr_bound(theta, "matern52", problem.X, problem.y)
    for low, high in pairwise(bounds):
        gap = (bounds[high] - bounds[low]) / abs(bounds["log p(y)"])
        yield f"{low} ≤ {high}", positive_part(-gap)
        yield f"{low} < {high}", gap
    points = dataclasses.replace(problem, Z=problem.X)
    usual, narrower = (bench_of(WIDTHS[x], "gaussian", points) for x in ("prior", "a v_i each"))
    yield "Z = X", difference(_bound(usual, usual.start), _bound(narrower, narrower.start))


@frame_over(seed=SEEDS)
def same_steps(seed: int) -> Iterator[Check]:
    """Return claim 02's change of five minibatch E-steps and predictions by a v_i for each datum."""
    for name, pair in {
        "t-SVGP": ("t-svgp tied-projected", "t-svgp diagonal"),
        "q-SVGP": ("q-svgp natgrad", "q-svgp natgrad diagonal"),
        "ORTH": ("orth dual newton", "orth dual newton diagonal"),
    }.items():
        benches = [bench_of(title, "gaussian", random_problem(seed)) for title in pair]
        states = [b.minibatch_run(5) for b in benches]
        ends = [[*leaves(s), *b.marginals(s)] for b, s in zip(benches, states, strict=True)]
        largest = [np.max(np.abs(x - y), initial=0.0) for x, y in zip(*ends, strict=True)]
        yield name, float(np.max(largest))


@frame_over(likelihood=LIKELIHOODS, seed=SEEDS)
def any_likelihood(likelihood: str, seed: int) -> Iterator[Check]:
    """Return claim 03's gaps between the bound with one v and the prior's, each at its best q."""
    bounds = []
    for title in ("t-svgp tied-projected", "t-svgp scalar"):
        b = bench_of(title, likelihood, random_problem(seed))
        state = b.start
        for _ in range(60):
            state = b.e_step(state, b.full, 0.5)
        bounds.append(_bound(b, state))
    gap = (bounds[1] - bounds[0]) / abs(bounds[0])
    yield f"{likelihood}: prior ≤ one v", positive_part(-gap)
    yield f"{likelihood}: prior < one v", gap


PAIRS = {
    "q-SVGP": ("q-svgp natgrad", "q-svgp natgrad scalar", "q-svgp natgrad diagonal"),
    "t-SVGP untied": ("t-svgp untied", "t-svgp untied scalar", "t-svgp untied diagonal"),
    "t-SVGP tied-projected": ("t-svgp tied-projected", "t-svgp scalar", "t-svgp diagonal"),
    "SGPR": ("sgpr", "sgpr scalar", "sgpr diagonal"),
}
"""By family: the variants with the usual bound, with one v, and with a v_i for each datum."""

SIZES = [Size(n=n, M=M, D=8) for n in (1000, 10_000) for M in (30, 100, 300)]


def step_costs() -> pd.DataFrame:
    """Return claim 04's relative extra FLOPs of an E-step and an M-step over the usual bound, at least 0."""
    rows = []
    for (family, variants), size in product(PAIRS.items(), SIZES):
        counts = (
            count(build_named(x), build_model("gaussian", "matern52"), size) for x in variants
        )
        usual, *narrower = (float(cost.e_step.flops + cost.m_step.flops) for cost in counts)
        for name, flops in zip(("one v", "a v_i each"), narrower, strict=True):
            extra = positive_part(flops / usual - 1.0)
            rows.append({"check": f"{family}, {name}", "n": size.n, "M": size.M, "residual": extra})
    return pd.DataFrame(rows)
