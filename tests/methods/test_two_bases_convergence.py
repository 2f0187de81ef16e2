"""How fast methods with two bases reach the best q of their family, on real data: Gaussian, full batch.

For fixed θ the bound of ORTH is a concave quadratic in (a, m_β), so that its maximum is one linear solve.
"""

from __future__ import annotations

import itertools
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.cases import MatrixCase, build_model
from svgpbench.checks.dense.decoupled import Union
from svgpbench.checks.dense.two_part import TwoPart
from svgpbench.config import InducingConfig
from svgpbench.initialization.inducing_inputs import initial_bases
from svgpbench.kernels import Theta, unconstrain
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.likelihoods import GaussianParameters
from svgpbench.methods import build_method
from svgpbench.training.blocks import Batch
from svgpbench.training.steps import compile_steps
from svgpbench.tree import tree_map
from svgpbench_datasets import REGISTRY

Floats = npt.NDArray[np.float64]
TOLERANCE = 1e-4  # nats a point


class Task(NamedTuple):
    """Standardised data at a fixed θ, the best bound, and how strongly the two parts meet."""

    X: Floats
    y: Floats
    theta: Theta
    best: float
    overlap: float  # squared cosine of the angle between the two parts of the mean


def task(X: Floats, y: Floats, points: int, noise: float) -> Task:
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    bases = initial_bases(X, InducingConfig(count=points, gamma=points, init="random"), 0)
    kernel = KernelParameters(np.ones(1), np.full((1, X.shape[1]), X.shape[1] ** 0.5))
    theta = Theta(kernel, GaussianParameters(np.float64(noise)), bases)
    union = Union(MatrixCase("orth adam", "gaussian", "matern52"), theta, X, y, 1.0, None)
    parts = TwoPart(union, orthogonal=True)
    maps = np.concatenate([parts.T, parts.R], axis=1)
    H = maps.T @ (union.K_inv + union.A @ union.A.T / noise) @ maps
    a, m = np.split(np.linalg.solve(H, maps.T @ union.A @ y / noise), [points])
    best = union.elbo(*parts.q(a, m, np.linalg.inv(H[points:, points:])))
    roots = [np.linalg.cholesky(H[s, s]) for s in (slice(points), slice(points, None))]
    between = np.linalg.solve(roots[0], np.linalg.solve(roots[1], H[points:, :points]).T)
    return Task(X, y, theta, best, float(np.linalg.norm(between, 2)) ** 2)


@pytest.fixture(scope="module")
def airfoil() -> Task:
    data = REGISTRY.load("airfoil")
    rows = np.random.default_rng(0).choice(len(data.y), 300, replace=False)
    return task(data.X[rows], data.y[rows], 20, 0.3)


@pytest.fixture(scope="module")
def kin8nm() -> Task:
    path = Path(os.environ.get("SVGPBENCH_MIRROR", "")) / "kin8nm" / "data.txt.xz"
    if not path.is_file():
        pytest.skip("SVGPBENCH_MIRROR names no folder with kin8nm/data.txt.xz")
    with lzma.open(path, "rt") as stream:
        table = np.loadtxt(stream, max_rows=3000)
    return task(table[:, :-1], table[:, -1], 100, 0.1)


def gaps(at: Task, method: str, options: dict[str, Any], rate: float) -> Iterator[float]:
    """Nats a point below the best bound, step after step."""
    ops = load_backend("numpy")
    built = build_method(method, options)
    steps = compile_steps(ops, build_model("gaussian", "matern52"), built, 1, 1, ("kernel",))
    raw = tree_map(ops.asarray, unconstrain(at.theta))
    p, one, n = steps.prior(raw), np.float64(1.0), len(at.y)
    batch = Batch(at.X, at.y, np.arange(n))
    f = steps.factor(raw, p, batch)
    state = built.initial_state(ops, p, 1, n)
    while True:
        state = steps.e_phase(raw, f, batch, state, np.float64(rate), one)
        yield (at.best - float(steps.bound(raw, f, batch, state, one))) / n


@pytest.mark.parametrize("coupled", ["q-svgp natgrad", "t-svgp"])
@pytest.mark.parametrize("data", ["airfoil", "kin8nm"])
def test_newton_steps_reach_the_optimum(
    data: str, coupled: str, request: pytest.FixtureRequest
) -> None:
    """Monotonically, the gap shrinking by the fourth power of the cosine."""
    at: Task = request.getfixturevalue(data)
    run = gaps(at, "orth", {"coupled": coupled, "gamma_step": "newton"}, 1.0)
    found = [next(run) for _ in range(40)]
    first = next(i for i, gap in enumerate(found, 1) if gap < TOLERANCE)
    assert first <= 20
    tail = [gap for gap in found if gap > 1e-10]
    assert min(tail) > 0.0
    assert all(later < gap for gap, later in itertools.pairwise(tail))
    assert tail[-1] / tail[-2] == pytest.approx(at.overlap**2, rel=0.1)


def test_first_order_steps_are_far_where_newton_steps_have_arrived(airfoil: Task) -> None:
    newton = {"coupled": "t-svgp", "gamma_step": "newton"}
    steps = 20
    others = {
        "orth": gaps(airfoil, "orth", {}, 0.01),
        "hybrid": gaps(airfoil, "hybrid", {}, 0.01),
        "decoupled": gaps(airfoil, "decoupled", {}, 0.01),
        "adam on γ": gaps(airfoil, "orth", {"coupled": "t-svgp", "gamma_rate": 0.01}, 1.0),
    }
    run = gaps(airfoil, "orth", newton, 1.0)
    arrived = [next(run) for _ in range(steps)][-1]
    assert arrived < TOLERANCE
    for name, gap in others.items():
        assert [next(gap) for _ in range(steps)][-1] > 100 * TOLERANCE, name


def test_exact_natural_steps_on_gamma_are_stable_only_below_their_bound(airfoil: Task) -> None:
    """τ < 2/(1 + λmax(D_γ⁻¹ s K_⊥ᵀ diag(β) K_⊥)): Eq. 16a of Salimbeni et al. 2018b at larger τ diverges."""
    case = MatrixCase("orth adam", "gaussian", "matern52")
    union = Union(case, airfoil.theta, airfoil.X, airfoil.y, 1.0, None)
    T = TwoPart(union, orthogonal=True).T
    D, fit = T.T @ union.K_inv @ T, T.T @ union.A @ union.A.T @ T / 0.3
    limit = 2.0 / (1.0 + float(np.max(np.linalg.eigvals(np.linalg.solve(D, fit)).real)))
    options = {"coupled": "t-svgp", "gamma_step": "natural"}
    for share, falls in ((0.9, True), (1.5, False)):
        run = gaps(airfoil, "orth", {**options, "gamma_rate": share * limit}, 1e-9)
        found = [next(run) for _ in range(60)]
        assert (found[-1] < found[0]) == falls
