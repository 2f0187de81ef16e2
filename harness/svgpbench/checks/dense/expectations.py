"""V, α and β of every likelihood, computed pointwise from SciPy's distributions without `Ops`.

If a likelihood discretises its integral, this code uses the same nodes or the same noise.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
import scipy.special as sc

from svgpbench.likelihoods import Likelihood

Floats = npt.NDArray[np.float64]
Expectations = tuple[Floats, Floats, Floats]
"""V [b] or [1, b]; α and β have the shape of μ."""


_rule = functools.cache(np.polynomial.hermite_e.hermegauss)


def expectations(
    likelihood: Likelihood,
    parameters: Any,
    y: Floats,
    mu: Floats,
    v: Floats,
    noise: Floats,
    *,
    pathwise: bool = False,
) -> Expectations:
    """Return (V, α, β) at μ and v, [b] or [P, b], for the settings of a likelihood.

    Args:
        likelihood: its name and settings (nodes, ε, …) are read; none of its functions is called.
        parameters: the likelihood's part of θ.
        y: targets [b].
        mu: means.
        v: variances.
        noise: [S, P], if the likelihood samples.
        pathwise: take β as −2 ∂V̂/∂v of a sampled V̂, as autodiff does.
    """
    if likelihood.name == "gaussian":
        s2 = float(parameters.noise_variance)
        V = -0.5 * np.log(2 * np.pi * s2) - ((y - mu) ** 2 + v) / (2 * s2)
        return V, (y - mu) / s2, np.full_like(mu, 1 / s2)
    if likelihood.name == "softmax":
        return _softmax(y, mu, v, noise, pathwise=pathwise)
    if likelihood.name == "heteroskedastic":
        return _heteroskedastic(float(parameters.noise_variance), y, mu, v)
    t, w = _rule(likelihood.nodes)  # type: ignore[attr-defined]
    # hermegauss integrates against e^(−t²/2), whose integral is √(2π)
    w = w / np.sqrt(2 * np.pi)
    if likelihood.name == "robust-max":
        return _robust_max(likelihood, y, mu, v, t, w)
    value, slope = log_density_and_slope(
        likelihood, parameters, y[:, None], mu[..., None] + np.sqrt(v)[..., None] * t
    )
    # β is −2∂V̂/∂v of the quadrature V̂ itself, with ∂f/∂v = t/(2√v);
    # a quadrature of −∇²log p is off by 4e-2 for the squashed probit, 3e-2 for Student-t
    return value @ w, slope @ w, -(slope * t) @ w / np.sqrt(v)


ONE_LATENT = ("bernoulli-probit", "bernoulli-logit", "student-t", "poisson")
KNOWN_LIKELIHOODS = frozenset({"gaussian", "softmax", "robust-max", "heteroskedastic", *ONE_LATENT})


def log_density_and_slope(x: Any, parameters: Any, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Return log p(y | f) of a likelihood in `ONE_LATENT` and its slope in f [..., b, S], for y [b, 1]."""
    sign = 2 * y - 1
    if x.name == "bernoulli-probit" and not x.squash:
        value = sc.log_ndtr(sign * f)
        # φ/Φ by the logarithm of Φ: beyond 39 deviations both underflow, and their ratio is 0/0
        return value, sign * np.exp(-(f**2) / 2 - value) / np.sqrt(2 * np.pi)
    if x.name == "bernoulli-probit":
        wide = 1 - 2 * x.squash
        density = x.squash + wide * sc.ndtr(sign * f)
        return np.log(density), sign * wide * scipy.stats.norm.pdf(f) / density
    if x.name == "bernoulli-logit":
        return sc.log_expit(sign * f), sign * sc.expit(-sign * f)
    if x.name == "student-t":
        scale, error = float(parameters.scale), y - f
        value = np.asarray(scipy.stats.t.logpdf(error, x.df, scale=scale))
        # falls again beyond |error| = √ν·scale: −∇²log p is negative there, and β may be
        return value, (x.df + 1) * error / (x.df * scale**2 + error**2)
    if x.name == "poisson":
        return np.asarray(scipy.stats.poisson.logpmf(y, np.exp(f))), y - np.exp(f)
    raise KeyError(x.name)


def _softmax(y: Floats, mu: Floats, v: Floats, noise: Floats, *, pathwise: bool) -> Expectations:
    V, alpha, beta = np.zeros(len(y)), np.zeros_like(mu), np.zeros_like(mu)
    for i, label in enumerate(y.astype(int)):
        log_p = sc.log_softmax(mu[:, i] + np.sqrt(v[:, i]) * noise, axis=1)  # [S, C]
        p, one_hot = np.exp(log_p), np.eye(len(mu))[label]
        V[i] = log_p[:, label].mean()
        alpha[:, i] = (one_hot - p).mean(axis=0)
        # E p(1 − p) is never negative, but equals −2∂V̂/∂v only on average over draws
        slope_in_v = ((one_hot - p) * noise).mean(axis=0) / (2 * np.sqrt(v[:, i]))
        beta[:, i] = -2 * slope_in_v if pathwise else (p * (1 - p)).mean(axis=0)
    return V, alpha, beta


def _heteroskedastic(s2: float, y: Floats, mu: Floats, v: Floats) -> Expectations:
    # by quadrature, as the likelihood itself has closed forms: 80 nodes in each latent function integrate
    # exp(−f₂) to rounding at the variances of a check
    t, w = _rule(80)
    w = w / np.sqrt(2 * np.pi)
    f1 = (mu[0, :, None] + np.sqrt(v[0, :, None]) * t)[..., :, None]  # [b, S, 1]
    sd = np.sqrt(s2 * np.exp(mu[1, :, None] + np.sqrt(v[1, :, None]) * t))[..., None, :]
    z = (y[:, None, None] - f1) / sd
    V = w @ (scipy.stats.norm.logpdf(z) - np.log(sd)) @ w
    slopes = [z / sd, 0.5 * (z**2 - 1)]  # of log p in f₁ and f₂
    alpha = np.stack([w @ slope @ w for slope in slopes])
    beta = np.stack([w @ curvature @ w for curvature in (1 / sd**2 + 0 * z, 0.5 * z**2)])
    return V, alpha, beta


def _robust_max(x: Any, y: Floats, mu: Floats, v: Floats, t: Floats, w: Floats) -> Expectations:
    V, alpha, beta = np.zeros(len(y)), np.zeros_like(mu), np.zeros_like(mu)
    wrong = np.log(x.epsilon / (x.classes - 1))
    gain = np.log(1 - x.epsilon) - wrong
    Phi, phi = scipy.stats.norm.cdf, scipy.stats.norm.pdf
    for i, label in enumerate(y.astype(int)):
        others = [c for c in range(x.classes) if c != label]
        f = mu[label, i] + np.sqrt(v[label, i]) * t  # [S]
        z = {c: (f - mu[c, i]) / np.sqrt(v[c, i]) for c in others}
        P = np.prod([x.squash + (1 - 2 * x.squash) * Phi(z[c]) for c in others], axis=0) @ w
        V[i] = P * np.log(1 - x.epsilon) + (1 - P) * wrong
        for c in others:
            factors = [x.squash + (1 - 2 * x.squash) * Phi(z[k]) for k in others if k != c]
            # z_c falls with μ_c and rises with the label's f: terms enter both, with opposite signs
            density = (1 - 2 * x.squash) * phi(z[c]) * np.prod(factors, axis=0)  # ∂∏Φ/∂z_c
            alpha[c, i] = -gain * (density @ w) / np.sqrt(v[c, i])
            beta[c, i] = gain * ((z[c] * density) @ w) / v[c, i]
            alpha[label, i] += gain * (density @ w) / np.sqrt(v[c, i])
            beta[label, i] -= gain * ((density * t) @ w) / np.sqrt(v[c, i] * v[label, i])
    return V, alpha, beta
