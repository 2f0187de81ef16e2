"""Second program: compute every answer again, in float64 with NumPy and SciPy alone.

    PYTHONPATH=reference python tests/reference/check_numpy.py NAME …

prints the relative difference of every answer, in float64 and in float32. It shares nothing with
`make_mpmath.py`. The differences in form are:

* Algebra is whitened: triangular solves against L = chol K(Z, Z), no inverse, no determinant.
* Squared distances are ‖a‖² − 2aᵀb + ‖b‖², as most libraries compute them.
* Integrals are Gauss–Hermite sums, and β is −Σ w t ∇log p/√v, not a second derivative.
* All gradients are closed-form adjoints, not differences.
* Steps are taken on the dual parameters c = S_v⁻¹m_v and C = S_v⁻¹ − I of the whitened variables.
* The optimum over q is the bound after one step of size 1.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import gammaln, log_ndtr

import svgp_reference
from svgp_reference import Problem
from svgp_reference.comparison import relative_difference

Floats = npt.NDArray[Any]
STEPS = 50
NODES = 200


class Terms(NamedTuple):
    """Expectations at the batch: V, ∂V/∂μ, −2 ∂V/∂v and the derivative of V in the likelihood's parameter."""

    V: Floats
    alpha: Floats
    beta: Floats
    parameter: Floats


class Blocks(NamedTuple):
    """Blocks of the Gram matrix: L = chol K(Z, Z), W = L⁻¹K(Z, X), and the squared distances of both."""

    L: Floats
    W: Floats
    d2_uu: Floats
    d2_uf: Floats


def correlation(name: str, d2: Floats) -> tuple[Floats, Floats]:
    """Return the correlation at squared scaled distance d2, and its derivative in d2."""
    if name == "se":
        k = np.exp(-0.5 * d2)
        return k, -0.5 * k
    if name == "matern32":
        r = np.sqrt(3 * d2)
        return (1 + r) * np.exp(-r), -1.5 * np.exp(-r)
    r = np.sqrt(5 * d2)
    return (1 + r + r * r / 3) * np.exp(-r), -(5 / 6) * (1 + r) * np.exp(-r)


def squared_distances(a: Floats, b: Floats) -> Floats:
    expanded = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
    return np.maximum(expanded, 0)


def log_density(
    name: str, values: dict[str, Any], y: Floats, f: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return log p(y | f), its derivative in f and its derivative in the scale."""
    if name == "bernoulli-probit":
        sign = 2 * y - 1
        value = log_ndtr(sign * f)
        constant = f.dtype.type(0.5 * np.log(2 * np.pi))
        return value, sign * np.exp(-0.5 * f * f - constant - value), 0 * f
    if name == "poisson":
        rate = np.exp(f)
        return y * f - rate - gammaln(y + 1), y - rate, 0 * f
    scale, df, error = values["scale"], values["degrees_of_freedom"], y - f
    constant = f.dtype.type(gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi * df))
    ratio = error * error / (df * scale * scale)
    value = constant - np.log(scale) - (df + 1) / 2 * np.log1p(ratio)
    slope = (df + 1) * error / (df * scale * scale + error * error)
    return value, slope, ((df + 1) * ratio / (1 + ratio) - 1) / scale


class NumpySVGP:
    """SVGP of one problem, at the problem's q, in one precision."""

    def __init__(self, problem: Problem, dtype: Any = np.float64, nodes: int = NODES) -> None:
        cast = lambda x: np.asarray(x, dtype=dtype)  # noqa: E731
        self.problem, self.cast = problem, cast
        self.rows = problem.batch
        self.X, self.y, self.Z = cast(problem.X_batch), cast(problem.y_batch), cast(problem.Z)
        self.values = {k: dtype(v) for k, v in problem.likelihood_parameters.items()}
        self.scale, self.constant = dtype(problem.scale), dtype(problem.mean_constant)
        self.variance, self.lengthscales = dtype(problem.variance), cast(problem.lengthscales)
        t, w = np.polynomial.hermite_e.hermegauss(nodes)
        self.t, self.w = cast(t), cast(w / np.sqrt(2 * np.pi))
        self.f = self.blocks(self.X)
        mean, factor = cast(problem.q_mean), cast(problem.q_factor)
        if not problem.whitened:
            mean = solve_triangular(self.f.L, mean, lower=True)
            factor = solve_triangular(self.f.L, factor, lower=True)
        self.mean, self.factor = mean, factor

    def blocks(self, X: Floats) -> Blocks:
        a, b, name = self.Z / self.lengthscales, X / self.lengthscales, self.problem.kernel
        d2_uu, d2_uf = squared_distances(a, a), squared_distances(a, b)
        np.fill_diagonal(d2_uu, 0)
        K = self.variance * correlation(name, d2_uu)[0]
        L = np.linalg.cholesky(K + self.cast(self.problem.jitter * np.eye(len(a))))
        W = solve_triangular(L, self.variance * correlation(name, d2_uf)[0], lower=True)
        return Blocks(L, W, d2_uu, d2_uf)

    # --- values ---------------------------------------------------------------------------------

    def marginals(self, W: Floats) -> tuple[Floats, Floats]:
        half = self.factor.T @ W
        variance = self.variance - (W * W).sum(0) + (half * half).sum(0)
        return self.constant + self.mean @ W, variance

    def terms(self, mu: Floats, v: Floats) -> Terms:
        if self.problem.likelihood == "gaussian":
            s2, error = self.values["noise_variance"], self.y - mu
            square = (error * error + v) / s2
            V = -0.5 * (np.log(2 * self.cast(np.pi) * s2) + square)
            return Terms(V, error / s2, 0 * v + 1 / s2, (square - 1) / (2 * s2))
        sd = np.sqrt(v)[:, None]
        value, slope, parameter = log_density(
            self.problem.likelihood, self.values, self.y[:, None], mu[:, None] + sd * self.t
        )
        beta = -(slope @ (self.w * self.t)) / sd[:, 0]
        return Terms(value @ self.w, slope @ self.w, beta, parameter @ self.w)

    def kl(self) -> Any:
        logs = np.log(np.abs(np.diag(self.factor))).sum()
        squares = (self.factor**2).sum() + self.mean @ self.mean
        return 0.5 * (squares - len(self.mean)) - logs

    def bound(self) -> dict[str, Any]:
        V, kl = self.terms(*self.marginals(self.f.W)).V, self.kl()
        return {"bound": self.scale * V.sum() - kl, "kl": kl, "expected_log_likelihood": V}

    def predict(self, X: Floats) -> dict[str, Any]:
        mu, v = self.marginals(self.blocks(self.cast(X)).W)
        y = self.cast(self.problem.y_test)
        if self.problem.likelihood == "gaussian":
            total = v + self.values["noise_variance"]
            density = -0.5 * (np.log(2 * self.cast(np.pi) * total) + (y - mu) ** 2 / total)
        elif self.problem.likelihood == "bernoulli-probit":
            density = log_ndtr((2 * y - 1) * mu / np.sqrt(1 + v))
        else:
            f = mu[:, None] + np.sqrt(v)[:, None] * self.t
            value = log_density(self.problem.likelihood, self.values, y[:, None], f)[0]
            density = np.log(np.exp(value) @ self.w)
        return {"mean": mu, "variance": v, "log_density": density}

    # --- steps ----------------------------------------------------------------------------------

    def step(self, gamma: float) -> None:
        """Move c and C by a share γ of the way to their targets, and set q from them."""
        rate, W, identity = self.cast(gamma), self.f.W, self.cast(np.eye(len(self.mean)))
        mu, v = self.marginals(W)
        at = self.terms(mu, v)
        half = solve_triangular(self.factor, identity, lower=True)
        c, C = half.T @ (half @ self.mean), half.T @ half - identity
        lambda1 = at.beta * (mu - self.constant) + at.alpha
        c = (1 - rate) * c + rate * self.scale * (W @ lambda1)
        C = (1 - rate) * C + rate * self.scale * ((W * at.beta) @ W.T)
        # S = (I + C)⁻¹ = (UUᵀ)⁻¹, U upper triangular: U⁻ᵀ is a lower factor of S
        U = np.linalg.cholesky((identity + C)[::-1, ::-1])[::-1, ::-1]
        self.factor = solve_triangular(U, identity).T
        self.mean = self.factor @ (self.factor.T @ c)

    # --- gradient -------------------------------------------------------------------------------

    def gradient(self) -> dict[str, Any]:
        L, W, d2_uu, d2_uf = self.f
        at, name, whitened = (
            self.terms(*self.marginals(W)),
            self.problem.kernel,
            self.problem.whitened,
        )
        s, m, F = self.scale, self.mean, self.factor
        alpha, beta = s * at.alpha, s * at.beta
        pull = F.T @ W  # [M, b]
        mean_bar = W @ alpha - m
        factor_bar = -W @ (beta[:, None] * pull.T) - F
        factor_bar[np.diag_indices(len(m))] += 1 / np.diag(F)
        W_bar = np.outer(m, alpha) + W * beta - F @ (pull * beta)
        # W = L⁻¹K(Z, X), and unwhitened q has m = L⁻¹q_mean, F = L⁻¹q_factor
        above = W_bar @ W.T
        if not whitened:
            above = above + np.outer(mean_bar, m) + np.tril(factor_bar) @ F.T
        inner = np.tril(-above)
        inner[np.diag_indices(len(m))] *= self.cast(0.5)
        inner = 0.5 * (inner + inner.T)
        solve = lambda x: solve_triangular(L, x, lower=True, trans=1)  # noqa: E731
        uu_bar, uf_bar = solve(solve(inner).T), solve(W_bar)
        if not whitened:
            mean_bar, factor_bar = solve(mean_bar), solve(np.tril(factor_bar))
        shape_uu, slope_uu = correlation(name, d2_uu)
        shape_uf, slope_uf = correlation(name, d2_uf)
        kff_bar = -0.5 * beta.sum()
        gradient: dict[str, Any] = {
            "variance": (uu_bar * shape_uu).sum() + (uf_bar * shape_uf).sum() + kff_bar,
            "mean_constant": alpha.sum(),
            "q_mean": mean_bar,
            "q_factor": np.tril(factor_bar),
        }
        G_uu, G_uf = self.variance * uu_bar * slope_uu, self.variance * uf_bar * slope_uf
        zz = self.Z[:, None, :] - self.Z[None, :, :]  # [M, M, D]
        zx = self.Z[:, None, :] - self.X[None, :, :]
        l2 = self.lengthscales**2
        gradient["Z"] = (4 * (G_uu[..., None] * zz).sum(1) + 2 * (G_uf[..., None] * zx).sum(1)) / l2
        by_dimension = (G_uu[..., None] * zz**2).sum((0, 1)) + (G_uf[..., None] * zx**2).sum((0, 1))
        in_scales = -2 * by_dimension / self.lengthscales**3
        isotropic = len(self.lengthscales) == 1
        gradient["lengthscales"] = in_scales.sum(keepdims=True) if isotropic else in_scales
        for parameter in ("noise_variance", "scale"):
            if parameter in self.values:
                gradient[parameter] = s * at.parameter.sum()
        return gradient


def answers(problem: Problem, dtype: Any = np.float64, nodes: int = NODES) -> dict[str, Floats]:
    """Return every answer, by its name."""
    model = NumpySVGP(problem, dtype, nodes)
    found = model.bound()
    found |= {f"predict_{k}": x for k, x in model.predict(problem.X_test).items()}
    found |= {f"gradient_{k}": x for k, x in model.gradient().items()}
    if problem.likelihood == "gaussian":
        best = NumpySVGP(problem, dtype, nodes)
        best.step(1.0)
        found["optimum"] = best.bound()["bound"]
    bounds = []
    for _ in range(STEPS):
        model.step(problem.gamma)
        bounds.append(model.bound()["bound"])
    found["steps"] = np.asarray(bounds)
    return {name: np.asarray(x) for name, x in found.items()}


def differences(
    problem: Problem, dtype: Any = np.float64, nodes: int = NODES
) -> dict[str, float] | None:
    """Return the relative difference of every answer; None if a Cholesky factorisation fails."""
    try:
        with np.errstate(all="ignore"):
            found = answers(problem, dtype, nodes)
    except np.linalg.LinAlgError:
        return None
    return {name: relative_difference(found[name], x) for name, x in problem.answers.items()}


def main(names: list[str]) -> None:
    """Print the differences of the problems of these names, of all if none is given."""
    for name in names or svgp_reference.names():
        problem = svgp_reference.load(name)
        print(name)
        for dtype in (np.float64, np.float32):
            found = differences(problem, dtype)
            listed = (
                "no Cholesky factor"
                if found is None
                else "  ".join(f"{k} {x:.0e}" for k, x in found.items())
            )
            print(f"  {dtype.__name__}: {listed}")


if __name__ == "__main__":
    main(sys.argv[1:])
