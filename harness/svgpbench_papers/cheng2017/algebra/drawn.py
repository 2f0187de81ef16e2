"""Random decoupled q on small problems, as a method's state and as one dense Gaussian on both bases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import MatrixCase, SmallProblem
from svgpbench.checks.dense.decoupled import Union
from svgpbench.kernels import constrain
from svgpbench.methods import build_method
from svgpbench.methods.decoupled import DecoupledState, DecoupledSVGP, MeanPrecision
from svgpbench.training.blocks import Batch, data_term
from svgpbench_papers.algebra.random_problems import Floats, bench_of


class RandomDecoupledQ(NamedTuple):
    """A random decoupled q on a problem, as a state and as one dense Gaussian on both bases."""

    bench: Bench
    state: DecoupledState
    dense: Union
    a: Floats  # [1, M_α]
    L_B: Floats  # [1, M_β, M_β]
    rng: np.random.Generator


def random_q(
    problem: SmallProblem, likelihood: str, seed: int, *, subset: int = 0
) -> RandomDecoupledQ:
    """Draw a random mean and precision on a problem."""
    method = build_method("decoupled", {"optimiser": "sgd", "subset": subset})
    b = bench_of(method, likelihood, problem)
    rng = np.random.default_rng(seed)
    a, L_B = random_parameters(rng, len(problem.gamma), len(problem.Z))
    case = MatrixCase("decoupled sgd", likelihood, "matern52")
    dense = Union(case, problem.theta(b.model, "decoupled"), problem.X, b.y, 1.0)
    return RandomDecoupledQ(b, state_of(a, L_B), dense, a, L_B, rng)


def random_parameters(rng: np.random.Generator, M_alpha: int, M_beta: int) -> tuple[Floats, Floats]:
    """Draw coefficients [1, M_α] and a lower factor [1, M_β, M_β] with a positive diagonal."""
    L_B = np.tril(rng.standard_normal((M_beta, M_beta)), -1)
    L_B += np.diag(rng.uniform(0.5, 1.5, M_beta))
    return 0.3 * rng.standard_normal((1, M_alpha)), L_B[None]


def state_of(a: Floats, L_B: Floats) -> DecoupledState:
    """Return DECOUPLED's state, without an optimiser's moments."""
    return DecoupledState(MeanPrecision(a, L_B), ())


def lower_factor(root: Floats) -> Floats:
    """Return the lower factor [M, M] of RRᵀ for R [M, k], k ≥ M; RRᵀ may be singular."""
    # rootᵀ = QR, so that root rootᵀ = RᵀR; a Cholesky of a singular product would fail
    _, R = np.linalg.qr(root.T)
    return np.asarray(R.T, dtype=np.float64)


def gradients(b: Bench, state: DecoupledState, batch: Batch, scale: float) -> MeanPrecision:
    """Return the method's gradient of scale·ΣV − KL in (a, L_B) on a batch."""
    assert isinstance(b.method, DecoupledSVGP)
    f = b.steps.factor(b.raw, b.prior, batch)
    data = data_term(b.model, constrain(b.ops, b.raw), batch, b.number(scale))
    return b.method.gradients(b.ops, f, data, state)
