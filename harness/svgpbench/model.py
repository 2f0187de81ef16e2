"""A model: kernel, likelihood and jitter, with θ = (kernel, likelihood, inducing inputs).

This is the seam: θ goes in, blocks come out, and a method never sees θ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench import gaussian
from svgpbench.errors import UserError
from svgpbench.gaussian import Factor, Gram, Prior
from svgpbench.kernels import Kernel, KernelParameters
from svgpbench.likelihoods import Conditional, Likelihood
from svgpbench.ops import Array, Ops
from svgpbench.tree import tree_map

SMALLEST_POSITIVE = 1e-6
"""Floor of every positive parameter: θ = floor + softplus(raw)."""


class Theta(NamedTuple):
    """The parameters θ of a model; raw (unconstrained) and constrained values share this shape."""

    kernel: KernelParameters
    likelihood: Any  # the likelihood's own NamedTuple
    inducing: Array  # Z [M, D]


def constrain(ops: Ops, raw: Theta) -> Theta:
    """Positive parameters through softplus with a floor; Z as it is."""

    def positive(x: Array) -> Array:
        return SMALLEST_POSITIVE + ops.softplus(x)

    return Theta(tree_map(positive, raw.kernel), tree_map(positive, raw.likelihood), raw.inducing)


def unconstrain(theta: Theta) -> Theta:
    """The raw values of θ on the host; raises `UserError` for a value at or below the floor."""

    def raw(x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        excess = np.asarray(x, dtype=np.float64) - SMALLEST_POSITIVE
        if not np.all(excess > 0):
            raise UserError(f"kernel and likelihood parameters must be above {SMALLEST_POSITIVE:g}")
        return excess + np.log(-np.expm1(-excess))

    return Theta(
        tree_map(raw, theta.kernel),
        tree_map(raw, theta.likelihood),
        np.asarray(theta.inducing, dtype=np.float64),
    )


@dataclass(frozen=True)
class Model:
    """A sparse GP model of independent latents that share one kernel."""

    kernel: Kernel
    likelihood: Likelihood
    jitter: float = 1e-6
    latents: int = 1

    def prior(self, ops: Ops, theta: Theta) -> Prior:
        """K(Z, Z) + jitter·I and its Cholesky factor."""
        Z = theta.inducing
        Kuu = self.kernel.cross(ops, theta.kernel, Z, Z) + self.jitter * ops.eye(Z.shape[0])
        return gaussian.prior(ops, Kuu)

    def gram(self, ops: Ops, theta: Theta, p: Prior, X: Array) -> Gram:
        """The raw blocks at X [b, D]."""
        return Gram(
            p.Kuu,
            self.kernel.cross(ops, theta.kernel, theta.inducing, X),
            self.kernel.diagonal(ops, theta.kernel, X),
        )

    def factor(self, ops: Ops, theta: Theta, p: Prior, X: Array) -> Factor:
        """The whitened blocks at X [b, D]."""
        g = self.gram(ops, theta, p, X)
        return gaussian.factor(ops, p, g.Kuf, g.kff)

    def conditional(self, theta: Theta) -> Conditional:
        """The likelihood bound to its parameters."""
        return Conditional(self.likelihood, theta.likelihood)
