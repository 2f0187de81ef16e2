"""Random decoupled q on small problems, as a method's state and as one dense Gaussian on both bases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import Case, Problem, build_model, small_problem
from svgpbench.checks.dense.decoupled import Union
from svgpbench.kernels import constrain
from svgpbench.methods import build_method
from svgpbench.methods.decoupled import DecoupledState, DecoupledSVGP, MeanPrecision
from svgpbench.papers.algebra.random_problems import LIKELIHOODS, SEEDS, Floats
from svgpbench.plugins import load_backend
from svgpbench.training.blocks import Batch, data_term


class RandomDecoupledQ(NamedTuple):
    """A random decoupled q on a small problem, as a state and as one dense Gaussian on both bases."""

    bench: Bench
    state: DecoupledState
    judge: Union
    a: Floats  # [1, M_α]
    L_B: Floats  # [1, M_β, M_β]
    rng: np.random.Generator


def drawn(likelihood: str, seed: int) -> RandomDecoupledQ:
    """Draw a random mean and precision on a new small problem."""
    return on(small_problem(M=4, seed=seed), likelihood, seed)


def on(problem: Problem, likelihood: str, seed: int, *, subset: int = 0) -> RandomDecoupledQ:
    """Draw a random mean and precision on a given problem."""
    model = build_model(likelihood, "matern52")
    method = build_method("decoupled", {"optimiser": "sgd", "subset": subset})
    b = Bench(load_backend("numpy"), model, method, problem)
    rng = np.random.default_rng(seed)
    a, L_B = general(rng, len(problem.gamma), len(problem.Z))
    case = Case("decoupled sgd", likelihood, "matern52")
    judge = Union(case, problem.theta(model, "decoupled"), problem.X, b.y, 1.0)
    return RandomDecoupledQ(b, DecoupledState(MeanPrecision(a, L_B), ()), judge, a, L_B, rng)


def general(rng: np.random.Generator, M_alpha: int, M_beta: int) -> tuple[Floats, Floats]:
    """Draw coefficients [1, M_α] and a lower factor [1, M_β, M_β] with a positive diagonal."""
    L_B = np.tril(rng.standard_normal((M_beta, M_beta)), -1)
    L_B += np.diag(rng.uniform(0.5, 1.5, M_beta))
    return 0.3 * rng.standard_normal((1, M_alpha)), L_B[None]


def triangular(root: Floats) -> Floats:
    """Return the lower factor [M, M] of RRᵀ for R [M, k], k ≥ M; RRᵀ may be singular."""
    _, R = np.linalg.qr(root.T)
    return np.asarray(R.T, dtype=np.float64)


def gradients(b: Bench, state: DecoupledState, batch: Batch, scale: float) -> MeanPrecision:
    """Return the method's gradient of scale·ΣV − KL in (a, L_B) on a batch."""
    assert isinstance(b.method, DecoupledSVGP)
    f = b.steps.factor(b.raw, b.prior, batch)
    data = data_term(b.model, constrain(b.ops, b.raw), batch, b.number(scale))
    return b.method.gradients(b.ops, f, data, state)


def cases(checks: Callable[[str, int], Iterable[tuple[str, float]]]) -> pd.DataFrame:
    """Return the checks of every likelihood and seed with their residuals, one row per check."""
    rows = [
        {"likelihood": likelihood, "seed": seed, "check": check, "residual": residual}
        for likelihood, seed in itertools.product(LIKELIHOODS, SEEDS)
        for check, residual in checks(likelihood, seed)
    ]
    return pd.DataFrame(rows)
