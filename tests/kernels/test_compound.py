"""Sums and products of kernels: dense formulas, the closed pull-back beside autodiff, a training."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from svgpbench.api import fit, load_posterior, save_posterior
from svgpbench.config import KernelConfig
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment, resolve
from svgpbench.kernels.compound import build_kernel, differentiable
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.ops import Ops
from svgpbench.tree import leaves, tree_map

RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((6, 3)), RNG.standard_normal((5, 3))
SE = KernelParameters(np.array([1.7]), np.array([[0.8, 1.3, 1.1]]))
ROUGH = KernelParameters(np.array([0.6]), np.array([[2.1]]))
SMOOTH = KernelParameters(np.array([0.9]), np.array([[1.4, 0.7, 3.0]]))

SUM = {"name": "sum", "parts": [{"name": "se"}, {"name": "matern32", "ard": False}]}
PRODUCT = {"name": "product", "parts": [{"name": "se"}, {"name": "matern32", "ard": False}]}
NESTED = {"name": "sum", "parts": [PRODUCT, {"name": "matern52"}]}
CASES = {
    "sum": (SUM, (SE, ROUGH)),
    "product": (PRODUCT, (SE, ROUGH)),
    "nested": (NESTED, ((SE, ROUGH), SMOOTH)),
}


def formula(name, a, b):
    def of(p, correlation):
        d = np.linalg.norm((a[:, None] - b[None]) / p.lengthscales[0], axis=-1)
        return p.variance[0] * correlation(d)

    se = of(SE, lambda d: np.exp(-0.5 * d**2))
    rough = of(ROUGH, lambda d: (1 + np.sqrt(3) * d) * np.exp(-np.sqrt(3) * d))
    smooth = of(SMOOTH, lambda d: (1 + np.sqrt(5) * d + 5 * d**2 / 3) * np.exp(-np.sqrt(5) * d))
    return {"sum": se + rough, "product": se * rough, "nested": se * rough + smooth}[name]


def built(ops: Ops, name: str):
    config, p = CASES[name]
    kernel = build_kernel(KernelConfig.model_validate(config))
    return kernel, tree_map(ops.asarray, p)


@pytest.mark.parametrize("name", CASES)
def test_blocks_are_those_of_the_formula(ops: Ops, name: str) -> None:
    kernel, p = built(ops, name)
    X, Z = ops.asarray(A), ops.asarray(B)
    cov = differentiable(ops, kernel, p, 1e-3)
    for found in (kernel.cross(ops, p, X, Z), cov.cross(X, Z)):
        np.testing.assert_allclose(ops.to_numpy(found)[0], formula(name, A, B), rtol=1e-12)
    np.testing.assert_allclose(
        ops.to_numpy(cov.diagonal(X))[0], np.diag(formula(name, A, A)), rtol=1e-12
    )
    np.testing.assert_allclose(
        ops.to_numpy(cov.square(X))[0], formula(name, A, A) + 1e-3 * np.eye(6), rtol=1e-12
    )


@pytest.mark.parametrize("name", CASES)
def test_the_closed_pull_back_is_that_of_autodiff(ops: Ops, name: str) -> None:
    kernel, p = built(ops, name)
    X, Z = ops.asarray(A), ops.asarray(B)
    bar = ops.asarray(RNG.standard_normal((1, 5, 6)))
    square = RNG.standard_normal((1, 5, 5))
    square = ops.asarray(square + np.swapaxes(square, -1, -2))
    ones = ops.asarray(RNG.standard_normal((1, 6)))
    cov = differentiable(ops, kernel, p, 0.0)
    cov.cross(Z, Z)  # a block that was given, and one that was not
    found = (cov.pull_square(Z, square), cov.pull_cross(Z, X, bar), cov.pull_diagonal(X, ones))

    def by_autodiff(paired):
        return ops.value_and_grad(paired)((p, Z))[1]

    wanted = (
        by_autodiff(lambda at: ops.sum(square * kernel.cross(ops, at[0], at[1], at[1]))),
        by_autodiff(lambda at: ops.sum(bar * kernel.cross(ops, at[0], at[1], X))),
        by_autodiff(
            lambda at: ops.sum(ones * kernel.diagonal(ops, at[0], X)) + 0.0 * ops.sum(at[1])
        )[0],
    )
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_allclose(ops.to_numpy(one), ops.to_numpy(other), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "sum"}, "kernel 'sum' needs 2 parts"),
        ({"name": "sum", "parts": [{"name": "se"}]}, "needs 2 parts"),
        ({"name": "se", "parts": [{"name": "se"}] * 2}, "kernel 'se' has no parts"),
        (SUM | {"variance": 2.0}, "hyperparameters of a sum are those of its parts"),
        (SUM | {"varience": 2.0}, "hyperparameters of a sum are those of its parts"),
        ({"name": "sum", "parts": [{"name": "se"}, {"name": "mattern"}]}, "unknown kernel"),
        ({"name": "sum", "parts": [{"name": "se"}, {"name": "se", "l": 1}]}, "unknown option"),
        (
            {"name": "sum", "parts": [{"name": "se"}, {"name": "se", "lengthscale": [1.0] * 5}]},
            "kernel.lengthscale has 5 values",
        ),
    ],
)
def test_a_mistake_in_a_compound_is_one_line(table, message) -> None:
    with pytest.raises(UserError, match=message) as error:
        fit(A[:, :2], A[:, 2], kernel=table, inducing=3)
    assert "\n" not in str(error.value)


def resolved(tmp_path, common: str, own: str):
    path = tmp_path / "mine.toml"
    problem = (
        f'data = [{{ name = "boston" }}]\nkernel = {own}\nlikelihood = {{ name = "gaussian" }}'
    )
    head = 'name = "mine"\nbackends = ["numpy"]\n'
    path.write_text(
        f'{head}\n[kernel]\n{common}\n[[problems]]\n{problem}\n[[methods]]\nname = "t-svgp"\n'
    )
    return resolve(load_experiment(str(path)), None)[0].kernel


def test_an_experiment_file_takes_a_sum_and_a_problem_another_kernel(tmp_path) -> None:
    parts = 'parts = [{ name = "se", lengthscale = 2.0 }, { name = "matern32" }]'
    summed = f'{{ name = "sum", {parts} }}'
    found = resolved(tmp_path, 'name = "matern52"\nvariance = 3.0', summed)
    assert found.name == "sum" and found.parts[0].lengthscale == 2.0 and found.variance == 1.0
    back = resolved(tmp_path, f'name = "sum"\n{parts}', '{ name = "se", variance = 2.0 }')
    assert (back.name, back.variance, back.parts) == ("se", 2.0, ())
    with pytest.raises(UserError, match="hyperparameters of a sum are those of its parts"):
        resolved(tmp_path, f'name = "sum"\n{parts}', "{ variance = 2.0 }")


def test_a_sum_finds_both_scales_and_is_kept(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.sort(rng.uniform(-4.0, 4.0, 120))})
    y = 2.0 * np.sin(0.5 * X["x"]) + 0.7 * np.sin(5.0 * X["x"]) + 0.1 * rng.normal(size=120)
    parts = [{"name": "se", "lengthscale": 1.5}, {"name": "matern52", "lengthscale": 0.3}]
    training = {"em_iterations": 6, "m_steps": 10, "m_rate": 0.05}
    noise = {"name": "gaussian", "noise_variance": 0.05}
    more = {"inducing": 40, "training": training, "likelihood": noise}
    one = fit(X, y, kernel={"name": "sum", "parts": parts}, **more)
    alone = fit(X, y, kernel=parts[0], **more)
    slow, quick = (p.lengthscales[0, 0] for p in one.theta.kernel)
    assert slow > 2.0 * quick and one.elbo > alone.elbo + 10.0
    again = load_posterior(save_posterior(one, tmp_path / "one.npz"))
    assert again.facts == one.facts
    assert np.array_equal(again.predict(X).to_numpy(), one.predict(X).to_numpy())
    assert one.trace["lengthscale_min"].iloc[-1] == pytest.approx(quick)
    assert one.trace["lengthscale_max"].iloc[-1] == pytest.approx(slow)
