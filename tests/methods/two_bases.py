"""The small problem at its first batch, for methods with two bases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import build_model, small_problem
from svgpbench.kernels import constrain, unconstrain
from svgpbench.methods import AnyMethod, DataTerm
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import factor_at, prior_at
from svgpbench.tree import tree_map

PROBLEM = small_problem()
SCALE = 3.0


class At(NamedTuple):
    """A method's blocks at the problem's θ and its first batch."""

    ops: Ops
    method: Any
    p: Any
    f: Any
    data: DataTerm

    def elbo(self, state: Tree) -> Array:
        return self.method.bound(self.ops, self.f, self.data, state)

    def kl(self, state: Tree) -> float:
        q = self.method.factorise(self.ops, self.f, state)
        return float(self.ops.to_numpy(self.method.kl(self.ops, self.f, q)))


def at_first_batch(
    ops: Ops, method: AnyMethod, likelihood: str, basis_points: npt.ArrayLike | None = None
) -> At:
    """`basis_points` are those of γ that are sampled, None for all."""
    model = build_model(likelihood, "matern52")
    raw = tree_map(ops.asarray, unconstrain(PROBLEM.theta(model, method.basis)))
    theta, index = constrain(ops, raw), PROBLEM.batches[0]
    drawn = () if basis_points is None else ops.asarray(np.asarray(basis_points))
    p = prior_at(ops, model, method, theta)
    f = factor_at(ops, model, method, theta, p, ops.asarray(PROBLEM.X[index]), drawn)
    y = ops.asarray(PROBLEM.targets(model.likelihood.support)[index])
    scale = ops.asarray(np.float64(SCALE))
    data = DataTerm(model.conditional(theta), y, ops.asarray(index), scale)
    return At(ops, method, p, f, data)
