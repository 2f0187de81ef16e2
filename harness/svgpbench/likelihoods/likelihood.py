"""The interface of a likelihood, and a likelihood bound to its parameters, which a method sees.

Notation: q(f_i) = N(μ_i, v_i) and V_i = E log p(y_i | f_i). Then α_i = ∂V_i/∂μ_i and
β_i = −2 ∂V_i/∂v_i (Bonnet, Price). An override has the shapes of what it implements.

A latent function is f = m₀ + g with a constant m₀ and g ~ GP(0, k). Methods know g alone: the marginals
that a method hands to a `Conditional` are those of g.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float
from pydantic import Field

from svgpbench.errors import UserError, unknown
from svgpbench.likelihoods import spread
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map

NEGATIVE_BETA = ("damp", "retreat", "clip", "raw")
"""Treatments of negative β, which occurs if log p is not concave.

`damp` keeps β and halves a natural-gradient step until the precision is positive definite. `retreat` does
the same, and halves once more if it has halved, so that a step ends at most half way to the edge. `clip`
sets negative β to 0; its fixed point is not stationary in S. `raw` keeps β and takes the full step."""


Support: TypeAlias = Literal["real", "positive", "binary", "classes", "counts"]
"""What y holds: any numbers, numbers > 0, labels 0 and 1, labels 0 … C−1, or whole numbers ≥ 0."""

Integrals: TypeAlias = Literal["fixed", "adaptive"]
"""How expectations under q(f) and class probabilities are computed.

`fixed` takes as many nodes or draws as the likelihood's own option says, placed by q(f) alone, as the papers
do. `adaptive` takes closed forms, or nodes where the likelihood varies, to 1e-6."""

PerDatum: TypeAlias = Float[Array, "b"]
PerLatent: TypeAlias = Float[Array, "P b"]

ROWS_AT_ONCE = 64
"""Rows whose distribution functions are summed together: each takes a thousand densities."""

Squash = Annotated[float, Field(ge=0, lt=0.5)]
"""ε of squash + (1 − 2 squash) Φ."""


class NoParameters(NamedTuple):
    """The parameters of a likelihood that has none."""


class Expectations(NamedTuple):
    """Σ_i V_i and its exact gradient."""

    value: Float[Array, ""]
    parameters: Tree  # ∂/∂parameters
    alpha: PerLatent  # ∂/∂μ
    beta: PerLatent  # −2 ∂/∂v


class Predicted(NamedTuple):
    """Predictions for y at b test points."""

    log_density: PerDatum  # of y
    mean: Float[Array, "*C b"]  # or the probability of class 1, or of C classes
    variance: PerDatum | tuple[()] = ()  # if p(y) is Gaussian


@dataclass(frozen=True)
class Likelihood(ABC):
    """A likelihood p(y | f), as a value object; its parameters are passed to its methods."""

    name: ClassVar[str]
    task: ClassVar[Literal["regression", "classification"]]
    support: ClassVar[Support]  # what y holds

    closed_form: ClassVar[bool] = False  # True: `integrals` changes nothing
    mean_is_f: ClassVar[bool] = False  # True: E[y | f] = f, so that the mean of y takes no variance

    negative_beta: Literal["damp", "retreat", "clip", "raw"] = "damp"
    integrals: Integrals = "fixed"

    def __post_init__(self) -> None:
        if self.negative_beta not in NEGATIVE_BETA:
            raise unknown("treatment of negative β", self.negative_beta, NEGATIVE_BETA)

    @property
    def latents(self) -> int:
        """Number P of latent functions."""
        return 1

    @property
    def discrete(self) -> bool:
        """Return True if y is a label or a count, so that p(y | f) is a probability: log p ≤ 0."""
        return self.support in ("binary", "classes", "counts")

    @property
    def log_concave(self) -> bool:
        """Return True if log p(y | f) is concave in each latent function, so that β ≥ 0 everywhere."""
        return True

    @property
    def damps(self) -> bool:
        """Return True if natural-gradient steps must check the precision, as β may be negative."""
        return not self.log_concave and self.negative_beta in ("damp", "retreat")

    @property
    def retreats(self) -> bool:
        """Return True if a step that was halved is halved once more."""
        return self.damps and self.negative_beta == "retreat"

    @property
    def clips(self) -> bool:
        """Return True if negative β are set to 0."""
        return not self.log_concave and self.negative_beta == "clip"

    @property
    def samples(self) -> int:
        """Number of noise rows in a batch; 0 if nothing is sampled."""
        return 0

    def bind(self, parameters: Tree, noise: Float[Array, "S P"] | tuple[()]) -> Tree:
        """Return everything that V depends on besides y, μ and v: parameters, and noise if it samples."""
        return parameters

    def unbind(self, gradient: Tree) -> Tree:
        """Return the parameters' part of a gradient in the result of `bind`."""
        return gradient

    def initial_parameters(self) -> Tree:
        """Return the initial parameters as plain floats in a NamedTuple."""
        return NoParameters()

    def latent_mean(self, ops: Ops, p: Tree, y: PerDatum) -> Float[Array, "P"]:
        """Return the constant prior means m₀ at the scale of training targets y, by NumPy's `ops`.

        They are used for labels and counts. Real-valued targets are standardised, so their m₀ is 0.
        """
        return ops.zeros((self.latents,))

    @abstractmethod
    def variational_expectations(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> PerDatum:
        """Return V, differentiable in the parameters, μ and v."""

    @abstractmethod
    def gradients(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> tuple[PerLatent, PerLatent]:
        """Return (α, β)."""

    def expectations(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> Expectations:
        """Return Σ_i V_i and its gradient, for M-steps; by autodiff of V unless overridden.

        If V is sampled, this is the gradient of V̂ itself; `gradients` may be another estimate.
        """

        def summed(x: Tree) -> Float[Array, ""]:
            return ops.sum(self.variational_expectations(ops, x[0], y, x[1], x[2]))

        value, (slope_p, slope_mu, slope_v) = ops.value_and_grad(summed)((p, mu, v))
        return Expectations(value, self.unbind(slope_p), slope_mu, -2.0 * slope_v)

    @abstractmethod
    def log_predictive_density(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> PerDatum:
        """Return log ∫ p(y | f) N(f; μ, v) df: the log of the integral, not the integral of the log."""

    @abstractmethod
    def predict(self, ops: Ops, p: Tree, mu: PerLatent, v: PerLatent) -> Float[Array, "*C b"]:
        """Return the mean of y, the probability of class 1, or the probabilities of C classes."""

    def predictive_variance(
        self, ops: Ops, p: Tree, mu: PerLatent, v: PerLatent
    ) -> PerDatum | tuple[()]:
        """Return the variance of y if p(y) is Gaussian, else (), because it would give no quantiles."""
        return ()

    def predictive_sd(self, ops: Ops, p: Tree, mu: PerLatent, v: PerLatent) -> PerDatum:
        """Return the standard deviation of y, which is infinite for a Student-t with df ≤ 2.

        By default it is summed or integrated over y from `log_predictive_density`. Raises `UserError` for
        labels, and if the density does not integrate to 1.
        """
        return self._in_blocks(
            ops,
            p,
            mu,
            v,
            lambda density, mean: spread.standard_deviation(density, self.support, mean),
        )

    def predictive_quantiles(
        self, ops: Ops, p: Tree, levels: Sequence[float], mu: PerLatent, v: PerLatent
    ) -> Float[Array, "Q b"]:
        """Return the quantiles of y at levels in (0, 1): the least y whose P(Y ≤ y) is the level or more.

        By default they invert the distribution function, which is summed or integrated over y from
        `log_predictive_density`. Raises `UserError` as `predictive_sd`, and for a level outside (0, 1).
        """
        return self._in_blocks(
            ops,
            p,
            mu,
            v,
            lambda density, mean: spread.quantiles(density, self.support, mean, levels),
        )

    def _in_blocks(
        self,
        ops: Ops,
        p: Tree,
        mu: PerLatent,
        v: PerLatent,
        statistic: Callable[[spread.LogDensity, spread.Floats], spread.Floats],
    ) -> Float[Array, "*Q b"]:
        """Return a statistic of the predictive densities of numbers, `ROWS_AT_ONCE` rows at a time.

        `statistic` takes the log density of the rows and the means of y.
        """
        parts = []
        count = int(mu.shape[-1])
        for first in range(0, count, ROWS_AT_ONCE):
            # the array API does not say what a slice beyond the end is
            rows = slice(first, min(first + ROWS_AT_ONCE, count))
            parts.append(statistic(*self._density_of_numbers(ops, p, mu[..., rows], v[..., rows])))
        return ops.asarray(np.concatenate(parts, axis=-1))

    def _density_of_numbers(
        self, ops: Ops, p: Tree, mu: PerLatent, v: PerLatent
    ) -> tuple[spread.LogDensity, spread.Floats]:
        """Return the predictive density of numbers as a function of y [K, b], and the mean of y."""
        if self.task != "regression":
            raise UserError(f"likelihood {self.name!r} predicts labels, which have no spread")

        def log_density(y: spread.Floats) -> spread.Floats:
            tiled = (ops.concat([x] * len(y), axis=-1) for x in (mu, v))
            flat = self.log_predictive_density(ops, p, ops.asarray(y.reshape(-1)), *tiled)
            return np.asarray(ops.to_numpy(flat)).reshape(y.shape)

        return log_density, np.asarray(ops.to_numpy(self.predict(ops, p, mu, v)))

    def predicted(self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent) -> Predicted:
        """Return all three predictions; a likelihood that samples may override this to draw only once."""
        return Predicted(
            self.log_predictive_density(ops, p, y, mu, v),
            self.predict(ops, p, mu, v),
            self.predictive_variance(ops, p, mu, v),
        )

    def site_precision(self, ops: Ops, p: Tree) -> Float[Array, ""]:
        """Return the factor of every site that the parameters alone determine: 1/σ² for Gaussian noise."""
        return ops.zeros(()) + 1.0

    def pull_site_precision(self, ops: Ops, p: Tree, bar: Float[Array, ""]) -> Tree:
        """Return the gradient of bar · site_precision in the parameters."""
        if type(self).site_precision is Likelihood.site_precision:  # a constant
            return tree_map(lambda x: 0.0 * x, self.unbind(p))
        return self.unbind(ops.value_and_grad(lambda x: bar * self.site_precision(ops, x))(p)[1])


@dataclass(frozen=True)
class Conditional:
    """A likelihood bound to its parameters and to the prior mean of f, neither of which a method sees.

    All functions take marginals of g = f − mean.
    """

    likelihood: Likelihood
    parameters: Any
    mean: Float[Array, "P #b"] | tuple[()] = field(default=(), kw_only=True)  # () means 0

    def of_f(self, mu: PerLatent) -> PerLatent:
        """Return the means of f from those of g."""
        return mu if isinstance(self.mean, tuple) else mu + self.mean

    def residual(self, y: PerDatum) -> PerDatum:
        """Return y less the prior mean, for methods that take Gaussian noise of one latent alone."""
        return y if isinstance(self.mean, tuple) else y - self.mean[0, ...]

    @property
    def damps(self) -> bool:
        """Return True if natural-gradient steps must check the precision, as β may be negative."""
        return self.likelihood.damps

    @property
    def retreats(self) -> bool:
        """Return True if a step that was halved is halved once more."""
        return self.likelihood.retreats

    @property
    def sampled(self) -> bool:
        """Return True if expectations are by Monte Carlo."""
        return self.likelihood.samples > 0

    def variational_expectations(
        self, ops: Ops, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> PerDatum:
        """Return V."""
        return self.likelihood.variational_expectations(ops, self.parameters, y, self.of_f(mu), v)

    def gradients(
        self, ops: Ops, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> tuple[PerLatent, PerLatent]:
        """Return (α, β); β is at least 0 if negative values are clipped."""
        alpha, beta = self.likelihood.gradients(ops, self.parameters, y, self.of_f(mu), v)
        if self.likelihood.clips:
            # clipped here, before βμ + α is formed: both dual parameters must see the same β
            beta = ops.maximum(beta, 0.0)
        return alpha, beta

    def expectations(self, ops: Ops, y: PerDatum, mu: PerLatent, v: PerLatent) -> Expectations:
        """Return Σ_i V_i and its gradient; β is not clipped."""
        # an adjoint needs the derivative of V itself, which a clipped β is not
        return self.likelihood.expectations(ops, self.parameters, y, self.of_f(mu), v)

    def count_negative_beta(
        self, ops: Ops, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> Float[Array, ""]:
        """Count the data with β < 0 in some latent, before any clipping."""
        _, beta = self.likelihood.gradients(ops, self.parameters, y, self.of_f(mu), v)
        zero = ops.zeros(beta.shape)
        latents = ops.sum(ops.where(beta < 0.0, zero + 1.0, zero), axis=0)
        return ops.sum(ops.where(latents > 0.0, zero[0, ...] + 1.0, zero[0, ...]))

    def log_predictive_density(
        self, ops: Ops, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> PerDatum:
        """Return log p(y) under q(f)."""
        return self.likelihood.log_predictive_density(ops, self.parameters, y, self.of_f(mu), v)

    def predictive_sd(self, ops: Ops, mu: PerLatent, v: PerLatent) -> PerDatum:
        """Return the standard deviation of y under q(f)."""
        return self.likelihood.predictive_sd(ops, self.parameters, self.of_f(mu), v)

    def predictive_quantiles(
        self, ops: Ops, levels: Sequence[float], mu: PerLatent, v: PerLatent
    ) -> Float[Array, "Q b"]:
        """Return the quantiles of y under q(f), at levels in (0, 1)."""
        return self.likelihood.predictive_quantiles(ops, self.parameters, levels, self.of_f(mu), v)

    def predicted(self, ops: Ops, y: PerDatum, mu: PerLatent, v: PerLatent) -> Predicted:
        """Return the predictions for y under q(f)."""
        return self.likelihood.predicted(ops, self.parameters, y, self.of_f(mu), v)

    def site_precision(self, ops: Ops) -> Float[Array, ""]:
        """Return the factor of every site."""
        return self.likelihood.site_precision(ops, self.parameters)

    def pull_site_precision(self, ops: Ops, bar: Float[Array, ""]) -> Tree:
        """Return the gradient of bar · site_precision in the likelihood's parameters."""
        return self.likelihood.pull_site_precision(ops, self.parameters, bar)
