"""Cheng and Boots 2017, Sec. 3.4: gradients from some columns of K_α and some rows of the data."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from svgpbench.checks.cases import small_problem
from svgpbench.checks.dense.decoupled import Union
from svgpbench.checks.matrix import difference
from svgpbench.kernels import constrain
from svgpbench.ops import Tree
from svgpbench.papers.cheng2017.algebra.drawn import RandomDecoupledQ, cases, gradients, on
from svgpbench.tree import leaves, tree_map

ROWS, COLUMNS = 2, 2
"""Numbers sampled from three rows and three columns of K_α, so small that all choices can be averaged."""


def unbiased() -> pd.DataFrame:
    """Compare the mean gradient over all choices of rows and columns with dense gradients on all of them."""
    return cases(_sampled)


def _sampled(likelihood: str, seed: int) -> Iterator[tuple[str, float]]:
    problem = small_problem(n=3, M=3, b=ROWS, seed=seed)
    few = dataclasses.replace(problem, gamma=problem.gamma[:3])
    d = on(few, likelihood, seed, subset=COLUMNS)
    b, u = d.bench, d.judge
    every = [
        b.batch(np.array(rows))._replace(basis_points=np.array(columns))
        for rows in itertools.combinations(range(b.n), ROWS)
        for columns in itertools.combinations(range(u.size), COLUMNS)
    ]
    found = [gradients(b, d.state, batch, b.n / ROWS) for batch in every]
    m, S = u.decoupled(d.a, d.L_B)
    d_m, d_S = u.slopes(m, S)
    yield "a", difference(np.mean([g.a for g in found], axis=0), d_m @ u.K[:, : u.size])
    g_L = np.tril(-2.0 * (S @ d_S @ S)[:, u.size :, u.size :] @ d.L_B)
    yield "B", difference(np.mean([g.L_B for g in found], axis=0), g_L)
    direction = tree_map(lambda x: d.rng.standard_normal(x.shape), b.raw)
    slopes = [
        sum(np.sum(g * t) for g, t in zip(leaves(gradient), leaves(direction), strict=True))
        for gradient in (
            b.m_step.value_and_gradient(b.raw, d.state, batch, b.number(b.n / ROWS))[1]
            for batch in every
        )
    ]
    yield "hyperparameters and both bases", difference(np.mean(slopes), _slope(d, direction))
    both = np.zeros_like(u.K[: u.size, : u.size])
    choices = list(itertools.combinations(range(u.size), COLUMNS))
    for columns in choices:
        both[np.ix_(columns, columns)] += u.K[np.ix_(columns, columns)]
    both *= (u.size / COLUMNS) ** 2 / len(choices)
    yield "rows of K_alpha too", difference(d.a @ both, d.a @ u.K[: u.size, : u.size])


def _slope(d: RandomDecoupledQ, direction: Tree) -> float:
    """Return the slope of the dense bound along a direction of raw θ, q fixed, by central differences."""

    def bound(t: float) -> float:
        theta = constrain(d.bench.ops, tree_map(lambda x, s: x + t * s, d.bench.raw, direction))
        at = Union(d.judge.case, theta, d.bench.problem.X, d.bench.y, 1.0)
        return at.elbo(*at.decoupled(d.a, d.L_B))

    h = 1e-3
    return (8 * (bound(h) - bound(-h)) - (bound(2 * h) - bound(-2 * h))) / (12 * h)
