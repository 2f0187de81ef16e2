"""Inputs far from 0, such as seconds since 1970, give the numbers of the same inputs near 0.

All inputs here are multiples of 2⁻⁸, so that they are exact at any of the offsets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from small_cell import config

from svgpbench.backends import load_backend
from svgpbench.config import (
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    TrainingConfig,
)
from svgpbench.experiments.cell import run_cell
from svgpbench.initialization.inducing_inputs import initial_inducing_inputs
from svgpbench.kernels.bases import Features, common_centre
from svgpbench.kernels.compound import Sum, differentiable
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.kernels import Kernel, KernelParameters, kernel, kernels
from svgpbench.ops import Ops
from svgpbench.tree import leaves, tree_map

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(3)
NUMPY = load_backend("numpy")
OFFSETS = [1e6, -1.7e9, 1e12]
every_offset = pytest.mark.parametrize("offset", OFFSETS)


def exact(*shape: int) -> Floats:
    return np.round(RNG.uniform(-3.0, 3.0, shape) * 256) / 256


A, B = exact(7, 3), exact(9, 3)
FAR = np.array([1.0, 0.0, -0.25])
"""Each column has an offset of its own, and the second none."""


def parameters(ops: Ops) -> KernelParameters:
    values = np.array([1.7]), np.array([[0.8, 1.3, 0.3]])
    return KernelParameters(*map(ops.asarray, values))


def moved(offset: float, X: Floats) -> Floats:
    shifted: Floats = X + offset * FAR
    assert np.array_equal(shifted - offset * FAR, X)
    return shifted


@every_offset
@pytest.mark.parametrize("name", kernels())
def test_covariances_are_those_of_inputs_near_zero(ops: Ops, name: str, offset: float) -> None:
    k, p = kernel(name), parameters(ops)
    near, far = (
        ops.to_numpy(k.cross(ops, p, *(ops.asarray(moved(x, X)) for X in (A, B))))
        for x in (0.0, offset)
    )
    np.testing.assert_allclose(far, near, rtol=1e-11, atol=1e-14)


def gradients(ops: Ops, k: Kernel, p: Any, offset: float, *, functions: bool) -> list[Floats]:
    """K, and the gradients of ⟨bar, K⟩ by the kernel's own formula and by autodiff."""
    a, b = (ops.asarray(moved(offset, X)) for X in (A, B))
    basis = Features(a, ops.asarray(0.1 + np.abs(A))) if functions else a
    covariance = differentiable(ops, k, p, 1e-6)
    bar = ops.asarray(np.cos(np.arange(63.0)).reshape(1, 7, 9))
    square = ops.asarray(np.cos(np.add.outer(np.arange(7.0), np.arange(7.0)))[None])
    K = covariance.cross(basis, b)
    own = (covariance.pull_cross(basis, b, bar), covariance.pull_square(basis, square))

    def product(x: Any) -> Any:
        return ops.sum(bar * k.cross(ops, x[0], x[1], b))

    by_autodiff = ops.value_and_grad(product)((p, basis))[1]
    return [ops.to_numpy(x) for x in leaves((K, own, by_autodiff))]


@every_offset
@pytest.mark.parametrize("kind", ["points", "functions", "sum"])
def test_gradients_are_those_of_inputs_near_zero(ops: Ops, kind: str, offset: float) -> None:
    k: Kernel = kernel("se")
    p: Any = parameters(ops)
    if kind == "sum":
        k, p = Sum((kernel("se"), kernel("matern52"))), (p, p)
    near, far = (gradients(ops, k, p, x, functions=kind == "functions") for x in (0.0, offset))
    for x, y in zip(far, near, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-11)


def test_standardised_inputs_keep_every_bit(ops: Ops) -> None:
    X = RNG.standard_normal((50, 3))
    for inputs in (X - X.mean(axis=0), X + 0.9, RNG.uniform(0.0, 1.0, (50, 3))):
        assert np.array_equal(
            ops.to_numpy(common_centre(ops, ops.asarray(inputs))), np.zeros((1, 3))
        )
    far = ops.to_numpy(common_centre(ops, ops.asarray(X + np.array([0.0, 100.0, 0.0]))))
    assert far[0, ::2].tolist() == [0.0, 0.0]
    assert far[0, 1] == pytest.approx(100.0 + X[:, 1].mean(), rel=1e-13)


@pytest.mark.parametrize("init", ["k-means", "greedy-variance", "random"])
@pytest.mark.parametrize("columns", [1, 8])
def test_inducing_inputs_are_those_near_zero_moved(init: str, columns: int) -> None:
    """SciPy's k-means has distances of its own, from 5 columns on by matrix products."""
    X = exact(60, columns)
    scales = KernelParameters(np.ones(1), np.full((1, columns), 0.5))
    covariance = Covariance(NUMPY, kernel("matern52"), scales, 1e-6)
    near, far = (initial_inducing_inputs(X + x, 12, init, 0, covariance) - x for x in (0.0, 1.7e9))
    np.testing.assert_allclose(far, near, atol=1e-6)


def cell(folder: Path, offset: float, method: str, **changes: Any) -> CellConfig:
    """120 rows of two columns, of which the first has an offset."""
    rng = np.random.default_rng(5)
    t, u = np.arange(120) * 64.0, np.round(rng.uniform(0, 2, 120) * 256) / 256
    y = np.sin(t / 1500) + u + 0.1 * rng.standard_normal(120)
    path = folder / f"{offset:g}.csv"
    rows = [f"{a!r},{b!r},{c!r}" for a, b, c in zip((t + offset).tolist(), u.tolist(), y.tolist())]  # noqa: B905
    path.write_text("\n".join(["t,u,y", *rows]) + "\n")
    data = DataConfig(
        name="rows", path=str(path), target="y", task="regression",
        standardise_x=False, standardise_y=False,
    )  # fmt: skip
    parts: dict[str, Any] = {
        "data": data,
        "kernel": KernelConfig(name="se", lengthscale=(600.0, 1.0)),
        "likelihood": LikelihoodConfig.model_validate({"name": "gaussian", "noise_variance": 0.01}),
        "method": MethodConfig(name=method),
        "inducing": InducingConfig(count=30),
        "training": TrainingConfig(em_iterations=3, m_steps=3, m_rate=0.05),
    }
    return config(**parts | changes)


@every_offset
@pytest.mark.parametrize("method", ["gpr", "t-svgp", "sgpr"])
def test_a_run_has_the_bound_and_the_predictions_of_inputs_near_zero(
    tmp_path: Path, method: str, offset: float
) -> None:
    near, far = (run_cell(cell(tmp_path, x, method)) for x in (0.0, offset))
    assert far.status == near.status == "ok"
    for name in ("elbo", "nlpd", "rmse", "lengthscale_min", "variance"):
        # at 1e12 float64 holds inducing inputs, which need not be multiples of 2⁻⁸, to 1e-4
        rel = 1e-6 if offset == 1e12 else 1e-8
        assert far.metrics[name] == pytest.approx(near.metrics[name], rel=rel)


def test_median_and_mean_gaps_are_those_near_zero(tmp_path: Path) -> None:
    for init in ("median", "mean-gaps"):
        kernels_ = KernelConfig(name="se", init=init)
        near, far = (run_cell(cell(tmp_path, x, "gpr", kernel=kernels_)) for x in (0.0, 1.7e9))
        assert far.metrics["elbo"] == pytest.approx(near.metrics["elbo"], rel=1e-9)


def test_one_inducing_input_is_its_own_centre() -> None:
    """Its spread is 0."""
    p = tree_map(np.asarray, parameters(NUMPY))
    far = kernel("matern52").cross(NUMPY, p, A[:1] + 1e9, B + 1e9)
    np.testing.assert_allclose(far, kernel("matern52").cross(NUMPY, p, A[:1], B), rtol=1e-11)
