"""Adam against an implementation of others."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench.numerics.adam import adam_ascent, adam_start
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import leaves

START = (np.array([1.5, -0.7, 0.2]), (np.array([[0.3, -2.0]]), ()))
STEPS, RATE = 50, 0.05


def objective(ops: Ops, tree: Tree) -> Array:
    """A curved, coupled function to climb."""
    x, (y, _) = tree
    bowl = ops.sum((x - 0.5) ** 2) + 3.0 * ops.sum(y * y) * (1.0 + 0.1 * ops.sum(x * x))
    return -ops.log1p(bowl) - 0.1 * ops.sum(ops.exp(x))


def test_adam_equals_torch(ops: Ops) -> None:
    torch = pytest.importorskip("torch")
    x, y = (torch.tensor(a, requires_grad=True) for a in leaves(START))
    theirs = torch.optim.Adam([x, y], lr=RATE, maximize=True)
    parameters = (ops.asarray(START[0]), (ops.asarray(START[1][0]), ()))
    state, rate = adam_start(ops, parameters), ops.asarray(np.float64(RATE))
    for _ in range(STEPS):
        theirs.zero_grad()
        bowl = ((x - 0.5) ** 2).sum() + 3.0 * (y * y).sum() * (1.0 + 0.1 * (x * x).sum())
        (-torch.log1p(bowl) - 0.1 * torch.exp(x).sum()).backward()
        theirs.step()
        _, g = ops.value_and_grad(lambda t: objective(ops, t))(parameters)
        parameters, state = adam_ascent(ops, state, parameters, g, rate)
    for got, wanted in zip(leaves(parameters), (x, y), strict=True):
        np.testing.assert_allclose(
            ops.to_numpy(got), wanted.detach().numpy(), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
def test_first_step_has_the_size_of_the_rate_and_goes_up(ops: Ops) -> None:
    parameters = (ops.asarray(np.array([1.0, 1.0])),)
    gradient = (ops.asarray(np.array([1e-3, -50.0])),)
    rate = ops.asarray(np.float64(0.1))
    moved, _ = adam_ascent(ops, adam_start(ops, parameters), parameters, gradient, rate)
    # ε = 1e-8 beside the gradient 1e-3
    np.testing.assert_allclose(ops.to_numpy(moved[0]), [1.1, 0.9], rtol=2e-6)
