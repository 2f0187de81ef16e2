"""Cheng and Boots 2017, Sec. 3.4: gradients from some columns of K_α and some rows of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from svgpbench.checks.cases import small_problem
from svgpbench.checks.dense.decoupled import Union
from svgpbench.checks.matrix import difference
from svgpbench.kernels import constrain
from svgpbench.tree import leaves, tree_map
from svgpbench_papers.algebra.random_problems import LIKELIHOODS, SEEDS, Check, frame_over
from svgpbench_papers.cheng2017.algebra.drawn import (
    gradients,
    random_q,
)

ROWS, COLUMNS = 2, 2
"""Numbers sampled from three rows and three columns of K_α, so small that all choices can be averaged."""


@frame_over(likelihood=LIKELIHOODS, seed=SEEDS)
def unbiased(likelihood: str, seed: int) -> Iterator[Check]:
    """Compare the mean gradient over all choices of rows and columns with dense gradients on all of them."""
    problem = small_problem(n=3, M=3, b=ROWS, seed=seed)
    problem = replace(problem, gamma=problem.gamma[:3])
    d = random_q(problem, likelihood, seed, subset=COLUMNS)
    b, u = d.bench, d.dense
    choices = list(combinations(range(u.size), COLUMNS))
    batches = [
        b.batch(np.array(rows))._replace(basis_points=np.array(columns))
        for rows in combinations(range(b.n), ROWS)
        for columns in choices
    ]
    sampled = [gradients(b, d.state, batch, b.n / ROWS) for batch in batches]
    m, S = u.decoupled(d.a, d.L_B)
    d_m, d_S = u.slopes(m, S)
    yield "a", difference(np.mean([g.a for g in sampled], axis=0), d_m @ u.K[:, : u.size])
    g_L = np.tril(-2.0 * (S @ d_S @ S)[:, u.size :, u.size :] @ d.L_B)
    yield "B", difference(np.mean([g.L_B for g in sampled], axis=0), g_L)
    direction = tree_map(lambda x: d.rng.standard_normal(x.shape), b.raw)
    slopes = []
    for batch in batches:
        _, gradient = b.m_step.value_and_gradient(b.raw, d.state, batch, b.number(b.n / ROWS))
        pairs = zip(leaves(gradient), leaves(direction), strict=True)
        slopes.append(sum(np.sum(g * t) for g, t in pairs))

    def dense_bound(t: float) -> float:
        theta = constrain(b.ops, tree_map(lambda x, s: x + t * s, b.raw, direction))
        union = Union(u.case, theta, problem.X, b.y, 1.0)
        return union.elbo(*union.decoupled(d.a, d.L_B))

    h = 1e-3
    wide, narrow = dense_bound(2 * h) - dense_bound(-2 * h), dense_bound(h) - dense_bound(-h)
    slope = (8 * narrow - wide) / (12 * h)
    yield "hyperparameters and both bases", difference(np.mean(slopes), slope)
    K_alpha = u.K[: u.size, : u.size]
    # with rows sampled too, a diagonal entry is drawn at a rate of r/M but scaled by (M/r)²
    estimate = np.zeros_like(K_alpha)
    for columns in choices:
        estimate[np.ix_(columns, columns)] += K_alpha[np.ix_(columns, columns)]
    estimate *= (u.size / COLUMNS) ** 2 / len(choices)
    yield "rows of K_alpha too", difference(d.a @ estimate, d.a @ K_alpha)
