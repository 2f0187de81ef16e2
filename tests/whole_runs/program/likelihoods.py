"""Expected log densities V [b] of each likelihood; α = ∂V/∂μ and β = −2∂V/∂v are autograd's.

Latents lead: μ and v are [P, b].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import autograd.scipy.special as asp
import autograd.scipy.stats as ast
import numpy as np
from autograd import grad

from program.parameters import Floats, Table


def at_nodes(nodes: int, mu: Any, v: Any) -> tuple[Any, Floats]:
    """Return the points [b, S] of Gauss–Hermite quadrature over N(μ, v), and their weights [S]."""
    t, w = np.polynomial.hermite.hermgauss(nodes)
    return mu[:, None] + anp.sqrt(2.0 * v)[:, None] * t, w / math.sqrt(math.pi)


def log_mean(log_p: Callable[[Floats], Floats], mu: Floats, v: Floats) -> Floats:
    """Return log ∫ p(f) N(f; μ, v) df [b] by a sum over a fine grid of f."""
    t = np.linspace(-12.0, 12.0, 20_001)
    values = log_p(mu[:, None] + np.sqrt(v)[:, None] * t)
    total: Floats = asp.logsumexp(values + np.log(t[1] - t[0]) + ast.norm.logpdf(t), axis=-1)
    return total


class Likelihood:
    """A p(y | f); α and β are what every likelihood has.

    Args:
        treatment: of negative β in E-steps, if p(y | f) is not log-concave. `clip` puts it to 0; with
            `damp` it stays, and the family's step damps its rate.
    """

    latents, samples, classifies, concave = 1, 0, False, True
    gaussian = False  # whether p(y) is

    def __init__(self, treatment: str = "damp") -> None:
        self.treatment = treatment

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    def raw_gradients(
        self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any
    ) -> tuple[Floats, Floats]:
        """Return α and β [P, b] as they are."""

        def total(mu: Any, v: Any) -> Any:
            return anp.sum(self.V(theta, y, mu, v, noise))

        return grad(total, 0)(mu, v), -2.0 * grad(total, 1)(mu, v)

    def gradients(
        self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any
    ) -> tuple[Floats, Floats]:
        """Return α and β, β at least 0 where negative values are clipped."""
        alpha, beta = self.raw_gradients(theta, y, mu, v, noise)
        return alpha, np.maximum(beta, 0.0) if self.treatment == "clip" else beta

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        """Return log ∫ p(y|f) N(f; μ, v) df [b]."""
        raise NotImplementedError

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        """Return the mean of y [b], or the class [b]."""
        return mu[0]


class Gaussian(Likelihood):
    gaussian = True

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        s2 = theta["noise_variance"]
        return -0.5 * anp.log(2 * np.pi * s2) - ((y - mu[0]) ** 2 + v[0]) / (2 * s2)

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        total = v[0] + theta["noise_variance"]
        return -0.5 * np.log(2 * np.pi * total) - (y - mu[0]) ** 2 / (2 * total)


class Heteroskedastic(Likelihood):
    """Noise of variance σ² exp(f₂): integrals over f₁ are exact, those over f₂ are sums."""

    latents, nodes = 2, 60

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        f2, w = at_nodes(self.nodes, mu[1], v[1])
        variance = theta["noise_variance"] * anp.exp(f2)
        square = (y - mu[0]) ** 2 + v[0]
        return (-0.5 * anp.log(2 * np.pi * variance) - square[:, None] / (2 * variance)) @ w

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        def given_f2(f2: Floats) -> Any:
            sd = np.sqrt(v[0][:, None] + theta["noise_variance"] * np.exp(f2))
            return ast.norm.logpdf((y - mu[0])[:, None] / sd) - np.log(sd)

        return log_mean(given_f2, mu[1], v[1])


class Quadrature(Likelihood):
    """One latent: V by Gauss–Hermite quadrature, the density of y by a sum over a fine grid."""

    nodes = 20

    def log_p(self, theta: Table, y: Any, f: Any) -> Any:
        raise NotImplementedError

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        f, w = at_nodes(self.nodes, mu[0], v[0])
        return self.log_p(theta, y[:, None], f) @ w

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        return log_mean(lambda f: self.log_p(theta, y[:, None], f), mu[0], v[0])


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
    concave, df = False, 3.0

    def log_p(self, theta: Table, y: Any, f: Any) -> Any:
        scale, df = theta["scale"], self.df
        constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
        error = (y - f) / scale
        return constant - anp.log(scale) - (df + 1) / 2 * anp.log(1 + error**2 / df)


class Softmax(Likelihood):
    """By Monte Carlo; α and β average ∇log p and −∇²log p, which for β is not V's own derivative."""

    classifies = True

    def __init__(self, classes: int, samples: int) -> None:
        super().__init__()
        self.latents, self.samples = classes, samples

    def _log_probabilities(self, mu: Any, v: Any, noise: Any) -> Any:
        f = mu[:, :, None] + anp.sqrt(v)[:, :, None] * noise.T[:, None, :]  # [C, b, S]
        return f - asp.logsumexp(f, axis=0, keepdims=True)

    def _one_hot(self, y: Floats) -> Floats:
        return np.eye(self.latents)[:, y.astype(int)]

    def _of_label(self, y: Floats, mu: Any, v: Any, noise: Any) -> Any:
        log_p = self._log_probabilities(mu, v, noise)
        return anp.sum(self._one_hot(y)[:, :, None] * log_p, axis=0)

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        return anp.mean(self._of_label(y, mu, v, noise), axis=-1)

    def raw_gradients(
        self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any
    ) -> tuple[Floats, Floats]:
        p = np.exp(self._log_probabilities(mu, v, noise))
        return self._one_hot(y) - np.mean(p, axis=-1), np.mean(p * (1 - p), axis=-1)

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

    def _largest(self, mu: Any, v: Any) -> list[Any]:
        """Return for each label the chance that its f is the largest [b]."""
        chances, labels = [], range(self.latents)
        for label in labels:
            f, w = at_nodes(self.nodes, mu[label], v[label])
            product: Any = 1.0
            for c in labels:
                if c != label:
                    product = product * ast.norm.cdf((f - mu[c][:, None]) / anp.sqrt(v[c])[:, None])
            chances.append(product @ w)
        return chances

    def _of_label(self, y: Floats, mu: Any, v: Any) -> Any:
        return sum(p * (y == label) for label, p in enumerate(self._largest(mu, v)))

    def V(self, theta: Table, y: Floats, mu: Any, v: Any, noise: Any) -> Any:  # noqa: N802
        right, wrong = math.log(1 - self.epsilon), math.log(self.epsilon / (self.latents - 1))
        P = self._of_label(y, mu, v)
        return P * right + (1 - P) * wrong

    def log_density(self, theta: Table, y: Floats, mu: Floats, v: Floats, noise: Any) -> Floats:
        P = self._of_label(y, mu, v)
        return np.log(P * (1 - self.epsilon) + (1 - P) * self.epsilon / (self.latents - 1))

    def guess(self, theta: Table, mu: Floats, v: Floats, noise: Any) -> Floats:
        return np.argmax(self._largest(mu, v), axis=0).astype(float)
