"""The small problem at its first batch, for methods with two bases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import build_model, small_problem
from svgpbench.likelihoods import Conditional
from svgpbench.methods import Method, elbo
from svgpbench.model import constrain, unconstrain
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.steps import factor_at, prior_at
from svgpbench.tree import tree_map

PROBLEM = small_problem()
SCALE = 3.0


class At(NamedTuple):
    """A method's blocks at the problem's θ and its first batch."""

    ops: Ops
    method: Any
    p: Any
    f: Any
    likelihood: Conditional
    y: Array
    scale: Array

    def elbo(self, state: Tree) -> Array:
        return elbo(self.ops, self.method, self.f, self.likelihood, self.y, state, self.scale)

    def kl(self, state: Tree) -> float:
        q = self.method.factorise(self.ops, self.f, state)
        return float(self.ops.to_numpy(self.method.kl(self.ops, self.f, q)))


def at_first_batch(
    ops: Ops, method: Method, likelihood: str, rows: npt.ArrayLike | None = None
) -> At:
    """`rows` are the sampled points of γ, None for all."""
    model = build_model(likelihood, "matern52")
    raw = tree_map(ops.asarray, unconstrain(PROBLEM.theta(model, method.basis)))
    theta, index = constrain(ops, raw), PROBLEM.batches[0]
    drawn = () if rows is None else ops.asarray(np.asarray(rows))
    p = prior_at(ops, model, method, theta)
    f = factor_at(ops, model, method, theta, p, ops.asarray(PROBLEM.X[index]), drawn)
    y = ops.asarray(PROBLEM.targets(model.likelihood.support)[index])
    return At(ops, method, p, f, model.conditional(theta), y, ops.asarray(np.float64(SCALE)))
