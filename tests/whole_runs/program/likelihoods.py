"""Expected log densities V [b] of each likelihood; α = ∂V/∂μ and β = −2∂V/∂v are autograd's.

Latents lead: μ and v are [P, b].
"""

from __future__ import annotations

import math
from typing import Any

import autograd.numpy as anp
import autograd.scipy.special as asp
import autograd.scipy.stats as ast
import numpy as np
from autograd import grad

from program.parameters import Floats, Table


class Likelihood:
    """What every likelihood has; `treatment` of negative β is damp, clip or raw."""

    latents, samples, classifies, concave = 1, 0, False, True
    gaussian = False  # whether p(y) is
    parameters: tuple[str, ...] = ()

    def __init__(self, treatment: str = "damp") -> None:
        self.treatment = treatment

    @property
    def damps(self) -> bool:
        return not self.concave and self.treatment == "damp"

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    def raw_gradients(
        self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any
    ) -> tuple[Floats, Floats]:
        """α and β [P, b] as they are."""

        def total(mu: Any, v: Any) -> Any:
            return anp.sum(self.V(theta, y, mu, v, noise))

        return grad(total, 0)(mu, v), -2.0 * grad(total, 1)(mu, v)

    def gradients(
        self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any
    ) -> tuple[Floats, Floats]:
        """α and β, β at least 0 where negative values are clipped."""
        alpha, beta = self.raw_gradients(theta, y, mu, v, noise)
        clips = not self.concave and self.treatment == "clip"
        return alpha, np.maximum(beta, 0.0) if clips else beta

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        """Log ∫ p(y|f) N(f; μ, v) df [b]."""
        raise NotImplementedError

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        """The mean of y [b], or the class [b]."""
        raise NotImplementedError


class Gaussian(Likelihood):
    parameters, gaussian = ("noise_variance",), True

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        s2 = theta["noise_variance"]
        return -0.5 * anp.log(2 * np.pi * s2) - ((y - mu[0]) ** 2 + v[0]) / (2 * s2)

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        total = v[0] + theta["noise_variance"]
        return -0.5 * np.log(2 * np.pi * total) - (y - mu[0]) ** 2 / (2 * total)

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        return mu[0]


class Heteroskedastic(Likelihood):
    """Noise of variance σ² exp(f₂): V by nodes over f₂, the density of y by a sum over a fine grid of it."""

    latents, parameters, nodes = 2, ("noise_variance",), 60

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        t, w = np.polynomial.hermite.hermgauss(self.nodes)
        f2 = mu[1][:, None] + anp.sqrt(2.0 * v[1])[:, None] * t
        variance = theta["noise_variance"] * anp.exp(f2)
        square = (y - mu[0]) ** 2 + v[0]
        given_f2 = -0.5 * anp.log(2 * np.pi * variance) - square[:, None] / (2 * variance)
        return anp.sum(w * given_f2, axis=-1) / math.sqrt(math.pi)

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        t = np.linspace(-12.0, 12.0, 20_001)
        f2 = mu[1][:, None] + np.sqrt(v[1])[:, None] * t
        sd = np.sqrt(v[0][:, None] + theta["noise_variance"] * np.exp(f2))
        given_f2 = ast.norm.logpdf((y - mu[0])[:, None] / sd) - np.log(sd)
        total: Floats = asp.logsumexp(given_f2 + np.log(t[1] - t[0]) + ast.norm.logpdf(t), axis=-1)
        return total

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        return mu[0]


class Quadrature(Likelihood):
    """One latent: V by Gauss–Hermite quadrature, the density of y by a sum over a fine grid."""

    nodes = 20

    def log_p(self, theta: Table, y: Any, f: Any) -> Any:
        raise NotImplementedError

    def _at_nodes(self, theta: Table, y: Floats, mu: Any, v: Any) -> tuple[Any, Floats]:
        t, w = np.polynomial.hermite.hermgauss(self.nodes)
        f = mu[0][:, None] + anp.sqrt(2.0 * v[0])[:, None] * t
        return self.log_p(theta, y[:, None], f), w / math.sqrt(math.pi)

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        value, w = self._at_nodes(theta, y, mu, v)
        return anp.sum(w * value, axis=-1)

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        t = np.linspace(-12.0, 12.0, 20_001)
        f = mu[0][:, None] + np.sqrt(v[0])[:, None] * t
        weighted = self.log_p(theta, y[:, None], f) + np.log(t[1] - t[0]) + ast.norm.logpdf(t)
        total: Floats = asp.logsumexp(weighted, axis=-1)
        return total


class Probit(Quadrature):
    classifies = True

    def log_p(self, theta: Table, y: Any, f: Any) -> Any:
        return ast.norm.logcdf((2 * y - 1) * f)

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        return ast.norm.logcdf((2 * y - 1) * mu[0] / np.sqrt(1 + v[0]))

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        return (mu[0] > 0.0).astype(float)


class Logit(Quadrature):
    classifies = True

    def log_p(self, theta: Table, y: Any, f: Any) -> Any:
        return -anp.logaddexp(0.0, -(2 * y - 1) * f)

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        p = np.exp(self.log_density(theta, np.ones(mu.shape[1]), mu, v, noise))
        return (p > 0.5).astype(float)


class Poisson(Quadrature):
    def log_p(self, theta: Table, y: Any, f: Any) -> Any:
        return y * f - anp.exp(f) - asp.gammaln(y + 1.0)

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        return np.exp(mu[0] + v[0] / 2)


class StudentT(Quadrature):
    concave, parameters, df = False, ("scale",), 3.0

    def log_p(self, theta: Table, y: Any, f: Any) -> Any:
        scale, df = theta["scale"], self.df
        constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
        error = (y - f) / scale
        return constant - anp.log(scale) - (df + 1) / 2 * anp.log(1 + error**2 / df)

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        return mu[0]


class Softmax(Likelihood):
    """By Monte Carlo; α and β average ∇log p and −∇²log p, which for β is not V's own derivative."""

    classifies = True

    def __init__(self, classes: int, samples: int) -> None:
        super().__init__()
        self.latents, self.samples = classes, samples

    def _log_probabilities(self, mu: Any, v: Any, noise: Any) -> Any:
        f = mu[:, :, None] + anp.sqrt(v)[:, :, None] * noise.T[:, None, :]  # [C, b, S]
        return f - asp.logsumexp(f, axis=0, keepdims=True)

    def _of_label(self, y: Floats, mu: Any, v: Any, noise: Any) -> Any:
        one_hot = np.eye(self.latents)[:, y.astype(int)]
        return anp.sum(one_hot[:, :, None] * self._log_probabilities(mu, v, noise), axis=0)

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        return anp.mean(self._of_label(y, mu, v, noise), axis=-1)

    def raw_gradients(
        self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any
    ) -> tuple[Floats, Floats]:
        p = np.exp(self._log_probabilities(mu, v, noise))
        one_hot = np.eye(self.latents)[:, y.astype(int)]
        return one_hot - np.mean(p, axis=-1), np.mean(p * (1 - p), axis=-1)

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        return np.log(np.mean(np.exp(self._of_label(y, mu, v, noise)), axis=-1))

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        p = np.exp(self._log_probabilities(mu, v, noise))
        return np.argmax(np.mean(p, axis=-1), axis=0).astype(float)


class RobustMax(Likelihood):
    """Quadrature over f_y of the product of the others' distribution functions."""

    classifies, concave, epsilon, nodes = True, False, 1e-3, 100

    def __init__(self, classes: int, treatment: str = "damp") -> None:
        super().__init__(treatment)
        self.latents = classes

    def _largest(self, label: int, mu: Any, v: Any) -> Any:
        """The chance that f_label is the largest [b]."""
        t, w = np.polynomial.hermite.hermgauss(self.nodes)
        f = mu[label][:, None] + anp.sqrt(2.0 * v[label])[:, None] * t
        product: Any = 1.0
        for c in range(self.latents):
            if c != label:
                product = product * ast.norm.cdf((f - mu[c][:, None]) / anp.sqrt(v[c])[:, None])
        return anp.sum(w * product, axis=-1) / math.sqrt(math.pi)

    def _of_label(self, y: Floats, mu: Any, v: Any) -> Any:
        chances = [self._largest(c, mu, v) * (y == c) for c in range(self.latents)]
        return sum(chances[1:], chances[0])

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        right, wrong = math.log(1 - self.epsilon), math.log(self.epsilon / (self.latents - 1))
        P = self._of_label(y, mu, v)
        return P * right + (1 - P) * wrong

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        P = self._of_label(y, mu, v)
        return np.log(P * (1 - self.epsilon) + (1 - P) * self.epsilon / (self.latents - 1))

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        return np.argmax([self._largest(c, mu, v) for c in range(self.latents)], axis=0).astype(
            float
        )
