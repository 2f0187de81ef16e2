"""What a likelihood states, and a likelihood bound to its parameters: what a method sees.

Notation: q(f_i) = N(μ_i, v_i) and V_i = E log p(y_i | f_i). Then α_i = ∂V_i/∂μ_i and
β_i = −2 ∂V_i/∂v_i (Bonnet, Price). Shapes: y [b]; μ, v, α, β [P, b]; V [b].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from svgpbench.errors import unknown
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map

NEGATIVE_BETA = ("damp", "retreat", "clip", "raw")
"""Where log p is not concave, β may be negative. `damp` keeps it and halves a natural-gradient step
until the precision is positive definite; `retreat` does too, and once more where it has halved, so that
a step ends no further than half way to the edge; `clip` puts β to 0, so that the fixed point is not
stationary in S; `raw` keeps it and takes the step as it is."""


Squash = Annotated[float, Field(ge=0, lt=0.5)]
"""ε of squash + (1 − 2 squash) Φ."""


class NoParameters(NamedTuple):
    """The parameters of a likelihood that has none."""


class Expectations(NamedTuple):
    """Σ_i V_i and its exact gradient."""

    value: Array  # []
    parameters: Tree  # ∂/∂parameters
    alpha: Array  # [P, b], ∂/∂μ
    beta: Array  # [P, b], −2 ∂/∂v


class Predicted(NamedTuple):
    """What q(f) says of the y of b test points."""

    log_density: Array  # [b], of y
    mean: Array  # [b]; probability of class 1 [b] or of several classes [C, b]
    variance: Any = ()  # [b], where p(y) is Gaussian


@dataclass(frozen=True)
class Likelihood(ABC):
    """p(y | f), a value object: its parameters are passed in."""

    name: ClassVar[str]
    task: ClassVar[Literal["regression", "classification"]]
    support: ClassVar[Literal["real", "binary", "classes", "counts"]]  # what y holds

    negative_beta: Literal["damp", "retreat", "clip", "raw"] = "damp"

    def __post_init__(self) -> None:
        if self.negative_beta not in NEGATIVE_BETA:
            raise unknown("treatment of negative β", self.negative_beta, NEGATIVE_BETA)

    @property
    def latents(self) -> int:
        """Number P of latent functions."""
        return 1

    @property
    def log_concave(self) -> bool:
        """Whether log p(y | f) is concave in f, so that β ≥ 0 everywhere."""
        return True

    @property
    def damps(self) -> bool:
        """Whether natural-gradient steps must watch the precision: raw β that may be negative."""
        return not self.log_concave and self.negative_beta in ("damp", "retreat")

    @property
    def retreats(self) -> bool:
        """Whether a step that was halved is halved once more."""
        return self.damps and self.negative_beta == "retreat"

    @property
    def clips(self) -> bool:
        """Whether β that may be negative is put to 0."""
        return not self.log_concave and self.negative_beta == "clip"

    @property
    def samples(self) -> int:
        """Rows of noise that a batch brings, 0 where nothing is sampled."""
        return 0

    def bind(self, parameters: Tree, noise: Array | tuple[()]) -> Tree:
        """What V depends on besides y, μ and v: the parameters, and a batch's noise if it samples."""
        return parameters

    def unbind(self, gradient: Tree) -> Tree:
        """The parameters' part of a gradient in what `bind` made."""
        return gradient

    def initial_parameters(self) -> Tree:
        """Starting parameters as plain floats in a NamedTuple."""
        return NoParameters()

    @abstractmethod
    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        """V [b], differentiable in the parameters, μ and v."""

    @abstractmethod
    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        """(α, β), each [P, b]."""

    def expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Expectations:
        """Σ_i V_i and its gradient, what an M-step needs; by autodiff of V unless a likelihood says more.

        Where V is sampled, `gradients` may be another estimate: this one is V̂'s own.
        """

        def summed(at: Tree) -> Array:
            return ops.sum(self.variational_expectations(ops, at[0], y, at[1], at[2]))

        value, (own, slope_mu, slope_v) = ops.value_and_grad(summed)((p, mu, v))
        return Expectations(value, self.unbind(own), slope_mu, -2.0 * slope_v)

    @abstractmethod
    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        """Log ∫ p(y | f) N(f; μ, v) df [b]: the log of the integral, not the integral of the log."""

    @abstractmethod
    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        """Mean of y [b], probability of class 1 [b], or probabilities of several classes [C, b]."""

    def predictive_variance(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array | tuple[()]:
        """Variance of y [b] where p(y) is Gaussian; () where it is not, and no quantile follows from it."""
        return ()

    def predicted(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Predicted:
        """All three at once, for a likelihood that has them from one pass over its draws."""
        return Predicted(
            self.log_predictive_density(ops, p, y, mu, v),
            self.predict(ops, p, mu, v),
            self.predictive_variance(ops, p, mu, v),
        )

    def site_precision(self, ops: Ops, p: Tree) -> Array:
        """Factor [] of every site that the parameters alone determine: 1/σ² for Gaussian noise."""
        return ops.zeros(()) + 1.0

    def pull_site_precision(self, ops: Ops, p: Tree, bar: Array) -> Tree:
        """The gradient of bar · site_precision, bar [], in the parameters."""
        if type(self).site_precision is Likelihood.site_precision:  # which is no function of them
            return tree_map(lambda x: 0.0 * x, self.unbind(p))
        return self.unbind(ops.value_and_grad(lambda at: bar * self.site_precision(ops, at))(p)[1])


@dataclass(frozen=True)
class Conditional:
    """A likelihood bound to its parameters: all that a method sees of them."""

    likelihood: Likelihood
    parameters: Any

    @property
    def damps(self) -> bool:
        """Whether natural-gradient steps must watch the precision: raw β that may be negative."""
        return self.likelihood.damps

    @property
    def retreats(self) -> bool:
        """Whether a step that was halved is halved once more."""
        return self.likelihood.retreats

    @property
    def sampled(self) -> bool:
        """Whether expectations are by Monte Carlo."""
        return self.likelihood.samples > 0

    def variational_expectations(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        """V [b]."""
        return self.likelihood.variational_expectations(ops, self.parameters, y, mu, v)

    def gradients(self, ops: Ops, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        """(α, β), each [P, b]; β at least 0 where negative values are clipped."""
        alpha, beta = self.likelihood.gradients(ops, self.parameters, y, mu, v)
        if self.likelihood.clips:
            beta = ops.maximum(beta, 0.0)
        return alpha, beta

    def expectations(self, ops: Ops, y: Array, mu: Array, v: Array) -> Expectations:
        """Σ_i V_i and its gradient, β of any sign."""
        return self.likelihood.expectations(ops, self.parameters, y, mu, v)

    def count_negative_beta(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        """Number [] of data with β < 0 in some latent, before any clipping."""
        _, beta = self.likelihood.gradients(ops, self.parameters, y, mu, v)
        zero = ops.zeros(beta.shape)
        latents = ops.sum(ops.where(beta < 0.0, zero + 1.0, zero), axis=0)
        return ops.sum(ops.where(latents > 0.0, zero[0] + 1.0, zero[0]))

    def log_predictive_density(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        """Log p(y) [b] under q(f)."""
        return self.likelihood.log_predictive_density(ops, self.parameters, y, mu, v)

    def predicted(self, ops: Ops, y: Array, mu: Array, v: Array) -> Predicted:
        """What q(f) says of y."""
        return self.likelihood.predicted(ops, self.parameters, y, mu, v)

    def site_precision(self, ops: Ops) -> Array:
        """Factor [] of every site."""
        return self.likelihood.site_precision(ops, self.parameters)

    def pull_site_precision(self, ops: Ops, bar: Array) -> Tree:
        """The gradient of bar · site_precision, bar [], in the likelihood's parameters."""
        return self.likelihood.pull_site_precision(ops, self.parameters, bar)
