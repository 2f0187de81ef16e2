"""A model: kernel, likelihood and jitter, with θ = (kernel, likelihood, inducing inputs, prior mean).

A model turns θ into a covariance and a bound likelihood, so that a method never sees θ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from svgpbench.errors import UserError
from svgpbench.kernels.compound import differentiable
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.kernels import Kernel
from svgpbench.kernels.pullback import DifferentiableCovariance
from svgpbench.likelihoods import Conditional, Likelihood
from svgpbench.ops import Array, Ops
from svgpbench.tree import tree_map

SMALLEST_POSITIVE = 1e-6
"""Floor of every positive parameter: θ = floor + softplus(raw)."""


class Theta(NamedTuple):
    """The parameters θ of a model; raw (unconstrained) and constrained values share this shape."""

    kernel: Any  # KernelParameters, or a compound's tuple of them
    likelihood: Any  # the likelihood's own NamedTuple
    inducing: Any  # Z [M, D], or the tree of bases that the method has
    mean: (
        Float[Array, "P"] | tuple[()]
    ) = ()  # m₀ of every latent function; () means 0. Never learned


def constrain(ops: Ops, raw: Theta) -> Theta:
    """Return θ from raw values: positive parameters by softplus plus a floor, the others unchanged."""

    def positive(x: Array) -> Array:
        return SMALLEST_POSITIVE + ops.softplus(x)

    return raw._replace(
        kernel=tree_map(positive, raw.kernel), likelihood=tree_map(positive, raw.likelihood)
    )


def pull_constrain(ops: Ops, theta: Theta, gradient: Theta) -> Theta:
    """Return the gradient in raw θ from that in θ; softplus has slope 1 − exp(−softplus)."""

    def positive(bar: Array, x: Array) -> Array:
        return bar * (1.0 - ops.exp(SMALLEST_POSITIVE - x))

    return Theta(
        tree_map(positive, gradient.kernel, theta.kernel),
        tree_map(positive, gradient.likelihood, theta.likelihood),
        gradient.inducing,
    )


def unconstrain(theta: Theta) -> Theta:
    """Return the raw values of θ on the host; raise `UserError` for a value at or below the floor."""

    def raw(x: npt.ArrayLike) -> Float[Array, "..."]:
        excess = np.asarray(x, dtype=np.float64) - SMALLEST_POSITIVE
        if not np.all(excess > 0):
            raise UserError(f"kernel and likelihood parameters must be above {SMALLEST_POSITIVE:g}")
        # softplus⁻¹(x) = log(eˣ − 1), which overflows from x = 710; x + log(1 − e⁻ˣ) does not
        return excess + np.log(-np.expm1(-excess))

    return Theta(
        tree_map(raw, theta.kernel),
        tree_map(raw, theta.likelihood),
        *(
            tree_map(lambda x: np.asarray(x, dtype=np.float64), part)
            for part in (theta.inducing, theta.mean)
        ),
    )


@dataclass(frozen=True)
class Model:
    """A GP model of independent latents that share one kernel."""

    kernel: Kernel
    likelihood: Likelihood
    jitter: float = 1e-6

    @property
    def latents(self) -> int:
        """Number P of latent functions."""
        return self.likelihood.latents

    def covariance(self, ops: Ops, theta: Theta) -> Covariance:
        """Return the kernel at θ."""
        return Covariance(ops, self.kernel, theta.kernel, self.jitter)

    def differentiable_covariance(self, ops: Ops, theta: Theta) -> DifferentiableCovariance:
        """Return the kernel at θ, with the gradients of its blocks."""
        return differentiable(ops, self.kernel, theta.kernel, self.jitter)

    def conditional(self, theta: Theta, noise: Float[Array, "S P"] | tuple[()] = ()) -> Conditional:
        """Return the likelihood at θ, bound to a batch's noise if it samples."""
        mean = theta.mean if isinstance(theta.mean, tuple) else theta.mean[:, None]
        return Conditional(
            self.likelihood, self.likelihood.bind(theta.likelihood, noise), mean=mean
        )
